//! Reads keys on a separate thread.
//!
//! crossterm's reader neither returns nor fails when the terminal is gone. On its own thread it cannot block the exit.

use ratatui::crossterm::event::{self, Event};
use std::sync::mpsc::{Receiver, channel};

/// Keys and resize events. The channel closes when they cannot be read any more.
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
