//! A program reads its own tasks: a forked child freezes its parent, reads the frozen copy, and sends what it has found.

use super::{TasksOptions, encoded, read_with};
use crate::asked::AskedTasks;
use crate::forked_child::{self, NoAnswer};
use stackglass_profile::task_dump::TaskDump;
use std::io;
use std::time::Duration;

/// Longest dump that is read.
const LONGEST: u64 = 1 << 30;
/// How long others that trace this process are waited for. A debugger stays.
const WAIT: Duration = Duration::from_secs(1);
/// Before a dump, and before a message.
const DUMP: u8 = 1;
const MESSAGE: u8 = 2;

/// Why a program cannot read its own tasks.
#[derive(Debug, thiserror::Error)]
pub enum OwnTasksError {
    /// No child process could be made.
    #[error("no child process can be made: {0}")]
    NoChild(io::Error),
    /// The child could not read them.
    #[error("{0}")]
    NotRead(String),
    /// The child was not ready in time, and was ended.
    #[error("it took longer than {0:?}")]
    TooLong(Duration),
    /// The child ended without a result.
    #[error("the child process that reads them has ended early (was it killed for lack of memory?)")]
    Lost,
}

/// Reads the tasks of this process, within `limit`. `asked`: what its tasks have said, for those whose types are not known.
///
/// # Errors
/// [`OwnTasksError`].
pub fn read_own(limit: Duration, asked: Option<&AskedTasks>) -> Result<TaskDump, OwnTasksError> {
    let options = TasksOptions { wait: Some(WAIT), ..TasksOptions::default() };
    let mut work = |parent| {
        let (kind, rest) = match read_with(parent, asked, &options) {
            Ok(dump) => (DUMP, encoded::encode(&dump)),
            Err(error) => (MESSAGE, error.to_string().into_bytes()),
        };
        [&[kind], &rest[..]].concat()
    };
    let answer = forked_child::ask(limit, LONGEST, &mut work).map_err(|error| match error {
        NoAnswer::NoChild(error) => OwnTasksError::NoChild(error),
        NoAnswer::TooLong(limit) => OwnTasksError::TooLong(limit),
    })?;
    match answer.split_first() {
        Some((&DUMP, dump)) => encoded::decode(dump).ok_or(OwnTasksError::Lost),
        Some((&MESSAGE, text)) => Err(OwnTasksError::NotRead(String::from_utf8_lossy(text).into_owned())),
        _ => Err(OwnTasksError::Lost),
    }
}
