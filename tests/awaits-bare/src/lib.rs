//! Tasks of a library without debug information. Their types are its own, so no other crate describes them.

use std::pin::Pin;
use std::time::Duration;

/// Starts a task that waits, and returns its id.
pub fn start() -> u64 {
    let task = tokio::spawn(async {
        tokio::time::sleep(Duration::from_secs(3600)).await;
    });
    task.id().to_string().parse().expect("an id is a number")
}

/// A future whose type only this library knows.
pub fn boxed() -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(naps())
}

async fn naps() {
    tokio::time::sleep(Duration::from_secs(3600)).await;
}
