//! Executors and thread pools: libraries that run the program's code on their own threads.
//!
//! Their frames between the start of a thread and the program's code say nothing about the program, and there are many
//! of them. The rules are names of crates and modules.

use stackglass_profile::Frame;

/// Executors by name, with the modules that run other code. The names appear in reports.
const EXECUTORS: &[(&str, &[&str])] = &[
    ("tokio", &["tokio", "mio", "actix_rt"]),
    ("rayon", &["rayon", "rayon_core"]),
    (
        "smol",
        &[
            "smol",
            "async_std::rt",
            "async_std::task",
            "async_executor",
            "async_global_executor",
            "async_io",
            "async_task",
            "blocking",
            "futures_lite",
        ],
    ),
    ("futures", &["futures_executor", "futures_util", "futures_core", "futures_task"]),
];

/// Parts of them that do the program's work.
const WORK: &[&str] =
    &["rayon::slice::mergesort", "rayon::slice::quicksort", "rayon::slice::sort", "tokio::fs"];

/// Code that an executor calls the program through.
const GLUE: &[&str] = &[
    "core::future",
    "core::iter",
    "core::option",
    "core::pin",
    "core::result",
    "core::slice::iter",
    "std::thread::local",
    "std::thread::scoped",
    "tracing::instrument",
    "stackglass::task",
];

/// A set of executors, as bits by their place in the table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Executors(u8);

impl Executors {
    /// The executor that a frame belongs to, or none.
    pub(crate) fn from_frame(frame: &Frame) -> Executors {
        if frame.foreign || is_under(frame, WORK) {
            return Executors::default();
        }
        let place = EXECUTORS.iter().position(|(_, modules)| is_under(frame, modules));
        Executors(place.map_or(0, |place| 1 << place))
    }

    pub(crate) fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Both sets together.
    pub(crate) fn and(self, others: Executors) -> Executors {
        Executors(self.0 | others.0)
    }

    /// `tokio`, `tokio and rayon`.
    pub(crate) fn names(self) -> String {
        let known = EXECUTORS.iter().enumerate().filter(|(place, _)| self.0 & (1 << place) != 0);
        known.map(|(_, (name, _))| *name).collect::<Vec<_>>().join(" and ")
    }
}

/// Whether an executor may call the program through this function.
pub(crate) fn is_glue(frame: &Frame) -> bool {
    !frame.foreign && is_under(frame, GLUE)
}

fn is_under(frame: &Frame, modules: &[&str]) -> bool {
    modules.iter().any(|module| {
        frame.func.strip_prefix(*module).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(func: &str) -> Frame {
        Frame { func: func.into(), foreign: false, ..Frame::unknown(0) }
    }

    fn executors(func: &str) -> String {
        Executors::from_frame(&named(func)).names()
    }

    #[test]
    fn executors_are_told_by_module() {
        assert_eq!(executors("tokio::runtime::task::core::Core::poll::{closure}"), "tokio");
        assert_eq!(executors("rayon_core::registry::WorkerThread::wait_until_cold"), "rayon");
        for other in
            ["rayon::slice::mergesort::par_mergesort", "tokio_util::codec::next", "shop::tokio::run", ""]
        {
            assert_eq!(executors(other), "", "{other}");
        }
        let tokio = Executors::from_frame(&named("mio::poll::Poll::poll"));
        let rayon = Executors::from_frame(&named("rayon::vec::drive"));
        assert_eq!(rayon.and(tokio).names(), "tokio and rayon");
        assert!(is_glue(&named("core::future::future::Future::poll")));
    }
}
