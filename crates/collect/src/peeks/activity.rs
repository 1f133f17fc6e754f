//! What the threads of a process are doing now, from `/proc/PID/task`: running, stopped, or asleep in a system call
//! (proc(5), `stat` and `syscall`).

use super::system_calls;
use foldhash::HashMap;
use stackglass_profile::Activity;
use std::fs;

/// Activity of each thread of process `pid`, by kernel id, except threads of the profiler (`ours`). Threads that end
/// meanwhile are missing. The name of a system call is `None` if `/proc/PID/task/T/syscall` may not be read.
///
/// ```
/// # use stackglass_profile::Activity;
/// let now = stackglass_collect::peeks::activity::of_process(std::process::id(), |_tid| false);
/// assert!(now.values().any(|activity| *activity == Activity::Running), "the calling thread is running");
/// ```
pub fn of_process(pid: u32, ours: impl Fn(u32) -> bool) -> HashMap<u32, Activity> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return HashMap::default() };
    let tids = tasks.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    tids.filter(|tid| !ours(*tid)).filter_map(|tid| Some((tid, of_thread(pid, tid)?))).collect()
}

/// Activity of one thread; `None` if it has ended.
pub fn of_thread(pid: u32, tid: u32) -> Option<Activity> {
    let stat = fs::read(format!("/proc/{pid}/task/{tid}/stat")).ok()?;
    // The state follows the name, which is in parentheses and may contain anything.
    let state = stat.iter().rposition(|b| *b == b')').and_then(|at| stat.get(at + 2))?;
    match state {
        b'R' => Some(Activity::Running),
        b'T' | b't' => Some(Activity::Stopped),
        b'S' | b'D' | b'I' => {
            // `running`, or the number, six arguments, stack pointer and program counter.
            let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/syscall")).unwrap_or_default();
            let mut fields = text.split_ascii_whitespace();
            let call = fields.next().and_then(|number| number.parse().ok()).map(system_calls::name);
            let pc = fields.last().and_then(|pc| u64::from_str_radix(pc.strip_prefix("0x")?, 16).ok());
            Some(Activity::Asleep { call, pc })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleeper_is_found_in_its_call() {
        let (tell, tid) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            // SAFETY: no arguments.
            tell.send(unsafe { libc::gettid() } as u32).unwrap();
            std::thread::sleep(std::time::Duration::from_secs(60));
        });
        let tid = tid.recv().unwrap();
        let sleeps = |activity: Option<Activity>| match activity {
            Some(Activity::Asleep { call: Some(call), pc: Some(_) }) => call == "clock_nanosleep",
            _ => false,
        };
        while !sleeps(of_thread(std::process::id(), tid)) {
            std::thread::yield_now();
        }
        assert!(sleeps(of_process(std::process::id(), |_| false).remove(&tid)));
        assert!(!of_process(std::process::id(), |asked| asked == tid).contains_key(&tid));
        assert_eq!(of_process(u32::MAX, |_| false), HashMap::default());
    }
}
