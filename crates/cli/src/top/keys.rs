//! Keys, read on a thread of their own.
//!
//! crossterm's reader neither returns nor fails when its terminal is gone: it asks again, for ever. Here that
//! keeps nobody from leaving.

use ratatui::crossterm::event::{self, Event};
use std::sync::mpsc::{Receiver, channel};

/// Keys and changes of size as they come. The sender ends when they cannot be read.
pub(super) fn read() -> std::io::Result<Receiver<Event>> {
    let (sender, receiver) = channel();
    std::thread::Builder::new().name("stackglass-keys".into()).spawn(move || {
        while let Ok(event) = event::read() {
            if sender.send(event).is_err() {
                return;
            }
        }
    })?;
    Ok(receiver)
}
