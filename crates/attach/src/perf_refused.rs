//! Perf events are refused: by what, and the ways out.

use stackglass_procfs::Status;
use stackglass_procfs::limits::too_many_files;
use std::fmt;
use std::io;

/// CAP_PERFMON and CAP_SYS_ADMIN as bits.
const MAY_SAMPLE: u64 = 1 << 38 | 1 << 21;

/// What refuses perf events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    /// `kernel.perf_event_paranoid` is too high for this user.
    Paranoid(i32),
    /// A seccomp filter, as in most containers.
    Seccomp,
    /// The kernel has none.
    NoKernel,
    /// The kernel has none that stop a thread in user code.
    OldKernel,
    /// This process has too many open files.
    OpenFiles,
    /// Not known: the error says more.
    Other,
}

/// The kernel has refused to open a perf event.
#[derive(Debug)]
pub struct PerfRefused {
    /// Its error.
    pub error: io::Error,
    /// What has refused.
    pub rule: Rule,
}

impl PerfRefused {
    /// Finds the rule behind an error.
    pub fn new(error: io::Error) -> PerfRefused {
        let own = Status::own();
        let rule = match error.raw_os_error() {
            Some(libc::EACCES | libc::EPERM | libc::ENOSYS) if own.confined && !paranoid_refuses(&own) => {
                Rule::Seccomp
            }
            Some(libc::ENOSYS | libc::ENOENT | libc::EOPNOTSUPP) => Rule::NoKernel,
            Some(libc::EMFILE) => Rule::OpenFiles,
            Some(libc::EINVAL | libc::E2BIG) => Rule::OldKernel,
            Some(libc::EACCES | libc::EPERM) if paranoid_refuses(&own) => Rule::Paranoid(paranoid()),
            _ => Rule::Other,
        };
        PerfRefused { error, rule }
    }

    /// Ways to get perf events, one line each.
    pub fn ways_out(&self) -> Vec<String> {
        match self.rule {
            Rule::Paranoid(_) | Rule::Other => vec![
                "sudo sysctl kernel.perf_event_paranoid=2: until the next boot, for all users".into(),
                format!(
                    "sudo setcap cap_perfmon,cap_sys_ptrace=ep {}: once, for whoever runs it",
                    executable()
                ),
            ],
            Rule::Seccomp => vec![
                "start the container with --cap-add PERFMON (Docker, Podman), or PERFMON in \
                 securityContext.capabilities (Kubernetes)"
                    .into(),
                "where that is not enough: --security-opt seccomp=unconfined".into(),
            ],
            Rule::OpenFiles => vec!["a higher limit (`ulimit -n`)".into()],
            Rule::NoKernel => vec!["a kernel that is built with CONFIG_PERF_EVENTS".into()],
            Rule::OldKernel => vec!["Linux 5.13 or later".into()],
        }
    }

    /// Ways to sample running threads nevertheless, one line each.
    pub fn ways_to_sample(&self) -> Vec<String> {
        let mut ways = self.ways_out();
        ways.push(format!("--sampler ptrace: at your risk, as {}", super::driver::RISK));
        ways
    }
}

impl fmt::Display for PerfRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rule {
            Rule::Paranoid(level) => {
                write!(f, "perf events are refused here (kernel.perf_event_paranoid is {level})")
            }
            Rule::Seccomp => write!(f, "perf events are refused here (a seccomp filter, as of a container)"),
            Rule::NoKernel => write!(f, "this kernel has no perf events"),
            Rule::OldKernel => write!(f, "this kernel has no perf events that stop a thread in user code"),
            Rule::OpenFiles => f.write_str(&too_many_files(&self.error).unwrap_or_default()),
            Rule::Other => write!(f, "perf events are refused here ({})", self.error),
        }
    }
}

/// `kernel.perf_event_paranoid`; 2, the kernel's own default, if it cannot be read.
pub fn paranoid() -> i32 {
    let text = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    text.trim().parse().unwrap_or(2)
}

/// Levels above 2 exist in the kernels of Debian, Ubuntu and Android, and refuse everything without a capability.
fn paranoid_refuses(own: &Status) -> bool {
    paranoid() > 2 && own.capabilities & MAY_SAMPLE == 0
}

fn executable() -> String {
    std::env::current_exe().map_or_else(|_| "$(which stackglass)".into(), |path| path.display().to_string())
}
