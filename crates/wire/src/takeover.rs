//! The plan by which a program's own allocator is taken over: a file in the session folder, made by the launcher before the
//! program starts.
//!
//! The launcher decodes the executable and proves which functions can be redirected. The library in the program only compares,
//! copies and adds: each entry has the bytes that must be there, and the same instructions for another place, whose distances to
//! the executable are filled in.

use core::mem::{offset_of, size_of};

/// Name of the plan's file in the session folder.
pub const TAKEOVER_FILE: &str = "allocator";

/// `b"SGTAKE01"`: the first word of a plan.
const MAGIC: u64 = u64::from_le_bytes(*b"SGTAKE01");

/// Most functions that are taken over.
pub const MAX_ENTRIES: usize = 32;
/// Most bytes of a function that are replaced.
pub const MAX_ORIGINAL: usize = 24;
/// Most bytes of the same instructions at another place, with the jump back.
pub const MAX_MOVED: usize = 48;
/// Most distances in them.
pub const MAX_DISTANCES: usize = 6;
/// Bytes of the jump that is written.
pub const JUMP_BYTES: usize = 5;

/// What a function of an allocator does, and where its arguments are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Action {
    /// `f(size, …)`: a new block.
    Allocate = 1,
    /// `f(count, size, …)`: a new block of zeros.
    AllocateArray = 2,
    /// `f(align, size)`: a new block.
    AllocateAligned = 3,
    /// `f(*place, align, size)`: a new block, stored in `place` if the result is 0.
    AllocateAt = 4,
    /// `f(block, size, …)`: a block that takes the place of another.
    Reallocate = 5,
    /// `f(block, …)`: the end of a block.
    Free = 6,
    /// `f(block, size, …)`: the end of a block of at least this size.
    FreeSized = 7,
}

impl Action {
    /// The action with this number.
    pub fn from_number(number: u32) -> Option<Action> {
        use Action::*;
        let all = [Allocate, AllocateArray, AllocateAligned, AllocateAt, Reallocate, Free, FreeSized];
        all.into_iter().find(|action| *action as u32 == number)
    }
}

/// Four bytes in moved instructions: the distance from the end of an instruction to an address in the executable.
#[derive(Clone, Copy, Default, Debug)]
#[repr(C)]
pub struct Distance {
    /// Offset of the four bytes in the moved instructions.
    pub at: u32,
    /// Offset of the end of their instruction.
    pub end: u32,
    /// The address, as in the file of the executable.
    pub target: u64,
}

/// One function.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct TakeoverEntry {
    /// Address at which the jump is written, as in the file of the executable.
    pub address: u64,
    /// An [`Action`].
    pub action: u32,
    /// Length of `original`.
    pub original_len: u32,
    /// Length of `moved`.
    pub moved_len: u32,
    /// Number of `distances`.
    pub distance_count: u32,
    /// The instructions at `address`.
    pub original: [u8; MAX_ORIGINAL],
    /// The same for another place, then a jump to the instruction after them.
    pub moved: [u8; MAX_MOVED],
    /// What must be filled in there.
    pub distances: [Distance; MAX_DISTANCES],
}

impl TakeoverEntry {
    /// An entry without bytes.
    pub const EMPTY: TakeoverEntry = TakeoverEntry {
        address: 0,
        action: 0,
        original_len: 0,
        moved_len: 0,
        distance_count: 0,
        original: [0; MAX_ORIGINAL],
        moved: [0; MAX_MOVED],
        distances: [Distance { at: 0, end: 0, target: 0 }; MAX_DISTANCES],
    };

    /// What the function does.
    pub fn action(&self) -> Option<Action> {
        Action::from_number(self.action)
    }

    /// The bytes that must be at its address. At least [`JUMP_BYTES`] in a valid entry.
    pub fn original(&self) -> &[u8] {
        self.original.get(..self.original_len as usize).unwrap_or_default()
    }

    /// The moved instructions, their distances still missing.
    pub fn moved(&self) -> &[u8] {
        self.moved.get(..self.moved_len as usize).unwrap_or_default()
    }

    /// The distances to fill in.
    pub fn distances(&self) -> &[Distance] {
        self.distances.get(..self.distance_count as usize).unwrap_or_default()
    }

    fn is_valid(&self) -> bool {
        self.action().is_some()
            && self.original().len() >= JUMP_BYTES
            && self.moved().len() >= JUMP_BYTES
            && self.distances().len() == self.distance_count as usize
            && self.distances().iter().all(|distance| {
                let is_inside = |end: u32| end as usize <= self.moved().len();
                distance.at.checked_add(4).is_some_and(is_inside) && is_inside(distance.end)
            })
    }
}

/// The plan for one executable. Made of numbers: any bytes are a value.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct TakeoverPlan {
    magic: u64,
    version: u32,
    /// Number of entries.
    pub count: u32,
    /// Device of the executable's file.
    pub device: u64,
    /// Its inode.
    pub inode: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// Not zero: a process has taken the functions over. Written by it.
    pub taken: u64,
    /// The functions.
    pub entries: [TakeoverEntry; MAX_ENTRIES],
}

impl TakeoverPlan {
    /// Bytes of a plan's file.
    pub const BYTES: usize = size_of::<TakeoverPlan>();
    /// Offset of `taken` in the file.
    pub const TAKEN_AT: usize = offset_of!(TakeoverPlan, taken);

    /// A plan without functions.
    pub fn new(device: u64, inode: u64, bytes: u64) -> TakeoverPlan {
        let entries = [TakeoverEntry::EMPTY; MAX_ENTRIES];
        TakeoverPlan {
            magic: MAGIC,
            version: crate::VERSION,
            count: 0,
            device,
            inode,
            bytes,
            taken: 0,
            entries,
        }
    }

    /// Adds a function. False if there is no room, or if it is not valid.
    pub fn push(&mut self, entry: TakeoverEntry) -> bool {
        let Some(place) = self.entries.get_mut(self.count as usize).filter(|_| entry.is_valid()) else {
            return false;
        };
        *place = entry;
        self.count += 1;
        true
    }

    /// The functions, if this is a plan of this version and all of them are valid; else none.
    pub fn entries(&self) -> &[TakeoverEntry] {
        if self.magic != MAGIC || self.version != crate::VERSION {
            return &[];
        }
        let entries = self.entries.get(..self.count as usize).unwrap_or_default();
        if entries.iter().all(TakeoverEntry::is_valid) { entries } else { &[] }
    }

    /// The bytes of its file.
    pub fn as_bytes(&self) -> &[u8] {
        // SAFETY: numbers in C layout whose fields leave no gaps: all bytes are initialised.
        unsafe { core::slice::from_raw_parts((&raw const *self).cast(), TakeoverPlan::BYTES) }
    }

    /// The memory into which a file is read.
    pub fn as_bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and any bytes are a value.
        unsafe { core::slice::from_raw_parts_mut((&raw mut *self).cast(), TakeoverPlan::BYTES) }
    }
}

const _: () = {
    assert!(size_of::<Distance>() == 16);
    assert!(size_of::<TakeoverEntry>() == 8 + 16 + MAX_ORIGINAL + MAX_MOVED + 16 * MAX_DISTANCES);
    assert!(size_of::<TakeoverPlan>() == 8 * 6 + size_of::<TakeoverEntry>() * MAX_ENTRIES);
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_plans_have_no_entries() {
        let mut plan = TakeoverPlan::new(1, 2, 3);
        let mut entry = TakeoverEntry { action: Action::Free as u32, ..TakeoverEntry::EMPTY };
        assert!(!plan.push(entry), "too short");
        (entry.original_len, entry.moved_len, entry.distance_count) = (5, 10, 1);
        entry.distances[0] = Distance { at: 6, end: 10, target: 0 };
        assert!(plan.push(entry));
        assert_eq!(plan.entries().len(), 1);
        let mut copy = TakeoverPlan::new(0, 0, 0);
        copy.as_bytes_mut().copy_from_slice(plan.as_bytes());
        assert_eq!(copy.entries().len(), 1);
        let damage: [fn(&mut TakeoverPlan); 7] = [
            |plan| plan.magic = 0,
            |plan| plan.version += 1,
            |plan| plan.count = MAX_ENTRIES as u32 + 1,
            |plan| plan.entries[0].action = 0,
            |plan| plan.entries[0].moved_len = MAX_MOVED as u32 + 1,
            |plan| plan.entries[0].distances[0].at = 7,
            |plan| plan.entries[0].distance_count = u32::MAX,
        ];
        for damage in damage {
            let mut damaged = plan;
            damage(&mut damaged);
            assert!(damaged.entries().is_empty());
        }
    }
}
