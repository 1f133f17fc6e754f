//! A child of `vfork` has its parent's memory; its settings must not affect the parent.

use crate::launcher::*;
use stackglass_wire::PEEK_MARK;

#[test]
fn parents_stay_sampled_and_keep_their_handlers() {
    let program = compile("vforks", &[]);
    let symbols = Symbols::from_program(&program);
    for kind in ["exit", "reset", "handlers", "peek"] {
        let session = Session::new();
        let mut marked = false;
        let run = session.run_with(session.command(&program).arg(kind), |pid, since| {
            if since.as_millis() > 300 {
                let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
                marked |= maps.contains(PEEK_MARK.to_str().unwrap());
            }
        });
        assert_eq!((run.status.code(), run.stdout.trim()), (Some(0), "0"), "{kind}: {}", run.stderr);
        assert_eq!(run.processes.len(), 1, "{kind}");
        let main = &run.processes[0].threads(&symbols)[&1];
        let after = main.time_in("main;after_work");
        assert!((200_000_000..500_000_000).contains(&after), "{kind}: {after} {main:#?}");
        assert!(marked, "{kind}: the parent still answers peeks");
    }
}
