//! Source lines: the line program of a unit is executed once for all addresses. Rows are compared as they are computed,
//! and never stored.

use crate::dwarf::line_program::{LineProgram, Row};
use crate::sections::Reader;
use gimli::UnitRef;
use std::ops::Range;

/// File (index into the unit's table) and line (0: none) of an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SourceLine {
    /// Index of the file.
    pub file: u64,
    /// The line.
    pub line: u64,
}

/// Fills in the source lines of the sorted `addresses`, up to an error.
///
/// Sequences that start outside of `code` belong to functions that the linker dropped. Their addresses are zero, where
/// they would hide others.
pub fn places<'data>(
    unit: UnitRef<'_, Reader<'data>>,
    addresses: &[u64],
    code: &[Range<u64>],
    found: &mut [Option<SourceLine>],
) -> gimli::Result<()> {
    let Some(program) = &unit.line_program else {
        return Ok(());
    };
    let (Some(least), Some(most)) = (addresses.first().copied(), addresses.last().copied()) else {
        return Ok(());
    };
    let mut wanting = addresses.len();
    // The row before, and whether its sequence is used.
    let mut before: Option<Row> = None;
    let mut used = false;
    let whole = LineProgram::new(program.header()).run(|row| {
        match before {
            None => used = code.is_empty() || code.iter().any(|range| range.contains(&row.address)),
            Some(Row { address: start, file, line, .. })
                if used && start < row.address && start <= most && least < row.address =>
            {
                let first = addresses.partition_point(|wanted| *wanted < start);
                for (slot, wanted) in found[first..].iter_mut().zip(&addresses[first..]) {
                    if *wanted >= row.address {
                        break;
                    }
                    // Sequences overlap in damaged files only; the first one counts.
                    if slot.is_none() {
                        *slot = Some(SourceLine { file, line });
                        wanting -= 1;
                    }
                }
            }
            Some(_) => {}
        }
        before = (!row.end_sequence).then_some(row);
        wanting > 0
    });
    whole.ok_or(gimli::Error::UnexpectedEof(gimli::ReaderOffsetId(0)))
}

/// The path of a file in the unit's table, joined with its directories.
pub fn path(unit: UnitRef<'_, Reader<'_>>, file: u64) -> Option<String> {
    let header = unit.line_program.as_ref()?.header();
    let entry = header.file(file)?;
    let mut path = unit.comp_dir.map(|dir| dir.to_string_lossy().into_owned()).unwrap_or_default();
    // Directory 0 is the one of the unit.
    if entry.directory_index() != 0
        && let Some(directory) = entry.directory(header)
    {
        push(&mut path, &unit.attr_string(directory).ok()?.to_string_lossy());
    }
    push(&mut path, &unit.attr_string(entry.path_name()).ok()?.to_string_lossy());
    Some(path)
}

fn push(path: &mut String, more: &str) {
    if more.starts_with('/') {
        path.clear();
    } else if !path.is_empty() && !path.ends_with('/') {
        path.push('/');
    }
    path.push_str(more);
}
