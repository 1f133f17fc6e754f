//! The lengths of debug information entries: computed once for each abbreviation, so that most entries are skipped with
//! one addition.

use crate::dwarf::abbreviations::{Abbreviations, Declaration};
use crate::dwarf::leb::{read_leb, skip_leb};
use crate::sections::Reader;
use foldhash::HashMap;
use gimli::{AttributeSpecification, DwTag, UnitHeader};

/// The kind of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A function that has its own code.
    Function,
    /// A call that was replaced by the body of the called function.
    Inlined,
    /// A namespace or a type: part of the paths of its children.
    Scope,
    /// Any other entry.
    Other,
}

/// Whether entries with this tag are part of the paths of their children, which may be functions.
pub fn is_scope(tag: DwTag) -> bool {
    matches!(
        tag,
        gimli::DW_TAG_namespace
            | gimli::DW_TAG_module
            | gimli::DW_TAG_structure_type
            | gimli::DW_TAG_class_type
            | gimli::DW_TAG_union_type
            | gimli::DW_TAG_enumeration_type
            | gimli::DW_TAG_interface_type
    )
}

/// One step over a part of an entry.
#[derive(Clone, Copy, Debug)]
enum Step {
    Bytes(usize),
    Leb,
    String,
    Block1,
    Block2,
    Block4,
    BlockLeb,
    /// A form that the entry gives: left to the general parser.
    Indirect,
}

/// The properties of an abbreviation that a walk needs.
#[derive(Debug)]
pub struct Shape {
    /// Its attributes, with their forms.
    pub attributes: Box<[AttributeSpecification]>,
    /// The tag of its entries.
    pub tag: DwTag,
    /// What a walk does with them.
    pub kind: Kind,
    /// Whether entries follow that belong to it.
    pub has_children: bool,
    /// It gives the position of the entry after its children.
    pub has_sibling: bool,
    /// The size of the attributes, if it is constant.
    fixed: Option<usize>,
    steps: Box<[Step]>,
}

/// The shapes of a unit's abbreviations, computed at first use.
pub struct Shapes<'abbrev> {
    abbreviations: &'abbrev Abbreviations<'abbrev>,
    header: UnitHeader<Reader<'abbrev>>,
    dense: Vec<Option<Box<Shape>>>,
    sparse: HashMap<u64, Shape>,
}

/// Codes below this are indices of a vector; producers number from 1.
const DENSE: u64 = 4096;

impl<'abbrev> Shapes<'abbrev> {
    /// None is computed yet.
    pub fn new(abbreviations: &'abbrev Abbreviations<'abbrev>, header: UnitHeader<Reader<'abbrev>>) -> Self {
        Shapes { abbreviations, header, dense: Vec::new(), sparse: HashMap::default() }
    }

    /// The shape for a code.
    #[inline]
    pub fn get(&mut self, code: u64) -> gimli::Result<&Shape> {
        let index = code as usize;
        if code < DENSE && self.dense.get(index).is_some_and(Option::is_some) {
            return self.dense[index].as_deref().ok_or(gimli::Error::InvalidAbbreviationCode(code));
        }
        self.make(code)
    }

    #[cold]
    fn make(&mut self, code: u64) -> gimli::Result<&Shape> {
        let declaration = self.abbreviations.get(code).ok_or(gimli::Error::InvalidAbbreviationCode(code))?;
        let header = &self.header;
        let new = || Shape::new(declaration, header);
        if code >= DENSE {
            return Ok(self.sparse.entry(code).or_insert_with(new));
        }
        let index = code as usize;
        if self.dense.len() <= index {
            self.dense.resize_with(index + 1, || None);
        }
        Ok(self.dense[index].get_or_insert_with(|| Box::new(new())))
    }
}

impl Shape {
    fn new(declaration: Declaration<'_>, header: &UnitHeader<Reader<'_>>) -> Shape {
        let attributes: Box<[AttributeSpecification]> = declaration.attributes().collect();
        let mut steps: Vec<Step> = Vec::new();
        let (mut has_code, mut has_sibling) = (false, false);
        for spec in &attributes {
            has_code |= matches!(spec.name(), gimli::DW_AT_low_pc | gimli::DW_AT_ranges);
            has_sibling |= spec.name() == gimli::DW_AT_sibling;
            let step = match (spec.size(header), spec.form()) {
                (Some(size), _) => Step::Bytes(size),
                (None, gimli::DW_FORM_string) => Step::String,
                (None, gimli::DW_FORM_block1) => Step::Block1,
                (None, gimli::DW_FORM_block2) => Step::Block2,
                (None, gimli::DW_FORM_block4) => Step::Block4,
                (None, gimli::DW_FORM_block | gimli::DW_FORM_exprloc) => Step::BlockLeb,
                (
                    None,
                    gimli::DW_FORM_udata
                    | gimli::DW_FORM_sdata
                    | gimli::DW_FORM_ref_udata
                    | gimli::DW_FORM_strx
                    | gimli::DW_FORM_addrx
                    | gimli::DW_FORM_loclistx
                    | gimli::DW_FORM_rnglistx
                    | gimli::DW_FORM_GNU_addr_index
                    | gimli::DW_FORM_GNU_str_index,
                ) => Step::Leb,
                _ => Step::Indirect,
            };
            match (steps.last_mut(), step) {
                (Some(Step::Bytes(sum)), Step::Bytes(more)) => *sum += more,
                _ => steps.push(step),
            }
        }
        let kind = match declaration.tag {
            gimli::DW_TAG_subprogram if has_code => Kind::Function,
            gimli::DW_TAG_inlined_subroutine => Kind::Inlined,
            tag if is_scope(tag) => Kind::Scope,
            _ => Kind::Other,
        };
        let fixed = match steps[..] {
            [] => Some(0),
            [Step::Bytes(size)] => Some(size),
            _ => None,
        };
        Shape {
            fixed,
            attributes,
            tag: declaration.tag,
            kind,
            has_children: declaration.has_children,
            has_sibling,
            steps: steps.into_boxed_slice(),
        }
    }

    /// The position behind an entry whose attributes start at `at`. `None` if it reaches beyond the end, or if the size
    /// takes the general parser ([`Shape::needs_parser`]).
    #[inline]
    pub fn skip(&self, bytes: &[u8], at: usize) -> Option<usize> {
        match self.fixed {
            Some(size) => at.checked_add(size).filter(|end| *end <= bytes.len()),
            None => self.skip_steps(bytes, at),
        }
    }

    fn skip_steps(&self, bytes: &[u8], mut at: usize) -> Option<usize> {
        for step in &self.steps {
            at = match step {
                Step::Bytes(size) => at.checked_add(*size)?,
                Step::Leb => skip_leb(bytes, at)?,
                Step::String => at + bytes.get(at..)?.iter().position(|byte| *byte == 0)? + 1,
                Step::Block1 => at.checked_add(1 + usize::from(*bytes.get(at)?))?,
                Step::Block2 => {
                    let size = bytes.get(at..)?.first_chunk::<2>()?;
                    at.checked_add(2 + usize::from(u16::from_le_bytes(*size)))?
                }
                Step::Block4 => {
                    let size = bytes.get(at..)?.first_chunk::<4>()?;
                    at.checked_add(4)?.checked_add(u32::from_le_bytes(*size) as usize)?
                }
                Step::BlockLeb => {
                    let (size, after) = read_leb(bytes, at)?;
                    after.checked_add(usize::try_from(size).ok()?)?
                }
                Step::Indirect => return None,
            };
        }
        (at <= bytes.len()).then_some(at)
    }

    /// Whether [`Shape::skip`] cannot give the size of such entries.
    pub fn needs_parser(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Indirect))
    }
}
