//! The options of a report, and their names.

use std::ops::RangeInclusive;
use std::str::FromStr;

/// An unknown option value.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{given}` is not a {what}: use {valid}")]
pub struct UnknownValue {
    /// The given word.
    pub given: String,
    /// The kind of option.
    pub what: &'static str,
    /// The valid words.
    pub valid: &'static str,
}

/// Defines an option whose values are words.
macro_rules! option_words {
    ($(#[$doc:meta])* $name:ident($what:literal) { $($(#[$vdoc:meta])* $variant:ident = $word:literal),+ $(,)? } $valid:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
        pub enum $name { $($(#[$vdoc])* $variant),+ }

        impl FromStr for $name {
            type Err = UnknownValue;

            fn from_str(word: &str) -> Result<$name, UnknownValue> {
                match word {
                    $($word => Ok($name::$variant),)+
                    _ => Err(UnknownValue { given: word.to_owned(), what: $what, valid: $valid }),
                }
            }
        }

        impl $name {
            /// Its name on command lines.
            pub fn word(self) -> &'static str {
                match self { $($name::$variant => $word),+ }
            }

            /// All values.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];
        }
    };
}

pub(crate) use option_words;

option_words! {
    /// Shape of a report.
    Format("report format") {
        /// Callers above what they call.
        #[default]
        Tree = "tree",
        /// One row for each function and line.
        Flat = "flat",
    } "tree or flat"
}

option_words! {
    /// Order of siblings in a tree, and of rows in a flat table; always ascending.
    SortedBy("sort key") {
        /// File, then function, then line.
        #[default]
        FileFuncLine = "filefuncline",
        /// Snapshots in it or below it.
        Count = "count",
        /// Snapshots that ended in it.
        Overhead = "overhead",
        /// Snapshots that ended in it or below it, with recursion folded. Trees only.
        FlatCount = "flat_count",
    } "filefuncline, count, overhead or flat_count"
}

option_words! {
    /// What a report is divided by.
    GroupBy("grouping") {
        /// One report for everything.
        #[default]
        None = "none",
        /// Each thread.
        Thread = "thread",
        /// Each task.
        Task = "task",
        /// Each task of each thread.
        ThreadTask = "thread,task",
        /// Each thread of each task.
        TaskThread = "task,thread",
    } "none, thread, task, thread,task or task,thread"
}

option_words! {
    /// How recursion is folded, by call site.
    Recur("recursion mode") {
        /// No folding.
        #[default]
        Off = "off",
        /// A call site that is already on the stack folds back to it, unless it is foreign.
        Flat = "flat",
        /// As `Flat`, for foreign call sites as well.
        FlatC = "flatc",
    } "off, flat or flatc"
}

/// Which threads or tasks count.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Pick {
    /// All of them.
    #[default]
    All,
    /// One.
    One(u64),
    /// Each of these.
    List(Vec<u64>),
    /// Those from the first to the last, both included.
    Range(RangeInclusive<u64>),
    /// Those in any of these ranges.
    Ranges(Vec<RangeInclusive<u64>>),
}

impl Pick {
    /// True when this id is picked.
    pub fn has(&self, id: u64) -> bool {
        match self {
            Pick::All => true,
            Pick::One(one) => *one == id,
            Pick::List(list) => list.contains(&id),
            Pick::Range(range) => range.contains(&id),
            Pick::Ranges(ranges) => ranges.iter().any(|range| range.contains(&id)),
        }
    }
}

impl From<u64> for Pick {
    fn from(one: u64) -> Pick {
        Pick::One(one)
    }
}

impl From<Vec<u64>> for Pick {
    fn from(list: Vec<u64>) -> Pick {
        Pick::List(list)
    }
}

impl From<RangeInclusive<u64>> for Pick {
    fn from(range: RangeInclusive<u64>) -> Pick {
        Pick::Range(range)
    }
}

impl FromStr for Pick {
    type Err = UnknownValue;

    /// `all`, `3`, `0x7f00`, `1,2,5`, `2-9` or `2..9` (both included), or a list of all these.
    fn from_str(text: &str) -> Result<Pick, UnknownValue> {
        let unknown = || UnknownValue {
            given: text.to_owned(),
            what: "choice of ids",
            valid: "all, or numbers and ranges with commas between them (1,3,5-7)",
        };
        if text == "all" {
            return Ok(Pick::All);
        }
        let parts: Option<Vec<_>> = text.split(',').map(range).collect();
        let mut parts = parts.ok_or_else(unknown)?;
        let single = |range: &RangeInclusive<u64>| range.start() == range.end();
        Ok(match &mut parts[..] {
            [one] if single(one) => Pick::One(*one.start()),
            [range] => Pick::Range(range.clone()),
            all if all.iter().all(single) => Pick::List(all.iter().map(|one| *one.start()).collect()),
            _ => Pick::Ranges(parts),
        })
    }
}

/// `7`, `0x7f00`, `2-9`, `2..9`; `None` for a range that ends before it begins.
fn range(text: &str) -> Option<RangeInclusive<u64>> {
    let number = |word: &str| {
        let word = word.trim();
        match word.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).ok(),
            None => word.parse().ok(),
        }
    };
    let (first, last) = text.split_once("..").or_else(|| text.split_once('-')).unwrap_or((text, text));
    let (first, last) = (number(first)?, number(last)?);
    (first <= last).then_some(first..=last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_name_values_and_errors_list_them() {
        for key in SortedBy::ALL {
            assert_eq!(key.word().parse(), Ok(*key));
        }
        let error = "table".parse::<Format>().unwrap_err();
        assert_eq!(error.to_string(), "`table` is not a report format: use tree or flat");
    }

    #[test]
    fn picks_are_read() {
        assert_eq!("3".parse(), Ok(Pick::One(3)));
        assert_eq!("0x1f,2".parse(), Ok(Pick::List(vec![31, 2])));
        assert_eq!("2..9".parse(), Ok(Pick::Range(2..=9)));
        assert_eq!("1,3,5-7".parse(), Ok(Pick::Ranges(vec![1..=1, 3..=3, 5..=7])));
        assert_eq!("all".parse(), Ok(Pick::All));
        for wrong in ["2..", "", "1,", "7-5", "-3", "one"] {
            assert!(wrong.parse::<Pick>().is_err(), "{wrong}");
        }
        assert!("1,3,5-7".parse::<Pick>().is_ok_and(|pick| pick.has(6) && !pick.has(4)));
        assert!(Pick::Range(2..=9).has(9) && !Pick::One(3).has(4));
    }
}
