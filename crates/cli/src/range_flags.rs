//! `--from` and `--to`: which part of the time counts.

use crate::failure::Failure;
use crate::values::duration;
use clap::Args;
use stackglass_profile::{Nanos, TimeRange};
use std::time::Duration;

/// The flags of every verb that can count a part of the time.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct RangeFlags {
    /// Only what happens from this moment on: 2s, 350ms (time since the start)
    #[arg(long = "from", id = "range_from", value_name = "TIME", value_parser = duration)]
    begin: Option<Duration>,

    /// Only what happens up to this moment
    #[arg(long = "to", id = "range_to", value_name = "TIME", value_parser = duration)]
    end: Option<Duration>,
}

impl RangeFlags {
    /// Whether one of the flags was given.
    pub(crate) fn given(&self) -> bool {
        self.begin.is_some() || self.end.is_some()
    }

    /// The range.
    ///
    /// # Errors
    /// If it is empty.
    pub(crate) fn range(&self) -> Result<TimeRange, Failure> {
        let nanos = |moment: Duration| Nanos(u64::try_from(moment.as_nanos()).unwrap_or(u64::MAX));
        let range = TimeRange { from: self.begin.map(nanos), to: self.end.map(nanos) };
        if range.to.is_some_and(|to| range.from.unwrap_or_default() >= to) {
            return Err(Failure::new("--to must be later than --from"));
        }
        Ok(range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_an_end_after_its_begin() {
        let range = |begin: Option<u64>, end: Option<u64>| {
            let [begin, end] = [begin, end].map(|ms| ms.map(Duration::from_millis));
            RangeFlags { begin, end }.range().ok()
        };
        assert_eq!(range(None, None), Some(TimeRange::default()));
        assert_eq!(
            range(Some(2), Some(3)),
            Some(TimeRange { from: Some(Nanos(2_000_000)), to: Some(Nanos(3_000_000)) })
        );
        assert_eq!((range(Some(3), Some(3)), range(None, Some(0))), (None, None));
        assert!(range(Some(3), None).is_some());
    }
}
