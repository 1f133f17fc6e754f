//! A program in the background.

use std::ops::{Deref, DerefMut};
use std::process::{Child, Command};

/// A program that is killed and reaped with this value.
pub struct Background(Child);

impl Background {
    /// Starts a program.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start(command: &mut Command) -> Background {
        Background(command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}")))
    }
}

impl Deref for Background {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Background {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
