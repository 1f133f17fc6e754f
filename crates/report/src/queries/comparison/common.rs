//! The common factor of two runs, and the usual spread between runs.
//!
//! With another clock rate, a busier machine or more input, all functions may take, for example, 4 % more. A table that
//! marks every function would be useless. So the factor is removed if it fits most functions and most of the time, and
//! fits more functions than a factor of 1.

use super::cost::{BEYOND, Cost};

/// Functions with fewer hits do not count for the factor.
const ENOUGH: u64 = 50;

/// A function agrees with a factor within this many standard errors.
const AGREES: f64 = BEYOND / 1.5;

/// At least this many functions must agree with a factor.
const AGREEING: usize = 3;

/// At least this many functions are needed to estimate the spread between runs.
const FUNCTIONS: usize = 8;

/// The common factor and the spread of two runs.
pub(super) struct Common {
    /// After ÷ before.
    pub factor: f64,
    /// How many times larger differences are than their errors; at least 1.
    pub spread: f64,
}

/// Standard error of `after - before * factor`.
pub(super) fn error(before: Cost, after: Cost, factor: f64, all: (Cost, Cost)) -> f64 {
    let of = |cost: Cost, all: Cost| {
        // Without hits, the amount is less than about one hit.
        let hit = if all.hits > 0 { all.amount / all.hits as f64 } else { 0.0 };
        cost.error().max(hit)
    };
    (of(before, all.0) * factor).hypot(of(after, all.1))
}

impl Common {
    pub(super) fn from_pairs(pairs: &[(Cost, Cost)], all: (Cost, Cost)) -> Common {
        let telling: Vec<(Cost, Cost)> =
            pairs.iter().filter(|(a, b)| a.hits >= ENOUGH && b.hits >= ENOUGH).copied().collect();
        let apart = |factor: f64| {
            let change = move |(a, b): &(Cost, Cost)| {
                (b.amount - a.amount * factor).abs() / error(*a, *b, factor, all).max(f64::MIN_POSITIVE)
            };
            telling.iter().map(change)
        };
        let agree = |factor: f64| apart(factor).filter(|apart| *apart <= AGREES).count();
        let all_time: f64 = telling.iter().map(|(a, b)| a.amount + b.amount).sum();
        let has_most_time = |factor: f64| {
            let agreeing = telling.iter().zip(apart(factor)).filter(|(_, apart)| *apart <= AGREES);
            agreeing.map(|((a, b), _)| a.amount + b.amount).sum::<f64>() * 2.0 > all_time
        };
        let mut best = (agree(1.0), 1.0);
        for (a, b) in &telling {
            let factor = b.amount / a.amount;
            let agreeing = agree(factor);
            let nearer = (factor.ln()).abs() < f64::ln(best.1).abs();
            let enough = agreeing >= AGREEING && agreeing * 2 > telling.len() && has_most_time(factor);
            if enough && agreeing > best.0 + best.0 / 10 || agreeing == best.0 && best.1 != 1.0 && nearer {
                best = (agreeing, factor);
            }
        }
        let factor = refined(&telling, best.1, all);
        let mut apart: Vec<f64> = apart(factor).collect();
        apart.sort_by(f64::total_cmp);
        // The median deviation by chance alone is 0.67 standard errors.
        let spread = match apart.len() >= FUNCTIONS {
            // With few functions, the median itself varies: only a clearly larger one counts.
            true => {
                let chance = 1.0 + 1.2 / (apart.len() as f64).sqrt();
                (apart[apart.len() / 2] / 0.6745 / chance).max(1.0)
            }
            false => 1.0,
        };
        Common { factor, spread }
    }
}

/// The factor of all functions that agree with a first guess. A guess of exactly 1 is kept.
fn refined(telling: &[(Cost, Cost)], guess: f64, all: (Cost, Cost)) -> f64 {
    if guess == 1.0 {
        return 1.0;
    }
    let (mut before, mut after) = (0.0, 0.0);
    for (a, b) in telling {
        if (b.amount - a.amount * guess).abs() <= AGREES * error(*a, *b, guess, all) {
            before += a.amount;
            after += b.amount;
        }
    }
    if before > 0.0 { after / before } else { guess }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(hits: u64, amount: f64) -> Cost {
        let amount = amount * 1e6;
        Cost { amount, hits, squares: amount * amount / hits as f64 }
    }

    fn common(pairs: &[(f64, f64)]) -> Common {
        let pairs: Vec<_> = pairs.iter().map(|(a, b)| (cost(*a as u64, *a), cost(*b as u64, *b))).collect();
        let sum = |of: fn(&(Cost, Cost)) -> Cost| Cost {
            amount: pairs.iter().map(|pair| of(pair).amount).sum(),
            hits: pairs.iter().map(|pair| of(pair).hits).sum(),
            squares: pairs.iter().map(|pair| of(pair).squares).sum(),
        };
        Common::from_pairs(&pairs, (sum(|pair| pair.0), sum(|pair| pair.1)))
    }

    #[test]
    fn one_slower_function_is_not_common() {
        let Common { factor, spread } =
            common(&[(8000.0, 9600.0), (500.0, 510.0), (400.0, 395.0), (900.0, 880.0)]);
        assert_eq!((factor, spread), (1.0, 1.0));
        // Nor where there is only it and another.
        assert_eq!(common(&[(8000.0, 9600.0), (500.0, 505.0)]).factor, 1.0);
    }

    #[test]
    fn what_all_have_in_common_is_taken_off() {
        let common = common(&[(8000.0, 8800.0), (5000.0, 5520.0), (4000.0, 4380.0), (9000.0, 9910.0)]);
        assert!((common.factor - 1.1).abs() < 0.01, "{}", common.factor);
    }

    #[test]
    fn what_few_with_little_time_have_in_common_stays() {
        let pairs = [(8000.0, 8050.0), (300.0, 200.0), (250.0, 170.0), (280.0, 190.0)];
        assert_eq!(common(&pairs).factor, 1.0);
    }

    #[test]
    fn few_hits_say_nothing() {
        assert_eq!(common(&[(20.0, 40.0), (30.0, 60.0), (10.0, 20.0)]).factor, 1.0);
    }
}
