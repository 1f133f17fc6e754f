//! The source lines that have code, by the line tables of a recording's modules.

use foldhash::HashMap;
use gimli::UnitType;
use stackglass_debug_info::dwarf::line_program::{LineProgram, Row};
use stackglass_debug_info::dwarf::lines;
use stackglass_debug_info::dwarf::unit::{DebugInfo, Unit};
use stackglass_debug_info::loaded::{debug_info, load};
use stackglass_debug_info::source::{self, Sources};
use stackglass_debug_info::{Options, locate, parallel};
use stackglass_profile::Recording;
use stackglass_profile::frame::file_name;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

/// Lines by file.
type Lines = BTreeMap<Arc<str>, BTreeSet<u64>>;

/// The lines of these source files that have code in the modules of a recording. `files` are paths as in
/// [`Frame::file`](stackglass_profile::Frame::file). Files that no line table names are missing in the result. A line that only
/// calls inlined functions may be missing as well: all of its code has lines of those functions.
///
/// ```
/// use stackglass_profile::Recording;
///
/// let lines = stackglass_symbols::code_lines(&Recording::default(), &Default::default(), &[]);
/// assert!(lines.is_empty());
/// ```
pub fn code_lines(recording: &Recording, options: &Options, files: &[Arc<str>]) -> Lines {
    let mut found = Lines::new();
    if files.is_empty() {
        return found;
    }
    let wanted: BTreeMap<&str, &Arc<str>> = files.iter().map(|file| (&**file, file)).collect();
    let names: BTreeSet<&str> = files.iter().map(|file| file_name(file)).collect();
    for module in &recording.modules {
        let located = locate::files_of(module, options);
        let loaded = load(&located);
        if loaded.file.is_none() {
            continue;
        }
        let info = debug_info(&loaded);
        let units: Vec<usize> = (0..info.headers.len()).collect();
        let state = || Reading {
            wanted: &wanted,
            names: &names,
            code: &loaded.code,
            sources: Sources::new(options.library_sources.clone()),
            known: HashMap::default(),
        };
        let of_units = parallel::map(
            options.threads(),
            &units,
            state,
            |state, unit| state.unit(&info, *unit),
            &mut |_| (),
        );
        for (file, lines) in of_units.into_iter().flatten() {
            found.entry(file).or_default().extend(lines);
        }
    }
    found
}

/// What a thread knows while it reads units.
struct Reading<'a> {
    wanted: &'a BTreeMap<&'a str, &'a Arc<str>>,
    /// The last parts of the wanted paths.
    names: &'a BTreeSet<&'a str>,
    code: &'a [Range<u64>],
    sources: Sources,
    /// By path in debug information: the wanted file.
    known: HashMap<String, Option<Arc<str>>>,
}

impl Reading<'_> {
    /// The lines of a unit, up to the first error.
    fn unit(&mut self, info: &DebugInfo<'_>, index: usize) -> Lines {
        let mut found = Lines::new();
        let kind = info.headers[index].type_();
        if matches!(kind, UnitType::Type { .. } | UnitType::SplitType { .. } | UnitType::Partial) {
            return found;
        }
        let Ok(unit) = info.open(index) else { return found };
        let Some(program) = &unit.unit.line_program else { return found };
        let mut files = self.files(info, &unit);
        if files.is_empty() {
            return found;
        }
        let mut before: Option<Row> = None;
        let mut used = false;
        let code = self.code;
        let _ = LineProgram::new(program.header()).run(|row| {
            match before {
                None => used = code.is_empty() || code.iter().any(|range| range.contains(&row.address)),
                Some(Row { address, file, line, .. }) if used && address < row.address && line > 0 => {
                    if let Some((_, lines)) = files.get_mut(&file) {
                        lines.insert(line);
                    }
                }
                Some(_) => {}
            }
            before = (!row.end_sequence).then_some(row);
            true
        });
        for (file, lines) in files.into_values().filter(|(_, lines)| !lines.is_empty()) {
            found.entry(file).or_default().extend(lines);
        }
        found
    }

    /// The wanted files in the table of a unit, by their index.
    fn files<'data>(
        &mut self,
        info: &DebugInfo<'data>,
        unit: &Unit<'data>,
    ) -> HashMap<u64, (Arc<str>, BTreeSet<u64>)> {
        let with = unit.with(&info.dwarf);
        let Some(program) = &unit.unit.line_program else { return HashMap::default() };
        let header = program.header();
        // Numbers begin at 0 or 1, by the version.
        let indices = (0..=header.file_names().len() as u64).filter(|index| {
            let name = header.file(*index).and_then(|entry| with.attr_string(entry.path_name()).ok());
            name.is_some_and(|name| self.names.contains(file_name(&name.to_string_lossy())))
        });
        let indices: Vec<u64> = indices.collect();
        let file = |index| Some((index, (self.file(&lines::path(with, index)?)?, BTreeSet::new())));
        indices.into_iter().filter_map(file).collect()
    }

    /// The wanted file of a path in debug information.
    fn file(&mut self, path: &str) -> Option<Arc<str>> {
        if let Some(known) = self.known.get(path) {
            return known.clone();
        }
        let (shown, _) = self.sources.locate(&source::normalize(path));
        let file = self.wanted.get(&*shown).map(|file| (*file).clone());
        self.known.insert(path.to_owned(), file.clone());
        file
    }
}
