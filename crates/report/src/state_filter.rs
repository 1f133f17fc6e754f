//! Which thread states count: sources, trees and queries all ask.

use stackglass_profile::{State, word_buffer as data};

/// Selects samples by thread state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum StateFilter {
    /// All states.
    #[default]
    All,
    /// On a CPU.
    Awake,
    /// Asleep: blocked in the kernel.
    Asleep,
    /// Asleep, or ready and waiting for a CPU.
    NotOnCpu,
}

impl StateFilter {
    pub(crate) fn has(self, state: u64) -> bool {
        let awake = matches!(state, data::AWAKE | data::TASK);
        match self {
            StateFilter::All => true,
            StateFilter::Awake => awake,
            StateFilter::Asleep => state == data::ASLEEP,
            StateFilter::NotOnCpu => !awake,
        }
    }

    /// Whether samples in this state are selected.
    pub fn has_state(self, state: State) -> bool {
        self.has(state as u64)
    }

    /// What is counted in these states, where samples have times.
    pub fn noun(self) -> &'static str {
        match self {
            StateFilter::All => "time of threads",
            StateFilter::Awake => "CPU time",
            StateFilter::Asleep => "time asleep",
            StateFilter::NotOnCpu => "time asleep and ready",
        }
    }

    /// The name of what is counted: `wall`, `cpu` or `asleep`.
    pub fn word(self) -> &'static str {
        match self {
            StateFilter::All => "wall",
            StateFilter::Awake => "cpu",
            StateFilter::Asleep => "asleep",
            StateFilter::NotOnCpu => "not-on-cpu",
        }
    }
}
