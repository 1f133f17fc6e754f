//! `#[stackglass::task]`: functions of every kind, and what they are called in a profile.
#![cfg(feature = "macros")]

use std::hint::black_box;
use std::num::ParseIntError;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

fn drive<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return value;
        }
    }
}

fn work() {
    for _ in 0..4000 {
        black_box((0..4000u64).fold(1, |a, b| (black_box(a) * 31 % 1_000_003) ^ b));
    }
}

/// Documented, generic, with a bound and an early return.
#[stackglass::task]
async fn parsed<T>(text: T) -> Result<u64, ParseIntError>
where
    T: AsRef<str>,
{
    work();
    let text = text.as_ref();
    if text.is_empty() {
        return Ok(0);
    }
    let n = text.parse::<u64>()?;
    Ok(n + 1)
}

struct Client {
    calls: u32,
}

impl Client {
    #[stackglass::task("client's call")]
    pub(crate) async fn call(&mut self) -> u32 {
        work();
        self.calls += 1;
        self.calls
    }

    #[stackglass::task]
    #[allow(clippy::unused_async)]
    async fn r#move(self) {}
}

#[test]
fn functions_are_tasks_with_their_names() {
    let mut client = Client { calls: 1 };
    stackglass::profile!({
        assert_eq!(drive(parsed("41")), Ok(42));
        assert_eq!(drive(parsed(String::new())), Ok(0));
        assert!(drive(parsed("x")).is_err());
        assert_eq!(drive(client.call()), 2);
        drive(client.r#move());
    });
    let recording = stackglass::recording();
    for (name, tasks) in [("parsed", 3), ("client's call", 1)] {
        let found: Vec<_> = recording.tasks.iter().filter(|task| &*task.name == name).collect();
        assert_eq!(found.len(), tasks, "{:?}", recording.tasks);
        assert!(found.iter().all(|task| &*task.file == file!() && task.line > 20), "{found:?}");
    }
}
