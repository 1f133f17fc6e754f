//! Copies of a process for `heap watch`, taken on a thread of their own: signals are read meanwhile.

use stackglass_heap_report::answers::alike::AlikeSums;
use stackglass_heap_report::answers::growth::Sum;
use stackglass_heap_report::answers::watch::TakenCopy;
use stackglass_inspect::heap::Taken;
use stackglass_profile::heap_graph::HeapGraph;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};

/// What is kept of a copy.
pub(super) struct Copied {
    pub(super) copy: TakenCopy,
    pub(super) sums: AlikeSums,
    /// Remarks for the user.
    pub(super) remarks: Vec<String>,
}

/// A thread that takes copies.
pub(super) struct Copies {
    ask: Sender<()>,
    answers: Receiver<Result<Copied, String>>,
}

impl Copies {
    /// Starts the thread. Its end, or that of this process, ends the copy.
    pub(super) fn start(take: impl Fn() -> Result<(HeapGraph, Taken), String> + Send + 'static) -> Copies {
        let (ask, asked) = channel();
        let (answer, answers) = channel();
        let job = move || {
            while asked.recv().is_ok() {
                // The graph is dropped before the next one is made.
                let copied = take().map(|(graph, taken)| Copied::new(&graph, taken));
                if answer.send(copied).is_err() {
                    return;
                }
            }
        };
        // Without a thread, the answer says so.
        let _ = std::thread::Builder::new().name("stackglass-heap".into()).spawn(job);
        Copies { ask, answers }
    }

    /// Asks for a copy.
    pub(super) fn ask(&self) {
        // A thread that has ended gives no answer.
        let _ = self.ask.send(());
    }

    /// The copy that was asked for, when it is ready.
    pub(super) fn answer(&self) -> Option<Result<Copied, String>> {
        match self.answers.try_recv() {
            Ok(answer) => Some(answer),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Err("no thread could be started that copies".into())),
        }
    }
}

impl Copied {
    fn new(graph: &HeapGraph, taken: Taken) -> Copied {
        let totals = &taken.totals;
        let copy = TakenCopy {
            typed: Sum { count: totals.typed_blocks, self_size: totals.typed_bytes },
            pause: taken.pause.whole,
            ..TakenCopy::default()
        };
        Copied { copy, sums: AlikeSums::new(graph), remarks: taken.remarks }
    }
}
