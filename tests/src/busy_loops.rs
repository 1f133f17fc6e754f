//! Programs that want a CPU all the time.

use crate::Background;
use std::process::{Command, Stdio};

/// Programs that compute, and end with this value.
pub struct BusyLoops(#[expect(dead_code, reason = "they end with it")] Vec<Background>);

impl BusyLoops {
    /// Starts so many.
    pub fn start(number: usize) -> BusyLoops {
        let busy = |_| {
            let mut shell = Command::new("sh");
            Background::start(shell.args(["-c", "while :; do :; done"]).stdin(Stdio::null()))
        };
        BusyLoops((0..number).map(busy).collect())
    }
}
