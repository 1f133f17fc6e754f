//! A program reads its own tasks: a forked child freezes its parent, reads the frozen copy, and sends what it has found.

use super::encoded;
use super::read::{TasksOptions, read};
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
#[non_exhaustive]
pub enum OwnTasksError {
    /// No child process could be made.
    #[error("the tasks of this process cannot be read: no child process can be made: {0}")]
    NoChild(#[source] io::Error),
    /// The child could not read them: another process traces this one, or the system forbids it. The text says which.
    #[error("{0}")]
    NotRead(String),
    /// The child was not ready in time, and was ended.
    #[error("reading the tasks of this process took longer than {0:?}")]
    TooLong(Duration),
    /// The child ended without a result.
    #[error(
        "the child process that reads the tasks of this process has ended early (was it killed for lack of memory?)"
    )]
    Lost,
}

/// Reads the tasks of this process, within `limit`.
///
/// # Errors
/// [`OwnTasksError`].
pub fn read_own(limit: Duration) -> Result<TaskDump, OwnTasksError> {
    let options = TasksOptions { wait: Some(WAIT), ..TasksOptions::default() };
    let mut work = |parent| {
        let (kind, rest) = match read(parent, &options) {
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
