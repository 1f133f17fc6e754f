//! What processes call themselves now. Servers replace their command line while they run (`nginx: worker process`,
//! `postgres: checkpointer`), and a forked child has that of its parent at first.

use stackglass_procfs::process;
use stackglass_profile::Recorder;
use stackglass_profile::frame::file_name;
use std::time::{Duration, Instant};

/// Time from the first to the second reading of a command line; then it doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// Longest time between two readings.
const LONGEST_PAUSE: Duration = Duration::from_secs(8);

/// When the command line of each process is read next.
#[derive(Default)]
pub(crate) struct ProcessTitles {
    /// By index in the recording.
    due: Vec<(Instant, Duration)>,
}

impl ProcessTitles {
    /// Reads the command lines that are due, or `all`.
    pub(crate) fn update(&mut self, all: bool, recorder: &mut Recorder) {
        let now = Instant::now();
        let processes = &mut recorder.recording_mut().processes;
        self.due.resize(processes.len(), (now, FIRST_PAUSE));
        for (process, (next, pause)) in processes.iter_mut().zip(&mut self.due) {
            if process.end.is_some() || (*next > now && !all) {
                continue;
            }
            *next = now + *pause;
            *pause = (*pause * 2).min(LONGEST_PAUSE);
            let line = process::command_line(process.pid);
            // It may have ended, or called exec: the line is that of another program then.
            let runs = process::executable(process.pid);
            let same = file_name(&runs.to_string_lossy()) == file_name(&process.exe)
                || process::is_same_file(&runs, &*process.exe);
            // Titles are padded to the length of the old line.
            let last = line.iter().rposition(|b| !matches!(*b, 0 | b' '));
            let line = &line[..last.map_or(0, |last| last + 1)];
            if same && !line.is_empty() {
                let words = line.split(|b| *b == 0);
                process.arguments = words.map(|word| String::from_utf8_lossy(word).into_owned()).collect();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackglass_profile::{Process, RecordingInfo};
    use std::os::unix::process::CommandExt;

    #[test]
    fn a_process_is_called_what_it_calls_itself() {
        let mut child = std::process::Command::new("sleep").arg0("sleeper: idle").arg("60").spawn().unwrap();
        // The kernel says that exec has succeeded before it has put the arguments there.
        while process::command_line(child.id()).is_empty() {
            std::thread::yield_now();
        }
        let exe = process::executable(child.id()).to_string_lossy().as_ref().into();
        let mut recorder = Recorder::new(RecordingInfo::default());
        let start = Process { pid: child.id(), exe, arguments: vec!["before".into()], ..Process::default() };
        let other = Process { exe: "/bin/other".into(), ..start.clone() };
        recorder.add_process(start);
        recorder.add_process(other);
        ProcessTitles::default().update(false, &mut recorder);
        let now = &recorder.recording().processes;
        assert_eq!(now[0].arguments, ["sleeper: idle", "60"]);
        assert_eq!(now[1].arguments, ["before"]);
        child.kill().unwrap();
        child.wait().unwrap();
        ProcessTitles::default().update(true, &mut recorder);
        assert_eq!(recorder.recording().processes[0].arguments, ["sleeper: idle", "60"]);
    }
}
