//! Async tasks: with them a profile shows time by task, not only by thread.
//!
//! ```
//! use stackglass::task::TaskExt;
//!
//! async fn serve() -> u32 { 7 }
//!
//! # futures_executor_block_on(async {
//! let answer = stackglass::task::instrument(serve(), "serve").await; // or:
//! let same = serve().task("serve").await;
//! # assert_eq!(answer, same);
//! # });
//! # fn futures_executor_block_on<F: Future>(future: F) -> F::Output {
//! #     let mut future = std::pin::pin!(future);
//! #     let mut context = std::task::Context::from_waker(std::task::Waker::noop());
//! #     loop {
//! #         if let std::task::Poll::Ready(value) = future.as_mut().poll(&mut context) { return value; }
//! #     }
//! # }
//! ```
//!
//! Wrap a future when it is passed to the executor: `tokio::spawn(serve().task("serve"))`, or
//! `stackglass::task::spawn("serve", serve())` with the feature `tokio`, or `#[stackglass::task]` on an async function with the
//! feature `macros`. This works with any executor and in every profile of the process: with [`profile!`](crate::profile!),
//! and under `stackglass record`, whose reports then show time by task. A sample that is taken while a thread polls
//! the future has that task. Outside of all tasks, a thread is its own task. If one instrumented future polls another, the
//! innermost counts.
//!
//! [`dump`] tells what all tasks wait for, line by line, named or not. From outside, `stackglass tasks PID` does so.
//!
//! A poll costs a few nanoseconds more, sampled or not. A task costs some tens of nanoseconds to create, and 256 bytes while
//! it lives. Up to 131 072 live tasks have names.

use pin_project_lite::pin_project;
use stackglass_profile::TaskId;
use stackglass_sampler::task::Task;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};

mod dump;
#[cfg(feature = "tokio")]
mod on_tokio;
pub use dump::{TaskDump, dump};
#[cfg(all(feature = "tokio", tokio_unstable))]
pub use on_tokio::hook;
#[cfg(feature = "tokio")]
pub use on_tokio::spawn;
pub use stackglass_inspect::tasks::OwnTasksError as DumpError;

pin_project! {
    /// A future that is a separate task in profiles. [`instrument`] creates it.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct Instrumented<F> {
        #[pin]
        future: F,
        task: Task,
    }

    impl<F> PinnedDrop for Instrumented<F> {
        fn drop(this: Pin<&mut Self>) {
            // The future goes first, and nobody may read it meanwhile.
            this.project().task.close();
        }
    }
}

/// Makes a future a separate task in profiles, with a name and the place of this call.
///
/// A name is cut after 64 bytes.
#[track_caller]
pub fn instrument<F: Future>(future: F, name: impl AsRef<str>) -> Instrumented<F> {
    let place = Location::caller();
    let task = Task::new(name.as_ref(), place.file(), place.line());
    Instrumented { future, task }
}

/// [`instrument`] as a method of every future.
pub trait TaskExt: Future + Sized {
    /// Makes this future a separate task in profiles, with a name and the place of this call.
    #[track_caller]
    fn task(self, name: impl AsRef<str>) -> Instrumented<Self> {
        instrument(self, name)
    }
}

impl<F: Future> TaskExt for F {}

impl<F> Instrumented<F> {
    /// The task's id, as in reports and [`crate::fetch`]: unique in the process and never zero.
    pub fn id(&self) -> TaskId {
        TaskId(self.task.id())
    }
}

impl<F: Future> Future for Instrumented<F> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        this.task.poll_future(this.future, context)
    }
}
