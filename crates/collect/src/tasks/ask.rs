//! Asks the tasks of another process, which must link the crate `stackglass` and answer peeks.

use crate::asked::AskedTasks;
use crate::peeks::handler;
use crate::peeks::request::{PeekOptions, PeekRequest, ResponseEnd};
use stackglass_procfs::Status;
use std::time::{Duration, Instant};

/// How long to wait until the request is taken, and until it is answered. Another peek may come first.
const UNTIL_TAKEN: Duration = Duration::from_secs(5);
const UNTIL_ANSWERED: Duration = Duration::from_secs(20);
/// Time between two looks at the answer.
const LOOK: Duration = Duration::from_millis(2);
/// Most bytes of an answer.
const LONGEST: usize = 256 << 20;

/// Why tasks were not asked.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotAsked {
    #[error(
        "process {0} cannot be asked: name its tasks with `.task(\"name\")` of the crate stackglass, and call `stackglass::peek::install()` and `stackglass::task::enable_dumps()` when it starts"
    )]
    NoHandler(u32),
    #[error("process {0} cannot be asked: {1}")]
    Request(u32, std::io::Error),
    #[error("process {0} cannot be asked: {1}")]
    Signal(u32, handler::NotAsked),
    #[error(
        "process {0} has not answered: it is stopped, sees another /tmp, contains another version of stackglass, or runs under `stackglass run`"
    )]
    NoAnswer(u32),
    #[error("process {0} has ended, or has asked no task")]
    CutShort(u32),
    #[error(
        "process {0} has no tasks that can be asked: name them with `.task(\"name\")` of the crate stackglass, and call `stackglass::task::enable_dumps()` when the program starts"
    )]
    NoTasks(u32),
}

/// Asks all named tasks.
pub(super) fn tasks(pid: u32) -> Result<AskedTasks, NotAsked> {
    if !handler::carries_our_handler(pid) {
        return Err(NotAsked::NoHandler(pid));
    }
    let options = PeekOptions { asks_tasks: true, ..PeekOptions::default() };
    let mut request = PeekRequest::new(pid, &options).map_err(|error| NotAsked::Request(pid, error))?;
    handler::ask(pid).map_err(|error| NotAsked::Signal(pid, error))?;
    let asked = Instant::now();
    let mut text = Vec::new();
    while request.end().is_none() {
        let more = request.read_more().map_err(|error| NotAsked::Request(pid, error))?;
        text.extend_from_slice(&more);
        let waited = asked.elapsed();
        if !request.is_accepted() && waited > UNTIL_TAKEN || waited > UNTIL_ANSWERED || text.len() > LONGEST {
            return Err(NotAsked::NoAnswer(pid));
        }
        if more.is_empty() && request.end().is_none() {
            if Status::read(pid).is_none_or(|status| status.has_ended()) {
                return Err(NotAsked::CutShort(pid));
            }
            std::thread::sleep(LOOK);
        }
    }
    if request.end() != Some(ResponseEnd::Complete) {
        return Err(NotAsked::CutShort(pid));
    }
    let text = String::from_utf8_lossy(&text);
    // A notice that another peek goes on may precede the answer. An older version answers with a peek.
    let start = text.find("stackglass-asked-").ok_or(NotAsked::NoAnswer(pid))?;
    let asked = AskedTasks::parse(&text[start..]).ok_or(NotAsked::NoAnswer(pid))?;
    if asked.tasks.is_empty() { Err(NotAsked::NoTasks(pid)) } else { Ok(asked) }
}
