//! The checks: each tries one thing, or reads one setting.

use rustix::process::{Resource, getrlimit};
use serde::Serialize;
use stackglass_attach::access::{is_own_memory_readable, may_trace_children, yama_scope};
use stackglass_attach::perf_refused::{Rule, paranoid};
use stackglass_attach::probe;
use stackglass_procfs::Status;
use stackglass_report::json;
use std::fs;
use std::io::{self, Write};

/// CAP_SYS_PTRACE, CAP_SYS_ADMIN and CAP_PERFMON as bits, and their names.
const CAPABILITIES: [(u64, &str); 3] =
    [(1 << 19, "CAP_SYS_PTRACE"), (1 << 21, "CAP_SYS_ADMIN"), (1 << 38, "CAP_PERFMON")];
/// Files that a large process needs: about three per thread.
const ENOUGH_FILES: u64 = 4096;
/// Locked memory that rings for all CPUs need without a capability, in KiB per CPU.
const ENOUGH_LOCKED: u64 = 516;

/// How a check went.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Verdict {
    Ok,
    Restricted,
    No,
}

/// One line.
#[derive(Debug, Serialize)]
pub(super) struct Check {
    #[serde(rename = "check")]
    pub(super) name: &'static str,
    pub(super) verdict: Verdict,
    /// What was found, and what follows.
    pub(super) text: String,
    /// How to get more.
    pub(super) remedies: Vec<String>,
    /// `record` fails if this one does.
    #[serde(skip)]
    pub(super) decides: bool,
}

impl Check {
    fn new(name: &'static str, verdict: Verdict, text: impl Into<String>) -> Check {
        Check { name, verdict, text: text.into(), remedies: Vec::new(), decides: false }
    }

    fn how(mut self, remedy: impl Into<String>) -> Check {
        self.remedies.push(remedy.into());
        self
    }
}

/// All checks, in the order in which they are shown.
pub(super) fn all() -> Vec<Check> {
    let own = Status::own();
    let sampling = probe::sampling();
    let refused = sampling.is_err();
    vec![
        kernel(),
        rights(&own),
        level(&own, refused),
        seccomp(&own, refused),
        events(sampling),
        user_code_stops(),
        breakpoints(),
        locked(),
        processes(&own),
        memory(),
        ptrace(),
        proc(),
        files(),
        debuginfod(),
    ]
}

fn kernel() -> Check {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse().unwrap_or(0u32));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    match version {
        (..=4, _) | (5, ..=12) => {
            let text = format!("Linux {release}: threads cannot be stopped in user code (Linux 5.13)");
            Check::new("kernel", Verdict::Restricted, text)
        }
        _ => Check::new("kernel", Verdict::Ok, format!("Linux {release}")),
    }
}

fn rights(own: &Status) -> Check {
    let mut held: Vec<&str> =
        CAPABILITIES.iter().filter(|(bit, _)| own.capabilities & bit != 0).map(|(_, name)| *name).collect();
    let mut value = [0; 64];
    let has_file_capabilities =
        rustix::fs::getxattr("/proc/self/exe", "security.capability", &mut value[..]).is_ok();
    if has_file_capabilities {
        held.push("the executable has file capabilities");
    }
    let user = if own.user == 0 { "root".into() } else { format!("user id {}", own.user) };
    match held.as_slice() {
        [] => {
            Check::new("rights", Verdict::Restricted, format!("{user}, no capabilities: own processes only"))
        }
        held => Check::new("rights", Verdict::Ok, format!("{user}; {}", held.join(", "))),
    }
}

fn level(own: &Status, refused: bool) -> Check {
    const NAME: &str = "perf_event_paranoid";
    let level = paranoid();
    let is_capable = own.capabilities & (1 << 38 | 1 << 21) != 0;
    match level {
        _ if is_capable => Check::new(NAME, Verdict::Ok, format!("{level}; CAP_PERFMON overrules it")),
        ..=1 => Check::new(NAME, Verdict::Ok, format!("{level}: own processes, time in the kernel too")),
        2 => Check::new(NAME, Verdict::Restricted, "2: own processes, user code only")
            .how("time in the kernel, too: sudo sysctl kernel.perf_event_paranoid=1"),
        _ if !refused => {
            Check::new(NAME, Verdict::Restricted, format!("{level}, which this kernel treats as 2"))
        }
        _ => Check::new(NAME, Verdict::No, format!("{level}: this kernel refuses perf events to users"))
            .how("sudo sysctl kernel.perf_event_paranoid=2"),
    }
}

fn seccomp(own: &Status, refused: bool) -> Check {
    let container = if is_in_container() { "a container, and " } else { "" };
    match (own.confined, refused) {
        (false, _) if container.is_empty() => Check::new("seccomp", Verdict::Ok, "no filter"),
        (false, _) => Check::new("seccomp", Verdict::Ok, "a container without a filter"),
        (true, false) => {
            Check::new("seccomp", Verdict::Ok, format!("{container}a filter that lets perf events pass"))
        }
        (true, true) => {
            let text = format!("{container}a filter; Docker's default one refuses perf_event_open(2)");
            Check::new("seccomp", Verdict::No, text)
                .how("docker run --cap-add PERFMON (and SYS_PTRACE for --pid), or else --security-opt seccomp=FILE with a profile that allows perf_event_open, or seccomp=unconfined")
        }
    }
}

fn is_in_container() -> bool {
    ["/.dockerenv", "/run/.containerenv"].iter().any(|path| fs::exists(path).unwrap_or(false))
        || std::env::var_os("KUBERNETES_SERVICE_HOST").is_some()
}

fn events(sampling: Result<bool, stackglass_attach::perf_refused::PerfRefused>) -> Check {
    let mut check = match sampling {
        Ok(true) => Check::new("perf events", Verdict::Ok, "stacks in user code and in the kernel's calls"),
        Ok(false) => {
            let text = "stacks in user code; time inside system calls is known, but has no stacks of its own";
            Check::new("perf events", Verdict::Ok, text)
        }
        Err(refused) => {
            let mut check = Check::new("perf events", Verdict::No, refused.to_string());
            check.remedies = refused.ways_out();
            if refused.rule == Rule::Other {
                check.text = format!("refused ({}), for no rule that is visible here", refused.error);
            }
            check
        }
    };
    check.decides = true;
    check
}

fn user_code_stops() -> Check {
    match probe::stop_in_user_code() {
        Ok(()) => {
            Check::new("stops in user code", Verdict::Ok, "no system call is interrupted by a heap snapshot")
        }
        Err(refused) => {
            let text = format!("{refused}: no heap snapshots and tasks of busy programs");
            Check::new("stops in user code", Verdict::No, text)
        }
    }
}

fn breakpoints() -> Check {
    match probe::breakpoint() {
        Ok(()) => Check::new("breakpoints", Verdict::Ok, "hidden callers of sleeping threads are found"),
        Err(error) => {
            let text = format!("refused ({error}): some stacks of sleeping threads lack their callers");
            Check::new("breakpoints", Verdict::Restricted, text)
        }
    }
}

fn locked() -> Check {
    const NAME: &str = "perf_event_mlock_kb";
    let text = fs::read_to_string("/proc/sys/kernel/perf_event_mlock_kb").unwrap_or_default();
    match text.trim().parse::<u64>() {
        Ok(kib) if kib >= ENOUGH_LOCKED => Check::new(NAME, Verdict::Ok, format!("{kib} KiB for each CPU")),
        Ok(kib) => {
            let text = format!("{kib} KiB for each CPU: users lose samples at high rates");
            Check::new(NAME, Verdict::Restricted, text)
                .how(format!("sudo sysctl kernel.perf_event_mlock_kb={ENOUGH_LOCKED}"))
        }
        Err(_) => Check::new(NAME, Verdict::Restricted, "cannot be read: the kernel may have no perf events"),
    }
}

fn processes(own: &Status) -> Check {
    const NAME: &str = "yama ptrace_scope";
    let is_capable = own.capabilities & 1 << 19 != 0;
    match yama_scope() {
        0 => Check::new(NAME, Verdict::Ok, "0: --pid reads all of your processes"),
        3 => Check::new(NAME, Verdict::No, "3: nobody reads another process until the next boot"),
        scope if is_capable => Check::new(NAME, Verdict::Ok, format!("{scope}; CAP_SYS_PTRACE overrules it")),
        1 => Check::new(
            NAME,
            Verdict::Restricted,
            "1: --pid, peek and top read only what stackglass has started",
        )
        .how("use sudo, or sudo sysctl kernel.yama.ptrace_scope=0"),
        scope => Check::new(NAME, Verdict::Restricted, format!("{scope}: --pid, peek and top need root"))
            .how("use sudo"),
    }
}

fn memory() -> Check {
    const NAME: &str = "/proc/PID/mem";
    match is_own_memory_readable() {
        true => Check::new(NAME, Verdict::Ok, "stacks of sleeping threads are read"),
        false => Check::new(NAME, Verdict::No, "cannot be read: sleeping threads have no stacks"),
    }
}

fn ptrace() -> Check {
    match may_trace_children() {
        true => {
            Check::new("ptrace", Verdict::Ok, "allowed; used for heap snapshots, and where you ask for it")
        }
        false => Check::new("ptrace", Verdict::Restricted, "refused: no heap snapshots, no --sampler ptrace"),
    }
}

fn proc() -> Check {
    if !stackglass_procfs::is_mounted() {
        return Check::new("/proc", Verdict::No, "not mounted").how("mount -t proc proc /proc");
    }
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let options = mounts.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(1);
        (fields.next()? == "/proc").then(|| fields.nth(1).unwrap_or("").to_owned())
    });
    let hides =
        |option: &str| option.starts_with("hidepid=") && !matches!(option, "hidepid=0" | "hidepid=off");
    match options.as_deref().unwrap_or("").split(',').find(|option| hides(option)) {
        Some(option) => {
            let text = format!("mounted with {option}: processes of other users are hidden");
            Check::new("/proc", Verdict::Restricted, text)
        }
        None => Check::new("/proc", Verdict::Ok, "mounted, shows all processes"),
    }
}

fn files() -> Check {
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(u64::MAX);
    if most >= ENOUGH_FILES {
        return Check::new(
            "open files",
            Verdict::Ok,
            format!("up to {}", limit.maximum.map_or("any number".into(), |n| n.to_string())),
        );
    }
    Check::new("open files", Verdict::Restricted, format!("up to {most}: --pid reads fewer threads at once"))
        .how(format!("ulimit -Hn {ENOUGH_FILES}, as root"))
}

fn debuginfod() -> Check {
    match std::env::var("DEBUGINFOD_URLS") {
        Ok(urls) if !urls.trim().is_empty() => {
            Check::new("debuginfod", Verdict::Ok, format!("asked at {urls}"))
        }
        _ => Check::new("debuginfod", Verdict::Ok, "not asked: DEBUGINFOD_URLS is not set"),
    }
}

/// Writes the checks as one JSON object.
pub(super) fn write_json(checks: &[Check], works: bool, out: &mut impl Write) -> io::Result<()> {
    #[derive(Serialize)]
    struct Report<'a> {
        record_works: bool,
        checks: &'a [Check],
    }
    json::write(&Report { record_works: works, checks }, out)
}
