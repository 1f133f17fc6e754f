//! How often a test repeats what goes wrong only by chance.

/// A third of this number, rounded up; all of it where the variable `REPETITIONS` is set, as in a full run.
pub fn repetitions(all: usize) -> usize {
    match std::env::var_os("REPETITIONS") {
        Some(_) => all,
        None => all.div_ceil(3),
    }
}
