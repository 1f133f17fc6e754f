//! A program that waits for one of its handlers does not wait after that has run.

use crate::launcher::*;
use stackglass_wire::Counter;
use std::sync::atomic::Ordering::*;

const KINDS: [&str; 6] = ["sigsuspend", "ppoll", "pselect", "epoll_pwait", "pause", "poll"];

#[test]
fn a_call_that_a_handler_has_ended_stays_ended() {
    let program = compile("waits", &[]);
    let mut signals = 0;
    for kind in KINDS {
        for restart in [false, true] {
            let session = Session::new();
            session.page().delay_ns.store(100_000, Relaxed);
            let mut command = session.command(&program);
            command
                .env("STACKGLASS_TEST_TIMERS", "none")
                .args([kind, "200"])
                .args(restart.then_some("restart"));
            let run = session.run(&mut command);
            assert_eq!(run.status.code(), Some(0), "{kind}: 42 is one that hangs: {}", run.stderr);
            let process = &run.processes[0];
            assert_eq!(process.counter(Counter::CallsPutBack), 0, "{kind}");
            signals += process.counter(Counter::SignalsRunning);
        }
    }
    assert!(signals > 500, "{signals}");
}
