//! Modules: the program and its loaded libraries, with the addresses of their code and unwind rules.
//!
//! A [`Module`] is made from program headers. A walker searches a [`ModuleList`]. [`crate::Unwinder`] makes the list of the
//! own process and publishes it for signal handlers.

mod headers;
mod list;

pub use headers::ProgramHeader;
pub(crate) use list::ChangeCounts;
pub use list::{ModuleList, OwnedModuleList};

use std::ops::Range;

/// Longest build id in bytes; linkers write 8, 16 or 20.
const BUILD_ID: usize = 32;
/// Most segments that are loaded and not writable; linkers write two or three.
const SEGMENTS: usize = 6;

/// One loaded program or library. Plain numbers: all zero is a valid (empty) value.
#[derive(Clone, Copy)]
pub struct Module {
    id: u32,
    pub(crate) pinned: bool,
    build_id_len: u8,
    segment_count: u8,
    path_len: u16,
    path_at: u32,
    bias: u64,
    pub(crate) start: u64,
    end: u64,
    entry: u64,
    eh_frame_hdr: Span,
    eh_frame: Span,
    unwind_data: Span,
    pub(crate) dynamic: Span,
    segments: [Segment; SEGMENTS],
    build_id: [u8; BUILD_ID],
}

/// `Range` is not `Copy`.
#[derive(Clone, Copy, Default)]
pub(crate) struct Span {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

impl Span {
    const NONE: Span = Span { start: 0, end: 0 };

    fn range(self) -> Range<u64> {
        self.start..self.end
    }

    fn contains(self, address: u64) -> bool {
        self.start <= address && address < self.end
    }
}

/// A loaded segment that is not writable.
#[derive(Clone, Copy, Default)]
struct Segment {
    span: Span,
    executable: bool,
    readable: bool,
}

impl Module {
    /// The number of this module, the same in all lists as long as it stays loaded; not zero.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Address in memory minus address in the file.
    pub fn bias(&self) -> u64 {
        self.bias
    }

    /// Addresses from the first to behind the last loaded byte.
    pub fn range(&self) -> Range<u64> {
        self.start..self.end
    }

    /// Address ranges of its code.
    pub fn executable(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.parts().filter(|s| s.executable).map(|s| s.span.range())
    }

    /// Whether the address is in its code.
    pub fn is_executable(&self, address: u64) -> bool {
        self.parts().any(|s| s.executable && s.span.contains(address))
    }

    /// Whether the address is in the code of the file's entry point (`e_entry`). Nothing calls that code, so a stack ends
    /// there.
    pub(crate) fn is_behind_entry(&self, address: u64) -> bool {
        /// More than the entry code of any C library takes.
        const ENTRY_CODE: u64 = 64;
        self.entry != 0 && address.checked_sub(self.entry).is_some_and(|n| 0 < n && n <= ENTRY_CODE)
    }

    /// The linker's build id; empty if there is none.
    pub fn build_id(&self) -> &[u8] {
        self.build_id.get(..usize::from(self.build_id_len)).unwrap_or(&[])
    }

    /// `.eh_frame_hdr`; empty if there is none.
    pub fn eh_frame_hdr(&self) -> Range<u64> {
        self.eh_frame_hdr.range()
    }

    /// `.eh_frame`, if [`Module::with_eh_frame`] gave it; else the header points to it.
    pub fn eh_frame(&self) -> Range<u64> {
        self.eh_frame.range()
    }

    /// The segment that holds the unwind data. No unwind data is read outside of it.
    pub fn unwind_data(&self) -> Range<u64> {
        self.unwind_data.range()
    }

    /// Whether it stays loaded until the process ends.
    pub fn is_pinned(&self) -> bool {
        self.pinned
    }

    /// The segment that holds the address, if it is readable.
    pub(crate) fn readable_at(&self, address: u64) -> Option<Range<u64>> {
        self.parts().find(|s| s.readable && s.span.contains(address)).map(|s| s.span.range())
    }

    fn parts(&self) -> impl Iterator<Item = &Segment> {
        self.segments.iter().take(usize::from(self.segment_count))
    }

    /// Sets the range of `.eh_frame`, for modules without `.eh_frame_hdr`.
    #[must_use]
    pub fn with_eh_frame(mut self, range: Range<u64>) -> Module {
        self.eh_frame = Span { start: range.start, end: range.end };
        if let Some(part) = self.readable_at(range.start) {
            self.unwind_data = Span { start: part.start, end: part.end };
        }
        self
    }

    /// Marks it as never unloaded, so that [`crate::OwnModules`] copies from it without a system call.
    ///
    /// # Safety
    /// Its readable segments must stay mapped in this process until the program ends.
    #[must_use]
    pub unsafe fn pinned(mut self) -> Module {
        self.pinned = true;
        self
    }

    /// The same file at the same place.
    fn is_same_as(&self, other: &Module) -> bool {
        self.start == other.start
            && self.end == other.end
            && self.bias == other.bias
            && self.eh_frame_hdr.start == other.eh_frame_hdr.start
            && self.build_id() == other.build_id()
    }
}
