//! The thread that reads the await stacks of waiting tasks, for profiles by wall time.
//!
//! It sleeps until a tick finds a task waiting, and then reads the stack of this one task. It reads the types first, when it is
//! asked for the first time, which may take longer than a short profile. Meanwhile, another thread copies the memory of each wait
//! that it is asked for, and the stack is read from the copy.

use stackglass_collect::in_process::{Collector, WaitAnswers};
use stackglass_inspect::tasks::{AwaitStacks, NoAwaitStacks, WaitCopies, WaitCopy};
use stackglass_sampler::waits::{self, Wait};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Longest time between two looks whether to stop.
const PAUSE: Duration = Duration::from_millis(200);
/// Most questions that come before the types are known.
const MOST_EARLY: usize = 1 << 16;

/// The thread, while it runs.
pub(super) struct Reader {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Reader {
    /// Starts it. What it finds goes to `answers`, and remarks to the collector.
    pub(super) fn start(collector: Arc<Collector>, answers: Arc<WaitAnswers>) -> std::io::Result<Reader> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        stackglass_sampler::expect_helper();
        let spawned = std::thread::Builder::new().name("stackglass-waits".into()).spawn(move || {
            stackglass_sampler::leave_out_this_thread();
            let end = End(answers);
            waits::answer(true);
            answer_all(&stopped, &collector, &end.0);
        });
        let thread = spawned.inspect_err(|_| stackglass_sampler::expect_no_helper())?;
        Ok(Reader { stop, thread })
    }

    /// Ends it, after the sampler has ended.
    pub(super) fn stop(self) {
        self.stop.store(true, Ordering::Release);
        waits::wake();
        // A panic of that thread has been printed already.
        let _ = self.thread.join();
    }
}

/// The end of the answers, also by a panic: samples are not held for ever.
struct End(Arc<WaitAnswers>);

impl Drop for End {
    fn drop(&mut self) {
        waits::answer(false);
        self.0.close();
        stackglass_sampler::count_this_thread_again();
    }
}

fn answer_all(stopped: &AtomicBool, collector: &Collector, answers: &WaitAnswers) {
    let pause = PAUSE.as_nanos() as u64;
    let next = || {
        loop {
            match waits::next(stackglass_sampler::now() + pause) {
                Some(wait) => return Some(wait),
                None if stopped.load(Ordering::Acquire) => return None,
                None => {}
            }
        }
    };
    let Some(first) = next() else { return };
    let (types, early) = read_types(first);
    let mut stacks = match types {
        Ok(stacks) => stacks,
        Err(error) => return collector.with(|recorder| recorder.remark(error.to_string())),
    };
    for Early { wait, copy } in early {
        let Wait { number, task, sequence, .. } = wait;
        let now = stacks.of(task, sequence, &|| wait.future());
        let stack = now.or_else(|| stacks.of_copy(task, sequence, &copy?));
        answers.answer(number, stack);
    }
    stackglass_collect::give_back_memory();
    while let Some(wait) = next() {
        let Wait { number, task, sequence, .. } = wait;
        answers.answer(number, stacks.of(task, sequence, &|| wait.future()));
    }
}

/// A question that came before the types were known.
struct Early {
    wait: Wait,
    /// What could be copied.
    copy: Option<Arc<WaitCopy>>,
}

/// Reads the types. Another thread copies the waits that are asked for meanwhile, from this one on.
fn read_types(first: Wait) -> (Result<AwaitStacks, NoAwaitStacks>, Vec<Early>) {
    let is_ready = AtomicBool::new(false);
    std::thread::scope(|scope| {
        stackglass_sampler::expect_helper();
        let copier = std::thread::Builder::new().name("stackglass-copies".into()).spawn_scoped(scope, || {
            stackglass_sampler::leave_out_this_thread();
            let early = copy_waits(first, &is_ready);
            stackglass_sampler::count_this_thread_again();
            early
        });
        let copier = copier.inspect_err(|_| stackglass_sampler::expect_no_helper());
        let types = AwaitStacks::read_types();
        is_ready.store(true, Ordering::Release);
        waits::wake();
        let early = copier.ok().and_then(|copier| copier.join().ok());
        (types, early.unwrap_or_else(|| vec![Early { wait: first, copy: None }]))
    })
}

/// Copies waits until the types are known.
fn copy_waits(first: Wait, is_ready: &AtomicBool) -> Vec<Early> {
    let mut copies = WaitCopies::new().ok();
    let mut early = Vec::new();
    let mut add = |wait: Wait| {
        let copy = copies.as_mut().and_then(|copies| copies.of(wait.task, wait.sequence, &|| wait.future()));
        early.push(Early { wait, copy });
        early.len()
    };
    let mut count = add(first);
    while count < MOST_EARLY && !is_ready.load(Ordering::Acquire) {
        if let Some(wait) = waits::next(stackglass_sampler::now() + PAUSE.as_nanos() as u64) {
            count = add(wait);
        }
    }
    early
}
