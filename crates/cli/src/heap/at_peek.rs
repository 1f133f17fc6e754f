//! Heap snapshots that peeks save (`STACKGLASS_PEEK_HEAP_SNAPSHOT`), with the notices of Julia.

use super::take::take;
use crate::message;
use stackglass_collect::peeks::responder::Responder;
use stackglass_inspect::heap::TakeOptions;
use stackglass_inspect::heap::output::default_output;
use stackglass_report::peek::{SAVING_HEAP_SNAPSHOT, heap_snapshot_saved};
use std::io::Write;
use std::thread::JoinHandle;

/// Snapshots that are being saved. Dropping this waits for them.
#[derive(Default)]
pub(crate) struct PeekSnapshots {
    threads: Vec<JoinHandle<()>>,
}

impl PeekSnapshots {
    /// Saves the heap of process `pid` on a separate thread, and finishes the response.
    pub(crate) fn save(&mut self, pid: u32, responder: Responder) {
        self.threads.retain(|thread| !thread.is_finished());
        let answer = responder.clone();
        let job = move || {
            save_at_peek(pid, &mut |line| {
                let text = format!("{line}\n");
                if !responder.write(text.as_bytes()) {
                    // Nothing can be done about a closed stderr.
                    let _ = std::io::stderr().lock().write_all(text.as_bytes());
                }
            });
            responder.finish(true);
        };
        match std::thread::Builder::new().name("stackglass-heap".into()).spawn(job) {
            Ok(thread) => self.threads.push(thread),
            Err(_) => answer.finish(false),
        }
    }
}

impl Drop for PeekSnapshots {
    fn drop(&mut self) {
        for thread in self.threads.drain(..) {
            // If it has failed, its panic was printed.
            let _ = thread.join();
        }
    }
}

/// Saves the heap of process `pid` in the current folder, or else in the temporary one. `say` receives the notices.
pub(crate) fn save_at_peek(pid: u32, say: &mut dyn FnMut(&str)) {
    let output = default_output(pid, None);
    if let Some(warning) = &output.warning {
        message::print(warning);
    }
    say(SAVING_HEAP_SNAPSHOT);
    match take(pid, &TakeOptions::default(), &output.path) {
        Ok(_) => say(&heap_snapshot_saved(&output.path.display().to_string())),
        Err(failure) => say(&format!("stackglass: no heap snapshot: {}", failure.line)),
    }
}
