//! Programs that work in short bursts with waits between them, like servers and most interactive programs.
//!
//! `--burst US` is the work of one burst and `--pause US` the wait after it; `--work N` ends the program after N
//! bursts. A burst is three functions in a row, with 5, 3 and 2 tenths of the work. The program measures them itself
//! (`account.rs`); recordings are compared with that. Each way to wait has a file.

mod account;
mod pairs;
mod single;

pub use pairs::socket;
pub use single::{sleep, timer};

use crate::options::Options;
use crate::spin::spin_functions;
use account::{Function, Side};

/// Rounds that take about a microsecond.
const ROUNDS_PER_US: u64 = 500;

macro_rules! functions {
    ($list:ident: $($name:ident adds $number:literal;)*) => {
        spin_functions! { $($name adds $number;)* }
        const $list: [Function; 3] = [$(Function { name: stringify!($name), run: $name }),*];
    };
}

functions! { FRONT:
    burst_large adds 1;
    burst_medium adds 3;
    burst_small adds 5;
}

functions! { BACK:
    answer_large adds 7;
    answer_medium adds 9;
    answer_small adds 11;
}

/// The shares of the three, in tenths.
const TENTHS: [u64; 3] = [5, 3, 2];

/// The options.
#[derive(Clone, Copy)]
struct Shape {
    burst_us: u64,
    pause_us: u64,
}

impl Shape {
    fn from_options(options: &Options) -> Shape {
        Shape { burst_us: options.burst.unwrap_or(60), pause_us: options.pause.unwrap_or(300) }
    }
}

/// One burst: each function once, with the thread's clock read in between.
#[inline(never)]
fn one_burst(side: &mut Side, burst_us: u64) {
    side.begin();
    for (which, tenths) in TENTHS.iter().enumerate() {
        side.x = (side.functions[which].run)(side.x, burst_us * ROUNDS_PER_US * tenths / 10);
        side.next(which);
    }
    side.end();
}
