//! The formatters of percentages, thousands and durations.

/// `part` of `whole` in percent; 0 if `whole` is 0.
pub fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

/// What a share is of: `of CPU time`, `of the bytes`.
pub(crate) fn of_all(noun: &str) -> String {
    if noun.contains("time") { format!("of {noun}") } else { format!("of the {noun}") }
}

/// A share in percent with two significant digits: `83 %`, `4.2 %`, `0.03 %`. Less than all is never `100 %`.
pub fn percent_text(part: u64, whole: u64) -> String {
    let percent = percent(part, whole);
    match percent {
        p if p >= 99.5 && part < whole => format!("{:.1} %", (p * 10.0).floor() / 10.0),
        p if p >= 9.95 => format!("{p:.0} %"),
        p if p >= 0.095 || p == 0.0 => format!("{p:.1} %"),
        p => format!("{p:.2} %"),
    }
}

/// A measured duration in nanoseconds with three significant digits: `3.02 s`, `41.5 ms`, `17.0 µs`.
pub fn duration_text(ns: u64) -> String {
    let seconds = ns as f64 * 1e-9;
    let (value, unit) = match seconds {
        s if s >= 0.9995 => (s, "s"),
        s if s >= 0.000_999_5 => (s * 1e3, "ms"),
        s => (s * 1e6, "µs"),
    };
    let decimals = match value {
        v if v >= 99.95 || v == 0.0 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.decimals$} {unit}")
}

/// How long a program stood still: `paused for 1.25 ms`, `not paused`.
pub fn pause_text(ns: u64) -> String {
    if ns == 0 { "not paused".to_owned() } else { format!("paused for {}", duration_text(ns)) }
}

/// Milliseconds without a unit, with a decimal below 100: `41.5`, `1 234`.
pub fn millis_text(ns: u64) -> String {
    let ms = ns as f64 * 1e-6;
    if ms >= 99.95 { grouped(ms.round() as u64) } else { format!("{ms:.1}") }
}

/// A part of a duration, with the unit once if it is the same: `10.7 of 246 ms`.
pub fn part_text(part: u64, whole: u64) -> String {
    let (part, whole) = (duration_text(part), duration_text(whole));
    match (part.split_once(' '), whole.split_once(' ')) {
        (Some((number, unit)), Some((_, other))) if unit == other || number == "0" => {
            format!("{number} of {whole}")
        }
        _ => format!("{part} of {whole}"),
    }
}

/// A share in percent with one decimal, as pictures and the page show it: `33.3 %`, `0.03 %`, `100 %`.
pub fn percent_with_decimal(part: u64, whole: u64) -> String {
    let percent = percent(part, whole.max(1));
    let digits = match percent {
        p if p >= 99.95 => 0,
        p if p >= 1.0 || part == 0 => 1,
        _ => 2,
    };
    format!("{percent:.digits$} %")
}

/// A number of bytes with three significant digits: `17 B`, `4.20 kB`, `345 MB`. A kilobyte has 1000 bytes.
///
/// ```
/// use stackglass_report::numbers::bytes_text;
///
/// assert_eq!([bytes_text(17), bytes_text(4_200), bytes_text(999_999)], ["17 B", "4.20 kB", "1.00 MB"]);
/// ```
pub fn bytes_text(bytes: u64) -> String {
    if bytes < 1000 {
        format!("{bytes} B")
    } else {
        with_prefix(bytes, &["kB", "MB", "GB", "TB", "PB", "EB"])
    }
}

/// A number with three significant digits from 100 000 on: `12 345`, `345 k`, `1.23 M`.
///
/// ```
/// use stackglass_report::numbers::count_text;
///
/// assert_eq!([count_text(12_345), count_text(345_678), count_text(1_234_567)], ["12 345", "346 k", "1.23 M"]);
/// ```
pub fn count_text(count: u64) -> String {
    if count < 100_000 { grouped(count) } else { with_prefix(count, &["k", "M", "G", "T", "P", "E"]) }
}

/// A number of at least 1000 with the first unit that makes it smaller than 1000.
fn with_prefix(number: u64, units: &[&str]) -> String {
    let mut value = number as f64;
    let mut unit = "";
    for next in units {
        (value, unit) = (value / 1000.0, next);
        if value < 999.5 {
            break;
        }
    }
    let decimals = match value {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.decimals$} {unit}")
}

/// A configured duration in nanoseconds: `1 ms`, `0.5 ms`.
pub fn setting_text(ns: u64) -> String {
    match ns {
        ns if ns >= 1_000_000_000 => format!("{} s", ns as f64 / 1e9),
        ns => format!("{} ms", ns as f64 / 1e6),
    }
}

/// A number with its noun: `1 thread`, `4 threads`, `12 345 hits`.
pub fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(n), if n == 1 { one } else { many })
}

/// A number in groups of three digits, from five digits on: `5413`, `12 345`.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) && digits.len() > 4 {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses() {
        assert_eq!(pause_text(0), "not paused");
        assert_eq!(pause_text(40_000), "paused for 40.0 µs");
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!(
            [percent_text(83, 100), percent_text(42, 1000), percent_text(3, 10_000)],
            ["83 %", "4.2 %", "0.03 %"]
        );
        assert_eq!(
            [percent_text(9_999, 10_000), percent_text(7, 7), percent_text(0, 0)],
            ["99.9 %", "100 %", "0.0 %"]
        );
        assert_eq!(
            [duration_text(3_021_000_000), duration_text(41_500_000), duration_text(17_000)],
            ["3.02 s", "41.5 ms", "17.0 µs"]
        );
        assert_eq!(
            [duration_text(999_900_000), duration_text(123_400_000_000), duration_text(0)],
            ["1.00 s", "123 s", "0 µs"]
        );
        assert_eq!(
            [grouped(7), grouped(5413), grouped(12_345), grouped(1_234_567)],
            ["7", "5413", "12 345", "1 234 567"]
        );
        assert_eq!(
            [setting_text(1_000_000), setting_text(500_000), setting_text(2_000_000_000)],
            ["1 ms", "0.5 ms", "2 s"]
        );
        assert_eq!(counted(1, "thread", "threads"), "1 thread");
        assert_eq!(
            [percent_with_decimal(1, 1), percent_with_decimal(1, 3), percent_with_decimal(1, 3000)],
            ["100 %", "33.3 %", "0.03 %"]
        );
        assert_eq!(percent_with_decimal(0, 0), "0.0 %");
    }

    #[test]
    fn parts() {
        assert_eq!(part_text(10_700_000, 246_000_000), "10.7 of 246 ms");
        assert_eq!(part_text(0, 2_000_000_000), "0 of 2.00 s");
        assert_eq!(part_text(10_700_000, 2_000_000_000), "10.7 ms of 2.00 s");
    }
}
