//! A process that is being sampled can be copied: the sampler lets it go for the moment.

use crate::program::Program;
use stackglass_attach::frozen::{FrozenProcess, Options};
use stackglass_attach::{AttachMode, Attachment, Driver};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

#[test]
fn a_sampled_process_is_copied_and_sampled_again() {
    let (mut program, calls) = Program::start("calls", &[]);
    assert_eq!(calls, "20");
    let attached =
        Attachment::begin(program.pid(), Duration::from_millis(1), Some(Driver::Ptrace), AttachMode::Long)
            .unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Acquire) {
                attached.help_exec();
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        for _ in 0..8 {
            std::thread::sleep(Duration::from_millis(60));
            let copy = FrozenProcess::copy(program.pid(), &Options::default()).unwrap();
            assert_eq!(copy.threads().len(), 21);
        }
        let stopped = FrozenProcess::stop(program.pid(), &Options::default()).unwrap();
        std::thread::sleep(Duration::from_millis(100));
        assert!(stopped.is_alive());
        drop(stopped);
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(attached.stopped(), None, "sampling goes on");
        is_over.store(true, Ordering::Release);
    });
    drop(attached);
    assert_eq!(program.finish(), "interrupted:");
}

/// A thread that begins to sleep while it is being stopped would continue by a call that its filter forbids.
#[test]
fn a_filter_does_not_end_a_sampled_process() {
    let (mut program, line) = Program::start("filtered", &["sleeps"]);
    assert_eq!(line, "ready");
    let micros = Duration::from_micros(200);
    let attached = Attachment::begin(program.pid(), micros, Some(Driver::Ptrace), AttachMode::Long).unwrap();
    std::thread::sleep(Duration::from_secs(3));
    assert!(program.lives());
    assert_eq!(attached.stopped(), None);
}
