//! The time of one thread: what it ran, waited and slept between two looks, and what of it was given to stacks.
//!
//! The rules are those of a sampler inside the program: what a thread ran goes to the next stack that is
//! taken while it runs, the rest to the stack it had before. Only here the kernel's account of a thread that
//! is on a processor lags behind by up to one of its ticks, so books are entered only at moments when the
//! thread is off the processor: asleep, or standing because we asked it to.

use super::threads::Account;

/// Rest below this is kept back until there is more: two clocks are never read at the same moment.
const WORTH_TELLING: i64 = 50_000;

/// The books of one thread.
#[derive(Clone, Copy, Debug)]
pub struct Books {
    at: u64,
    account: Account,
    pending: u64,
    given: u64,
    rest: i64,
    /// Of the rest, what it was ready to run.
    waited: u64,
}

impl Books {
    /// Books that begin at `at`.
    pub fn open(at: u64, account: Account) -> Books {
        Books { at, account, pending: 0, given: 0, rest: 0, waited: 0 }
    }

    /// When the last entry was made.
    pub fn until(&self) -> u64 {
        self.at
    }

    /// Enters a look. Clocks that seem to run backwards count as standing still.
    pub fn enter(&mut self, at: u64, account: Account) {
        let elapsed = at.saturating_sub(self.at);
        let ran = account.ran.saturating_sub(self.account.ran);
        self.waited += account.waited.saturating_sub(self.account.waited);
        self.at = self.at.max(at);
        self.account.ran = self.account.ran.max(account.ran);
        self.account.waited = self.account.waited.max(account.waited);
        self.pending += ran;
        self.rest = self.rest.saturating_add_unsigned(elapsed).saturating_sub_unsigned(ran);
    }

    /// What it ran and no stack has got yet.
    pub fn pending(&self) -> u64 {
        self.pending
    }

    /// A stack has got what was pending.
    pub fn give_pending(&mut self) {
        self.given += std::mem::take(&mut self.pending);
    }

    /// What it did not run and no stack has got yet, 0 while it is not worth telling (always told with `all`).
    pub fn rest(&self, all: bool) -> u64 {
        if self.rest >= WORTH_TELLING || all { self.rest.max(0) as u64 } else { 0 }
    }

    /// It stood for `time` because we asked it to: it was ready to run.
    pub fn stood(&mut self, time: u64) {
        self.waited += time;
    }

    /// Of the rest, the time in which it was ready to run; none of it is kept back.
    pub fn take_waited(&mut self) -> u64 {
        let waited = self.waited.min(self.rest(false));
        self.waited -= waited;
        waited
    }

    /// It has slept since: what it waited to wake up belongs to that.
    pub fn forget_waited(&mut self) {
        self.waited = 0;
    }

    /// A stack has got `time` of the rest.
    pub fn give_rest(&mut self, time: u64) {
        self.rest = self.rest.saturating_sub_unsigned(time);
    }

    /// All that was given as run.
    pub fn given(&self) -> u64 {
        self.given
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_sums_to_both_clocks() {
        let mut books = Books::open(1000, Account { ran: 50, waited: 7, turns: 1 });
        let (mut awake, mut asleep) = (0, 0);
        let (mut now, mut ran) = (1000, 50);
        for step in 0..10_000u64 {
            let elapsed = step * 7919 % 2_000_000;
            now += elapsed;
            ran += elapsed * (step % 3) / 2;
            books.enter(now, Account { ran, waited: 7, turns: step });
            assert_eq!(books.take_waited(), 0);
            if step % 5 == 0 {
                awake += books.pending();
                books.give_pending();
            }
            let rest = books.rest(false);
            asleep += rest;
            books.give_rest(rest);
        }
        awake += books.pending();
        books.give_pending();
        asleep += books.rest(true);
        assert_eq!((awake, books.given()), (ran - 50, ran - 50));
        assert_eq!(awake + asleep, now - 1000);
        books.enter(0, Account::default());
        assert_eq!((books.pending(), books.rest(true)), (0, 0));
    }

    #[test]
    fn short_waits_add_up() {
        let mut books = Books::open(0, Account::default());
        let mut waited = 0;
        for step in 1..=1000 {
            books
                .enter(step * 1_000_000, Account { ran: step * 970_000, waited: step * 20_000, turns: step });
            books.stood(10_000);
            let time = books.take_waited();
            books.give_rest(time);
            waited += time;
        }
        assert!((29_000_000..=30_000_000).contains(&waited), "{waited}");
        assert!(books.rest(true) < 1_100_000);
    }
}
