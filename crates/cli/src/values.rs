//! Parsers for the values of flags: durations, counts, process ids, and choices among a few words.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use stackglass_collect::launch::HeapAt;
use stackglass_profile::AllocationSampling;
use std::str::FromStr;
use std::time::Duration;

/// Numbers of signals (signal(7)).
const SIGHUP: i32 = 1;
const SIGQUIT: i32 = 3;
const SIGUSR1: i32 = 10;

/// Shortest sampling interval.
const SHORTEST_DELAY: Duration = Duration::from_micros(100);

/// Longest sampling interval.
const LONGEST_DELAY: Duration = Duration::from_secs(3600);

/// `1ms`, `90s`, `1h 30min`; a bare number means seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds)
            .map_err(|_| "expected a time, e.g. 500us, 1ms, 10s or 2min".into());
    }
    let unknown = |unit: &str| format!("unknown unit `{unit}`: write us, ms, s, min or h, e.g. 1ms or 10s");
    humantime::parse_duration(text).map_err(|error| match error {
        humantime::DurationError::UnknownUnit { unit, .. } if !unit.is_empty() => unknown(&unit),
        humantime::DurationError::NumberOverflow => "too long".into(),
        _ => "expected a time, e.g. 500us, 1ms, 10s or 2min".into(),
    })
}

/// A [`duration`] above zero.
pub(crate) fn positive_duration(text: &str) -> Result<Duration, String> {
    let duration = duration(text)?;
    if duration.is_zero() {
        return Err("must be longer than zero: 500ms or 30s, or omit the flag".into());
    }
    Ok(duration)
}

/// A [`duration`] between two samples of a thread. A unit is required.
pub(crate) fn delay(text: &str) -> Result<Duration, String> {
    if text.parse::<f64>().is_ok() {
        return Err(format!("missing unit, e.g. {text}ms or {text}us"));
    }
    let delay = duration(text)?;
    if delay < SHORTEST_DELAY {
        return Err(
            "shorter than 100us (10 000 samples a second): sampling would slow the program down too much"
                .into(),
        );
    }
    if delay > LONGEST_DELAY {
        return Err("longer than an hour".into());
    }
    Ok(delay)
}

/// The id of a process.
pub(crate) fn process_id(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("expected a process id, a number as ps and pgrep print it".into()),
        Ok(pid) => Ok(pid),
    }
}

/// `10000000`, `10_000_000`, `10M`, `2G`.
pub(crate) fn words(text: &str) -> Result<u64, String> {
    let plain: String = text.chars().filter(|c| *c != '_').collect();
    let (digits, factor) = match plain.char_indices().last() {
        Some((at, 'k' | 'K')) => (&plain[..at], 1_000),
        Some((at, 'm' | 'M')) => (&plain[..at], 1_000_000),
        Some((at, 'g' | 'G')) => (&plain[..at], 1_000_000_000),
        _ => (plain.as_str(), 1),
    };
    let n: u64 = digits.parse().map_err(|_| "expected a number of words: 10000000 or 10M".to_string())?;
    n.checked_mul(factor).ok_or_else(|| "too large".to_string())
}

/// Which allocations are recorded: `1` for all, `0.1` for a probability, `512KiB` for one sample in that many bytes.
pub(crate) fn allocation_sampling(text: &str) -> Result<AllocationSampling, String> {
    if let Ok(rate) = text.parse::<f64>() {
        return match rate {
            1.0 => Ok(AllocationSampling::Every),
            rate if (0.0..1.0).contains(&rate) => Ok(AllocationSampling::ScaledRate(rate)),
            _ => Err("expected a probability from 0 to 1, or a number of bytes with a unit: 512KiB".into()),
        };
    }
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let factor = match text[split..].to_ascii_lowercase().as_str() {
        "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        _ => return Err("expected a probability such as 0.1, or a number of bytes such as 512KiB".into()),
    };
    let n: u64 =
        text[..split].trim().parse().map_err(|_| "expected a whole number of bytes: 512KiB".to_string())?;
    match n.checked_mul(factor) {
        Some(0) => Err("expected at least one byte".into()),
        Some(bytes) if bytes > 1 => Ok(AllocationSampling::Bytes(bytes)),
        Some(_) => Ok(AllocationSampling::Every),
        None => Err("too large".into()),
    }
}

/// When a heap snapshot is taken: `exit`, `peak`, or one of the signals that the launcher reads and needs for nothing else.
pub(crate) fn heap_at(text: &str) -> Result<HeapAt, String> {
    let name = text.to_ascii_uppercase();
    match name.strip_prefix("SIG").unwrap_or(&name) {
        "EXIT" => Ok(HeapAt::Exit),
        "PEAK" => Ok(HeapAt::Peak),
        "USR1" => Ok(HeapAt::Signal(SIGUSR1)),
        "HUP" => Ok(HeapAt::Signal(SIGHUP)),
        "QUIT" => Ok(HeapAt::Signal(SIGQUIT)),
        _ => Err("expected exit, peak, or one of the signals USR1, HUP and QUIT".into()),
    }
}

/// A whole number from 0 up.
pub(crate) fn whole<T: FromStr + Default + PartialOrd>(text: &str) -> Result<T, String> {
    text.parse()
        .ok()
        .filter(|number| *number >= T::default())
        .ok_or_else(|| "expected a whole number >= 0, such as 12".into())
}

/// How many copies are compared, one with the other.
pub(crate) fn copies(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| *number >= 2);
    number.ok_or_else(|| "expected a whole number >= 2: copies are compared".into())
}

/// One of a few words. clap answers a wrong word with the list of all words.
pub(crate) fn one_of<T: Copy + Send + Sync>(
    all: &'static [T],
    word: fn(T) -> &'static str,
    help: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    let values = all.iter().map(move |value| PossibleValue::new(word(*value)).help(help(*value)));
    PossibleValuesParser::new(values).try_map(move |given| {
        all.iter().copied().find(|value| word(*value) == given).ok_or("it is none of them")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_people_write_them() {
        assert_eq!(duration("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("250us"), Ok(Duration::from_micros(250)));
        assert_eq!(duration("2min"), Ok(Duration::from_secs(120)));
        assert!(duration("-1").is_err() && duration("soon").is_err());
        assert!(duration("5kg").is_err_and(|why| why.contains("`kg`") && why.contains("1ms")));
        assert!(delay("5").is_err_and(|why| why.contains("5ms")));
        assert!(positive_duration("0").is_err() && positive_duration("1ms").is_ok());
        assert!(delay("99us").is_err() && delay("100us").is_ok());
        assert_eq!(allocation_sampling("1"), Ok(AllocationSampling::Every));
        assert_eq!(allocation_sampling("0.25"), Ok(AllocationSampling::ScaledRate(0.25)));
        assert_eq!(allocation_sampling("512KiB"), Ok(AllocationSampling::Bytes(512 << 10)));
        assert!(
            ["-1", "2", "KiB", "9 apples", "99999999999G"]
                .iter()
                .all(|text| allocation_sampling(text).is_err())
        );
        assert_eq!(words("10_000"), Ok(10_000));
        assert_eq!(words("10M"), Ok(10_000_000));
        assert_eq!(heap_at("exit"), Ok(HeapAt::Exit));
        assert_eq!((heap_at("SIGUSR1"), heap_at("hup")), (Ok(HeapAt::Signal(10)), Ok(HeapAt::Signal(1))));
        assert!(heap_at("KILL").is_err());
        assert!(words("M").is_err() && words("99999999999G").is_err());
    }
}
