//! Headers of tasks: the part that all tasks have alike.

use crate::values::Values;
use stackglass_layouts::{Layouts, Shape, TypeId};
use stackglass_profile::runtimes::tokio;

/// Offsets in headers and vtables, where they are known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Headers {
    /// Of the state in a header.
    state: Option<u64>,
    /// Of the pointer to the vtable in a header.
    vtable: Option<u64>,
    /// In a vtable, of the word that has the offset of the id from the header.
    id_offset: Option<u64>,
    /// In a vtable, of the word that has the offset of the trailer.
    pub trailer_offset: Option<u64>,
    /// In a vtable, of the address of the function that polls.
    pub poll: Option<u64>,
    /// In a vtable, of the address of the function that frees.
    free: Option<u64>,
}

impl Headers {
    pub fn new(layouts: &Layouts) -> Headers {
        let field = |name: &str, field: &str| offset(layouts, layouts.by_name(name)?, field);
        Headers {
            state: field(tokio::HEADER, "state"),
            vtable: field(tokio::HEADER, "vtable"),
            id_offset: field(tokio::VTABLE, "id_offset"),
            trailer_offset: field(tokio::VTABLE, "trailer_offset"),
            poll: field(tokio::VTABLE, "poll"),
            free: field(tokio::VTABLE, "dealloc"),
        }
    }

    /// Those of [`tokio::VERSIONS`], for programs without types.
    pub fn fixed() -> Headers {
        let word = |number: u64| Some(number * 8);
        Headers {
            state: word(0),
            vtable: word(2),
            poll: word(0),
            free: word(2),
            trailer_offset: word(7),
            id_offset: word(9),
        }
    }

    /// The vtable of the task with a header at an address.
    pub fn vtable(&self, values: &Values<'_>, header: u64) -> Option<u64> {
        values.pages.word(header.checked_add(self.vtable?)?)
    }

    /// The function that frees the task with a header at an address.
    pub fn free(&self, values: &Values<'_>, header: u64) -> Option<u64> {
        values.pages.word(self.vtable(values, header)?.checked_add(self.free?)?)
    }

    /// Offset of the state in a header.
    pub fn state(&self) -> Option<u64> {
        self.state
    }

    /// Offset of the pointer to the vtable.
    pub fn vtable_offset(&self) -> Option<u64> {
        self.vtable
    }

    /// The id of the task with a header at an address.
    pub fn id(&self, values: &Values<'_>, header: u64) -> Option<u64> {
        let vtable = self.vtable(values, header)?;
        let offset = values.pages.word(vtable.checked_add(self.id_offset?)?)?;
        values.pages.word(header.checked_add(offset)?).filter(|id| *id != 0)
    }
}

fn offset(layouts: &Layouts, type_id: TypeId, field: &str) -> Option<u64> {
    let Shape::Struct(fields) = &layouts.get(type_id).shape else { return None };
    fields.iter().find(|known| &*known.name == field).map(|known| known.offset)
}
