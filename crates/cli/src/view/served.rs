//! Serves the page on loopback. While the recording grows, so does the page.

use super::Flags;
use super::contents::{Contents, Others};
use crate::failure::{Failure, Outcome};
use crate::input::{self, Input};
use crate::{browser, message, recording_file};
use stackglass_view::server::ServedPage;
use stackglass_view::{Page, Server};
use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};
use std::{process, thread};

/// The least time between two readings of a recording that grows.
const BETWEEN: Duration = Duration::from_secs(1);
/// While the recording grows, reading takes at most one in so many parts of the time.
const SHARE: u32 = 10;
/// How often a recording is looked for that has just begun.
const BEGIN: Duration = Duration::from_millis(100);

pub(super) fn run(path: &Path, flags: &Flags) -> Outcome {
    if flags.until_stdin_ends {
        thread::spawn(|| {
            // Whatever ends it, nobody needs the page any more.
            let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
            process::exit(0);
        });
    }
    // What comes while it is read is read the next time.
    let first_size = size(path);
    let (contents, growing) = first(path, flags)?;
    let server = Server::new(&Page::new(&contents.packed), flags.port).map_err(Failure::new)?;
    let grows = if growing.is_some() { "; it still grows, and the page follows" } else { "" };
    if let Some(others) = growing {
        let (path, page, flags) = (path.to_owned(), server.page(), flags.clone());
        thread::spawn(move || follow(&path, first_size, others, &flags, &page));
    }
    writeln!(io::stdout(), "{}", server.address())?;
    message::print(&format!("{}{grows}. Ctrl-C ends this, as does closing the page", contents.shown));
    drop(contents);
    if !flags.no_open && browser::is_likely() {
        let address = server.one_time_address();
        if let Err(error) = browser::open(OsStr::new(&address)) {
            message::print(&format!("{error}: open the address above"));
        }
    } else if !flags.no_open {
        let port = server.port();
        message::print(&format!(
            "open the address above; from another machine after `ssh -L {port}:127.0.0.1:{port} HOST`"
        ));
    }
    server.run().map_err(Failure::new)?;
    Ok(0)
}

/// Reads what is there now. If the recording still grows, also returns what is shown beside it.
fn first(path: &Path, flags: &Flags) -> Result<(Contents, Option<Others>), Failure> {
    if !input::is_recording(path) && !flags.until_stdin_ends {
        return Ok((Contents::read(path, flags)?, None));
    }
    loop {
        match recording_file::read_growing(path) {
            Ok((recording, is_complete)) => {
                let others = Others::read(path, flags)?;
                let input = Input::of_recording(path, recording);
                let contents = Contents::of_recording(path, input, &others, flags)?;
                return Ok((contents, (!is_complete).then_some(others)));
            }
            Err(failure) if !flags.until_stdin_ends => return Err(failure),
            Err(_) => thread::sleep(BEGIN),
        }
    }
}

fn size(path: &Path) -> u64 {
    path.metadata().map_or(0, |file| file.len())
}

/// Reads the recording again when it has grown, until it is complete.
fn follow(path: &Path, first_size: u64, mut others: Others, flags: &Flags, page: &ServedPage) {
    let (mut seen, mut pause) = (first_size, BETWEEN);
    loop {
        seen = wait_for_more(path, seen, pause);
        let begin = Instant::now();
        // A part that cannot be read is there the next time; the page that is shown stays.
        if let Ok((recording, is_complete)) = recording_file::read_growing(path) {
            // A heap snapshot is in the recording once it has ended.
            if is_complete && let Ok(at_end) = Others::read(path, flags) {
                others = at_end;
            }
            let input = Input::of_recording(path, recording);
            let contents = Contents::of_recording(path, input, &others, flags);
            let shown = contents.is_ok_and(|contents| page.replace(&Page::new(&contents.packed)).is_ok());
            if is_complete && shown {
                return;
            }
        }
        pause = BETWEEN.max(begin.elapsed() * SHARE);
    }
}

/// Returns the size of a recording, once it is another one and the pause is over. Nothing waits for a recording that has stopped growing.
fn wait_for_more(path: &Path, seen: u64, pause: Duration) -> u64 {
    let (begin, mut before) = (Instant::now(), size(path));
    loop {
        thread::sleep(BETWEEN);
        let now = size(path);
        if now != seen && (begin.elapsed() >= pause || now == before) {
            return now;
        }
        before = now;
    }
}
