//! A column of numbers, most of which are small.

use foldhash::HashMap;

/// Numbers by index. Those below 65 535 take two bytes each, the others some twenty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SmallNumbers {
    /// The numbers, or [`LARGE`].
    small: Vec<u16>,
    /// The others, by index.
    large: HashMap<u32, u64>,
}

/// Stands for a number that does not fit.
const LARGE: u16 = u16::MAX;

impl SmallNumbers {
    /// `count` zeros. They take no memory until other numbers are set.
    pub fn zeros(count: usize) -> SmallNumbers {
        SmallNumbers { small: vec![0; count], large: HashMap::default() }
    }

    /// Makes room for so many more numbers, not for large ones.
    pub fn reserve_exact(&mut self, count: usize) {
        self.small.reserve_exact(count);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.small.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.small.is_empty()
    }

    /// The number at an index.
    ///
    /// # Panics
    /// If there is none.
    #[inline]
    pub fn get(&self, index: usize) -> u64 {
        match self.small[index] {
            LARGE => self.large.get(&(index as u32)).copied().unwrap_or(0),
            number => u64::from(number),
        }
    }

    /// All numbers.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.len()).map(|index| self.get(index))
    }

    /// Adds a number at the end.
    ///
    /// # Panics
    /// If there are more than 2³² numbers.
    #[inline]
    pub fn push(&mut self, number: u64) {
        let small = u16::try_from(number).unwrap_or(LARGE);
        if small == LARGE {
            let index = u32::try_from(self.small.len()).expect("an index of 32 bits");
            self.large.insert(index, number);
        }
        self.small.push(small);
    }

    /// Sets the number at an index.
    ///
    /// # Panics
    /// If there is none.
    pub fn set(&mut self, index: usize, number: u64) {
        let small = u16::try_from(number).unwrap_or(LARGE);
        if self.small[index] == LARGE && small != LARGE {
            self.large.remove(&(index as u32));
        }
        if small == LARGE {
            self.large.insert(index as u32, number);
        }
        // Zeros that stay take no memory.
        if self.small[index] != small {
            self.small[index] = small;
        }
    }

    /// Exchanges two numbers.
    ///
    /// # Panics
    /// If one of them does not exist.
    pub fn swap(&mut self, one: usize, other: usize) {
        let (first, second) = (self.get(one), self.get(other));
        self.set(one, second);
        self.set(other, first);
    }

    /// Removes the numbers from this index on.
    pub fn truncate(&mut self, count: usize) {
        self.small.truncate(count);
        self.large.retain(|index, _| (*index as usize) < count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_all_sizes_stay() {
        let mut numbers = SmallNumbers::zeros(6);
        let all = [0, 1, 0xfffe, 0xffff, 0x1_0000, u64::MAX];
        for round in 0..all.len() {
            (0..6).for_each(|index| numbers.set(index, all[(index + round) % 6]));
            assert!((0..6).all(|index| numbers.get(index) == all[(index + round) % 6]));
        }
        let mut numbers = SmallNumbers::default();
        all.iter().for_each(|number| numbers.push(*number));
        assert!(numbers.iter().eq(all));
        numbers.swap(0, 5);
        assert_eq!((numbers.get(0), numbers.get(5)), (u64::MAX, 0));
        numbers.swap(0, 5);
        numbers.truncate(4);
        assert!(numbers.iter().eq(all[..4].iter().copied()));
    }
}
