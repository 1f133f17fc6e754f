//! Whether stacks at the ends of system calls are only where a thread unblocked the signal.
//!
//! A thread's frequent timer is silent in system calls. If many of its stacks are at the end of one all the same, the thread blocked the signal,
//! which came where the mask was restored: by a call, or at the return from a handler. What the rare timer finds at the end of a
//! call may then be such a release as well, and no long call.

/// The stacks of one thread's frequent timer, in all and at the ends of calls. All zeros is none.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct MaskReleases {
    all: u32,
    at_ends: u32,
}

impl MaskReleases {
    /// Stacks that are enough to tell.
    const ENOUGH: u32 = 16;
    /// Stacks after which earlier ones count half.
    const MOST: u32 = 256;

    /// The frequent timer has taken a stack.
    pub(crate) fn push(&mut self, is_at_end: bool) {
        if self.all >= MaskReleases::MOST {
            (self.all, self.at_ends) = (self.all / 2, self.at_ends / 2);
        }
        self.all += 1;
        self.at_ends += u32::from(is_at_end);
    }

    /// Whether the end of a call says nothing.
    pub(crate) fn are_releases(&self) -> bool {
        self.all >= MaskReleases::ENOUGH && self.at_ends * 4 > self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_stacks_at_the_ends_of_calls_are_releases() {
        let mut releases = MaskReleases::default();
        (0..15).for_each(|_| releases.push(true));
        assert!(!releases.are_releases(), "too few");
        releases.push(true);
        assert!(releases.are_releases());
        // The thread no longer blocks the signal.
        (0..2000).for_each(|number| releases.push(number % 10 == 0));
        assert!(!releases.are_releases());
        (0..2000).for_each(|number| releases.push(number % 3 == 0));
        assert!(releases.are_releases());
    }
}
