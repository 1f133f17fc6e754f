//! The thread that reads the await stacks of waiting tasks, for profiles by wall time.
//!
//! It sleeps until a tick finds a task waiting, and then reads the stack of this one task. It reads the types first, when it is
//! asked for the first time: until then, long waits stay open questions, and short ones have no stack.

use stackglass_collect::in_process::{Collector, WaitAnswers};
use stackglass_inspect::tasks::AwaitStacks;
use stackglass_sampler::waits::{self, Wait};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Longest time between two looks whether to stop.
const PAUSE: Duration = Duration::from_millis(200);
/// If reading the types takes longer, the profile says so.
const WORTH_A_REMARK: Duration = Duration::from_millis(50);

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
    let Some(mut wait) = next() else { return };
    let begun = Instant::now();
    let mut stacks = match AwaitStacks::read_types() {
        Ok(stacks) => stacks,
        Err(error) => return collector.with(|recorder| recorder.remark(error.to_string())),
    };
    stackglass_collect::give_back_memory();
    let took = begun.elapsed();
    if took > WORTH_A_REMARK {
        let line = format!(
            "short waits in the first {:.1} s have no await stacks: types were read",
            took.as_secs_f64()
        );
        collector.with(|recorder| recorder.remark(line));
    }
    loop {
        let Wait { number, task, sequence, .. } = wait;
        answers.answer(number, stacks.of(task, sequence, &|| wait.future()));
        match next() {
            Some(next) => wait = next,
            None => return,
        }
    }
}
