//! Programs that want a CPU all the time.

use std::process::{Child, Command, Stdio};

/// Programs that compute, and end with this value.
pub struct BusyLoops(Vec<Child>);

impl BusyLoops {
    /// Starts so many.
    pub fn start(number: usize) -> BusyLoops {
        let busy = |_| {
            let mut shell = Command::new("sh");
            shell.args(["-c", "while :; do :; done"]).stdin(Stdio::null()).spawn().expect("a shell starts")
        };
        BusyLoops((0..number).map(busy).collect())
    }
}

impl Drop for BusyLoops {
    fn drop(&mut self) {
        for busy in &mut self.0 {
            let _ = busy.kill();
            let _ = busy.wait();
        }
    }
}
