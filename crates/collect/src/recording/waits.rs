//! Samples of waiting tasks whose await stacks another thread reads: they are held until it has answered.
//!
//! The sampler asks for the stack of each wait that it meets, by number. The answers come in the order of the questions, soon
//! after. A sample whose wait was over too soon, or whose types are not known, keeps the frame `[waiting]`.

use stackglass_inspect::task_stacks::{AwaitStack, WaitStacks};
use stackglass_profile::Sample;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most samples that are held. The answering thread reads debug information first, which may take a second.
const MOST_HELD: usize = 1 << 16;

/// Answers to questions for await stacks.
#[derive(Default)]
pub struct WaitAnswers(Mutex<State>);

#[derive(Default)]
struct State {
    /// Questions up to this one are answered.
    answered: u64,
    /// The answers with stacks, by number.
    stacks: VecDeque<(u64, Arc<[AwaitStack]>)>,
    /// No more answers will come.
    is_closed: bool,
}

/// An answer.
pub(super) enum Answer {
    /// It will come.
    Later,
    /// The stack is not known.
    Unknown,
    Stacks(Arc<[AwaitStack]>),
}

impl WaitAnswers {
    /// Answers a question. All that precede it must be answered.
    pub fn answer(&self, question: u64, stacks: Option<WaitStacks>) {
        let mut state = self.lock();
        state.answered = question;
        state.stacks.extend(stacks.map(|stacks| (question, stacks.0)));
    }

    /// No more answers will come.
    pub fn close(&self) {
        self.lock().is_closed = true;
    }

    /// Takes an answer. Questions must be in the order of their numbers.
    fn take(&self, question: u64) -> Answer {
        let mut state = self.lock();
        // The samples of earlier questions were lost.
        while state.stacks.front().is_some_and(|(number, _)| *number < question) {
            state.stacks.pop_front();
        }
        match state.stacks.front() {
            Some((number, _)) if *number == question => {
                state.stacks.pop_front().map_or(Answer::Unknown, |(_, stacks)| Answer::Stacks(stacks))
            }
            _ if state.answered >= question || state.is_closed => Answer::Unknown,
            _ => Answer::Later,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic leaves whole answers behind.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A sample without its stack.
pub(super) struct HeldSample {
    /// Number of its question.
    pub question: u64,
    /// The task's id in its process.
    pub task: u64,
    pub sample: Sample,
}

/// The samples that are held.
#[derive(Default)]
pub(super) struct HeldSamples {
    answers: Option<Arc<WaitAnswers>>,
    held: VecDeque<HeldSample>,
}

impl HeldSamples {
    /// From now on questions are answered.
    pub fn await_answers(&mut self, answers: Arc<WaitAnswers>) {
        self.answers = Some(answers);
    }

    /// Holds a sample if its question may be answered. If not, returns it.
    pub fn hold(&mut self, sample: HeldSample) -> Option<HeldSample> {
        if self.answers.is_none() || sample.question == 0 {
            return Some(sample);
        }
        self.held.push_back(sample);
        None
    }

    /// The next sample that is held no longer, with its stacks if they are known.
    pub fn next(&mut self) -> Option<(HeldSample, Option<Arc<[AwaitStack]>>)> {
        let (answers, first) = (self.answers.as_ref()?, self.held.front()?);
        let stacks = match answers.take(first.question) {
            Answer::Later if self.held.len() <= MOST_HELD => return None,
            Answer::Later | Answer::Unknown => None,
            Answer::Stacks(stacks) => Some(stacks),
        };
        Some((self.held.pop_front()?, stacks))
    }

    /// Forgets all samples.
    pub fn forget(&mut self) {
        self.held.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stacks() -> WaitStacks {
        WaitStacks([AwaitStack { frames: Vec::new(), share: 1.0 }].into())
    }

    #[test]
    fn answers_come_in_order_and_some_never() {
        let answers = WaitAnswers::default();
        assert!(matches!(answers.take(1), Answer::Later));
        answers.answer(1, Some(stacks()));
        answers.answer(2, None);
        answers.answer(3, Some(stacks()));
        assert!(matches!(answers.take(1), Answer::Stacks(_)));
        assert!(matches!(answers.take(2), Answer::Unknown));
        assert!(matches!(answers.take(3), Answer::Stacks(_)));
        assert!(matches!(answers.take(4), Answer::Later));
        // Its sample was lost.
        answers.answer(4, Some(stacks()));
        answers.answer(5, Some(stacks()));
        assert!(matches!(answers.take(5), Answer::Stacks(_)));
        answers.close();
        assert!(matches!(answers.take(6), Answer::Unknown));
    }
}
