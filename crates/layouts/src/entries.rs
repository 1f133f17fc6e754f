//! Entries of a unit: the attributes that describe types and variables.

use gimli::{AttributeValue, DwTag, EndianSlice, EntriesRaw, LittleEndian, Section, UnitOffset, UnitRef};
use stackglass_debug_info::dwarf::leb::read_leb;
use stackglass_debug_info::dwarf::shapes::Shapes;
use stackglass_debug_info::dwarf::unit::Unit;
use stackglass_debug_info::sections::Reader;

/// The value of an attribute.
pub(super) type Value<'data> = AttributeValue<Reader<'data>>;

/// A reference to an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reference {
    /// Offset in the same unit.
    Unit(usize),
    /// Offset in the section of the same file.
    File(usize),
    /// Offset in the section of the file that several files share.
    Shared(usize),
    /// The type with this signature.
    Signature(u64),
}

/// The begin of an entry, or the end of a list of children.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    /// `None` at the end of a list.
    pub tag: Option<DwTag>,
    pub has_children: bool,
    code: u64,
    /// Unit offset of the entry.
    pub offset: usize,
    /// Unit offset of the attributes.
    attributes: usize,
}

/// An entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<'data> {
    /// Unit offset behind the attributes.
    pub end: usize,
    pub tag: DwTag,
    pub has_children: bool,
    pub name: Option<Value<'data>>,
    pub linkage_name: Option<Value<'data>>,
    pub a_type: Option<Reference>,
    pub containing_type: Option<Reference>,
    /// The entry that this one completes.
    pub origin: Option<Reference>,
    pub signature: Option<u64>,
    pub byte_size: Option<u64>,
    pub declaration: bool,
    pub external: bool,
    pub is_virtual: bool,
    pub location: Option<Value<'data>>,
    pub member_location: Option<Value<'data>>,
    pub bit_offset: Option<u64>,
    pub discriminant: Option<Reference>,
    pub discriminant_value: Option<Value<'data>>,
    pub discriminant_list: Option<Value<'data>>,
    pub count: Option<u64>,
    pub upper_bound: Option<i64>,
    pub encoding: u64,
    /// Number of the file of the declaration in the unit's line table.
    pub file: u64,
    pub line: u64,
}

/// The code of a function, a block or an inlined call.
#[derive(Clone, Debug, Default)]
pub(super) struct Code<'data> {
    /// Its addresses in the file.
    pub ranges: Vec<std::ops::Range<u64>>,
    /// For a function: the base to which addresses of variables are relative.
    pub frame_base: Option<Value<'data>>,
}

impl Code<'_> {
    pub fn contains(&self, address: u64) -> bool {
        self.ranges.iter().any(|range| range.contains(&address))
    }
}

/// Reads the entries of a unit. Offsets are those in the unit.
pub(super) struct Entries<'unit, 'data> {
    unit: UnitRef<'unit, Reader<'data>>,
    bytes: &'data [u8],
    base: usize,
    shapes: Shapes<'unit>,
}

impl<'unit, 'data> Entries<'unit, 'data> {
    /// `None` if the unit is damaged.
    pub fn new(unit: &'unit Unit<'data>, dwarf: &'unit gimli::Dwarf<Reader<'data>>) -> Option<Self> {
        let (bytes, root) = unit.entries().ok()?;
        let shapes = Shapes::new(&unit.abbreviations, unit.unit.header);
        Some(Entries { unit: unit.with(dwarf), bytes, base: root.0, shapes })
    }

    /// Offset of the root entry.
    pub fn root(&self) -> usize {
        self.base
    }

    /// Text of an attribute; empty if there is none.
    pub fn text(&self, value: Option<Value<'data>>) -> &'data [u8] {
        let text = match value {
            // Most are long, and gimli looks at them byte by byte.
            Some(AttributeValue::DebugStrRef(at)) => {
                let texts = self.unit.dwarf.debug_str.reader().slice().get(at.0..);
                texts.and_then(|texts| Some(&texts[..memchr::memchr(0, texts)?]))
            }
            value => value.and_then(|value| self.unit.attr_string(value).ok()).map(|text| text.slice()),
        };
        text.unwrap_or_default()
    }

    /// Size of an address in bytes.
    pub fn address_size(&self) -> u64 {
        u64::from(self.unit.encoding().address_size)
    }

    /// The unit, for gimli's functions.
    pub fn unit(&self) -> UnitRef<'unit, Reader<'data>> {
        self.unit
    }

    /// The begin of the entry at an offset. `None` behind the end, or if it is damaged.
    #[inline]
    pub fn head(&mut self, at: usize) -> Option<Head> {
        let (code, attributes) = read_leb(self.bytes, at.checked_sub(self.base)?)?;
        let offset = at;
        let attributes = attributes + self.base;
        if code == 0 {
            return Some(Head { tag: None, has_children: false, code, offset, attributes });
        }
        let shape = self.shapes.get(code).ok()?;
        Some(Head { tag: Some(shape.tag), has_children: shape.has_children, code, offset, attributes })
    }

    /// The offset behind the attributes of an entry.
    #[inline]
    pub fn skip(&mut self, head: Head) -> Option<usize> {
        let at = head.attributes - self.base;
        if head.tag.is_none() {
            return Some(head.attributes);
        }
        let shape = self.shapes.get(head.code).ok()?;
        match shape.skip(self.bytes, at) {
            Some(after) => Some(after + self.base),
            None if shape.needs_parser() => {
                let mut reader = reader(self.unit, self.bytes, self.base, at);
                reader.skip_attributes(&shape.attributes).ok()?;
                Some(reader.next_offset().0)
            }
            None => None,
        }
    }

    /// The offset behind the children of an entry whose attributes end at `at`.
    pub fn skip_children(&mut self, head: Head, mut at: usize) -> Option<usize> {
        if !head.has_children {
            return Some(at);
        }
        if let Some(sibling) = self.sibling(head)
            && (at..=self.base + self.bytes.len()).contains(&sibling)
        {
            return Some(sibling);
        }
        let mut depth = 1usize;
        while depth > 0 {
            let head = self.head(at)?;
            at = self.skip(head)?;
            match head.tag {
                None => depth -= 1,
                Some(_) => depth += usize::from(head.has_children),
            }
        }
        Some(at)
    }

    fn sibling(&mut self, head: Head) -> Option<usize> {
        let shape = self.shapes.get(head.code).ok()?;
        if !shape.has_sibling {
            return None;
        }
        let mut reader = reader(self.unit, self.bytes, self.base, head.attributes - self.base);
        for spec in &shape.attributes {
            let attribute = reader.read_attribute(*spec).ok()?;
            if let (gimli::DW_AT_sibling, AttributeValue::UnitRef(offset)) =
                (attribute.name(), attribute.value())
            {
                return Some(offset.0);
            }
        }
        None
    }

    /// The entry at an offset. `None` at the end of a list or of the unit, or if it is damaged.
    pub fn read(&mut self, at: usize) -> Option<Entry<'data>> {
        let head = self.head(at)?;
        self.entry(head)
    }

    /// The code of an entry, as far as it can be read.
    pub fn code(&mut self, head: Head) -> Code<'data> {
        let mut code = Code::default();
        let _ = self.read_code(head, &mut code);
        code
    }

    fn read_code(&mut self, head: Head, code: &mut Code<'data>) -> Option<()> {
        let shape = self.shapes.get(head.code).ok()?;
        let mut reader = reader(self.unit, self.bytes, self.base, head.attributes - self.base);
        let (mut low, mut high, mut size) = (None, None, None);
        for spec in &shape.attributes {
            let name = spec.name();
            if !matches!(
                name,
                gimli::DW_AT_low_pc | gimli::DW_AT_high_pc | gimli::DW_AT_ranges | gimli::DW_AT_frame_base
            ) {
                reader.skip_attributes(std::slice::from_ref(spec)).ok()?;
                continue;
            }
            match (name, reader.read_attribute_inline(*spec).ok()?.value()) {
                (gimli::DW_AT_low_pc, value) => low = self.unit.attr_address(value).ok()?,
                (gimli::DW_AT_high_pc, AttributeValue::Udata(bytes)) => size = Some(bytes),
                (gimli::DW_AT_high_pc, value) => high = self.unit.attr_address(value).ok()?,
                (gimli::DW_AT_ranges, value) => {
                    let mut ranges = self.unit.attr_ranges(value).ok()??;
                    while let Some(range) = ranges.next().ok()? {
                        code.ranges.push(range.begin..range.end);
                    }
                }
                (_, value) => code.frame_base = Some(value),
            }
        }
        if let (Some(low), true) = (low, code.ranges.is_empty())
            && let Some(high) = size.map(|size| low.saturating_add(size)).or(high)
        {
            code.ranges.push(low..high);
        }
        Some(())
    }

    /// Reads the attributes of an entry.
    pub fn entry(&mut self, head: Head) -> Option<Entry<'data>> {
        let shape = self.shapes.get(head.code).ok()?;
        let mut reader = reader(self.unit, self.bytes, self.base, head.attributes - self.base);
        let mut entry = Entry::new(head.tag?, head.has_children);
        for spec in &shape.attributes {
            let name = spec.name();
            if !is_read(name) {
                reader.skip_attributes(std::slice::from_ref(spec)).ok()?;
                continue;
            }
            let attribute = reader.read_attribute_inline(*spec).ok()?;
            let value = attribute.value();
            let flag = || matches!(value, AttributeValue::Flag(true));
            match name {
                gimli::DW_AT_name => entry.name = Some(value),
                gimli::DW_AT_linkage_name => entry.linkage_name = Some(value),
                gimli::DW_AT_type => entry.a_type = reference(&value),
                gimli::DW_AT_containing_type => entry.containing_type = reference(&value),
                gimli::DW_AT_specification | gimli::DW_AT_abstract_origin => entry.origin = reference(&value),
                gimli::DW_AT_signature => {
                    if let AttributeValue::DebugTypesRef(signature) = value {
                        entry.signature = Some(signature.0);
                    }
                }
                gimli::DW_AT_byte_size => entry.byte_size = attribute.udata_value(),
                gimli::DW_AT_declaration => entry.declaration = flag(),
                gimli::DW_AT_external => entry.external = flag(),
                gimli::DW_AT_virtuality => {
                    entry.is_virtual =
                        !matches!(value, AttributeValue::Virtuality(gimli::DW_VIRTUALITY_none));
                }
                gimli::DW_AT_location => entry.location = Some(value),
                gimli::DW_AT_data_member_location => entry.member_location = Some(value),
                gimli::DW_AT_data_bit_offset => entry.bit_offset = attribute.udata_value(),
                gimli::DW_AT_discr => entry.discriminant = reference(&value),
                gimli::DW_AT_discr_value => entry.discriminant_value = Some(attribute.raw_value()),
                gimli::DW_AT_discr_list => entry.discriminant_list = Some(value),
                gimli::DW_AT_count => entry.count = attribute.udata_value(),
                gimli::DW_AT_upper_bound => entry.upper_bound = bound(&value),
                gimli::DW_AT_encoding => {
                    if let AttributeValue::Encoding(encoding) = value {
                        entry.encoding = u64::from(encoding.0);
                    }
                }
                gimli::DW_AT_decl_file => {
                    entry.file = match value {
                        AttributeValue::FileIndex(file) => file,
                        _ => attribute.udata_value().unwrap_or(0),
                    }
                }
                gimli::DW_AT_decl_line => entry.line = attribute.udata_value().unwrap_or(0),
                _ => {}
            }
        }
        entry.end = reader.next_offset().0;
        Some(entry)
    }
}

/// The general parser, from the attributes of an entry on.
fn reader<'unit, 'data>(
    unit: UnitRef<'unit, Reader<'data>>,
    bytes: &'data [u8],
    base: usize,
    attributes: usize,
) -> EntriesRaw<'unit, Reader<'data>> {
    let input = EndianSlice::new(bytes.get(attributes..).unwrap_or_default(), LittleEndian);
    EntriesRaw::new(input, unit.encoding(), &unit.unit.abbreviations, UnitOffset(base + attributes))
}

fn is_read(name: gimli::DwAt) -> bool {
    matches!(
        name,
        gimli::DW_AT_name
            | gimli::DW_AT_linkage_name
            | gimli::DW_AT_type
            | gimli::DW_AT_containing_type
            | gimli::DW_AT_specification
            | gimli::DW_AT_abstract_origin
            | gimli::DW_AT_signature
            | gimli::DW_AT_byte_size
            | gimli::DW_AT_declaration
            | gimli::DW_AT_external
            | gimli::DW_AT_virtuality
            | gimli::DW_AT_location
            | gimli::DW_AT_data_member_location
            | gimli::DW_AT_data_bit_offset
            | gimli::DW_AT_discr
            | gimli::DW_AT_discr_value
            | gimli::DW_AT_discr_list
            | gimli::DW_AT_count
            | gimli::DW_AT_upper_bound
            | gimli::DW_AT_encoding
            | gimli::DW_AT_decl_file
            | gimli::DW_AT_decl_line
    )
}

fn reference(value: &Value<'_>) -> Option<Reference> {
    Some(match value {
        AttributeValue::UnitRef(offset) => Reference::Unit(offset.0),
        AttributeValue::DebugInfoRef(offset) => Reference::File(offset.0),
        AttributeValue::DebugInfoRefSup(offset) => Reference::Shared(offset.0),
        AttributeValue::DebugTypesRef(signature) => Reference::Signature(signature.0),
        _ => return None,
    })
}

/// An upper bound, which may be written signed or unsigned. GCC writes -1 for arrays without elements, in 4 or 8 bytes.
fn bound(value: &Value<'_>) -> Option<i64> {
    match value {
        AttributeValue::Sdata(value) => Some(*value),
        AttributeValue::Data4(u32::MAX) => Some(-1),
        value => value.udata_value().map(u64::cast_signed),
    }
}

impl Entry<'_> {
    fn new(tag: DwTag, has_children: bool) -> Self {
        Entry {
            end: 0,
            tag,
            has_children,
            name: None,
            linkage_name: None,
            a_type: None,
            containing_type: None,
            origin: None,
            signature: None,
            byte_size: None,
            declaration: false,
            external: false,
            is_virtual: false,
            location: None,
            member_location: None,
            bit_offset: None,
            discriminant: None,
            discriminant_value: None,
            discriminant_list: None,
            count: None,
            upper_bound: None,
            encoding: 0,
            file: 0,
            line: 0,
        }
    }

    /// Offset of a member in bytes. `None` if it depends on the value, as for virtual base classes.
    pub fn offset(&self, encoding: gimli::Encoding) -> Option<u64> {
        let Some(value) = &self.member_location else {
            return Some(self.bit_offset.unwrap_or(0) / 8);
        };
        match value {
            AttributeValue::Exprloc(expression) => {
                let mut operations = expression.operations(encoding);
                match (operations.next(), operations.next()) {
                    (Ok(Some(gimli::Operation::PlusConstant { value })), Ok(None)) => Some(value),
                    _ => None,
                }
            }
            value => value.udata_value(),
        }
    }
}
