//! A number for each block. Most are small, so they take two bytes each.

use foldhash::HashMap;

/// Numbers by index.
#[derive(Debug, Default)]
pub(super) struct SmallNumbers {
    /// The numbers, or [`LARGE`].
    small: Vec<u16>,
    /// The others.
    large: HashMap<u32, u32>,
}

/// In place of a number that does not fit.
const LARGE: u16 = u16::MAX;

impl SmallNumbers {
    /// So many zeros. They take no memory until others are set.
    pub fn zeros(count: usize) -> SmallNumbers {
        SmallNumbers { small: vec![0; count], large: HashMap::default() }
    }

    /// The number at an index.
    ///
    /// # Panics
    /// If there is none.
    pub fn get(&self, index: usize) -> u32 {
        match self.small[index] {
            LARGE => self.large.get(&(index as u32)).copied().unwrap_or(0),
            number => u32::from(number),
        }
    }

    /// Sets the number at an index.
    ///
    /// # Panics
    /// If there is none.
    pub fn set(&mut self, index: usize, number: u32) {
        let small = u16::try_from(number).unwrap_or(LARGE);
        if small == LARGE {
            self.large.insert(index as u32, number);
        }
        if self.small[index] != small {
            self.small[index] = small;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_all_sizes_stay() {
        let mut numbers = SmallNumbers::zeros(6);
        let all = [0, 1, 0xfffe, 0xffff, 0x1_0000, u32::MAX];
        for round in 0..all.len() {
            (0..6).for_each(|index| numbers.set(index, all[(index + round) % 6]));
            assert!((0..6).all(|index| numbers.get(index) == all[(index + round) % 6]));
        }
    }
}
