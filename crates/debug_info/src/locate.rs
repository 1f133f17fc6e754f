//! Finds the files with a module's names: its own, or a separate file with its debug information.
//!
//! The module's own sections come first, then the build-id folder and `.gnu_debuglink`, as in GDB (*GDB manual*, "Debugging
//! Information in Separate Files"). Without a complete symbol table, `.gnu_debugdata` may have one. A separate file must have the same build id. If one of the files has none, its CRC must
//! be that of the link.

use crate::elf::{Elf, Table, hex};
use crate::mapped::Mapped;
use crate::{Error, Options, lossy_path, mini_debug_info, open_files, vdso};
use stackglass_profile::frame::file_name;
use stackglass_profile::recording::Module;
use stackglass_profile::symbols::Missing;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The files of a module.
#[derive(Debug, Default)]
pub struct Files {
    /// The module, unless it is missing or replaced.
    pub program: Option<Mapped>,
    /// Its separate debug file.
    pub debug: Option<Mapped>,
    /// The functions of a stripped program that are not exported. Read only if there is no complete symbol table.
    pub mini: Option<Mapped>,
    /// The part that it shares with other files (dwz).
    pub shared: Option<Mapped>,
    /// Its split debug information, if that is in one file.
    pub package: Option<Mapped>,
    /// The information that its frames lack.
    pub missing: Option<Missing>,
    /// Errors.
    pub problems: Vec<Error>,
}

impl Files {
    /// The file with the debug information.
    pub fn debug_info(&self) -> Option<Elf<'_>> {
        let files = [&self.program, &self.debug];
        let mut parsed = files.into_iter().flatten().filter_map(|file| Elf::parse(file).ok());
        parsed.find(Elf::has_debug_info)
    }

    /// The file with the best symbol table, and that table.
    pub fn symbols(&self) -> Option<(Elf<'_>, Table)> {
        self.full_symbols().or_else(|| table_of(self.mini.as_ref(), Table::Full)).or_else(|| self.exports())
    }

    /// The complete symbol table.
    fn full_symbols(&self) -> Option<(Elf<'_>, Table)> {
        table_of(self.program.as_ref(), Table::Full).or_else(|| table_of(self.debug.as_ref(), Table::Full))
    }

    /// The exported symbols, if the best table does not have them.
    pub fn exports_beside(&self) -> Option<(Elf<'_>, Table)> {
        self.mini.as_ref().and_then(|_| self.exports())
    }

    fn exports(&self) -> Option<(Elf<'_>, Table)> {
        table_of(self.program.as_ref(), Table::Dynamic)
    }
}

fn table_of(file: Option<&Mapped>, table: Table) -> Option<(Elf<'_>, Table)> {
    let elf = Elf::parse(file?).ok()?;
    elf.symbols(table).is_some().then_some((elf, table))
}

/// Finds the files of a module.
pub fn files_of(module: &Module, options: &Options) -> Files {
    let mut files = Files::default();
    match open_program(module) {
        Ok(program) => files.program = Some(program),
        Err(error) => {
            files.missing = Some(match error {
                Error::Changed { .. } => Missing::Changed,
                _ => Missing::File,
            });
            files.problems.push(error);
        }
    }
    let path = match &files.program {
        Some(program) if open_files::path(&module.path).is_none() => program.path().to_owned(),
        _ => PathBuf::from(&*module.path),
    };
    let own = files.program.as_ref().and_then(|file| Elf::parse(file).ok());
    let recorded: &[u8] = &module.build_id;
    let id = own.as_ref().map(Elf::build_id).filter(|id| !id.is_empty()).unwrap_or(recorded);
    if !own.as_ref().is_some_and(Elf::has_debug_info) {
        let mut candidates: Vec<(PathBuf, Option<u32>)> =
            by_build_id(id, options).into_iter().map(|path| (path, None)).collect();
        if let Some((name, crc)) = own.as_ref().and_then(Elf::debug_link) {
            candidates.extend(by_link(&path, name, options).into_iter().map(|path| (path, Some(crc))));
        }
        files.debug = candidates.into_iter().find_map(|(path, crc)| open_debug(&path, id, crc));
    }
    if let Some(debug) = files.debug.as_ref().or(files.program.as_ref())
        && let Ok(elf) = Elf::parse(debug)
        && let Some((name, id)) = elf.shared_link()
    {
        let link = Path::new(OsStr::from_bytes(name));
        let mut candidates = vec![debug.path().parent().unwrap_or(Path::new("")).join(link)];
        candidates.extend(by_build_id(id, options));
        files.shared = candidates.into_iter().find_map(|path| open_debug(&path, id, None));
    }
    if files.full_symbols().is_none() {
        match own.as_ref().and_then(mini_debug_info::read) {
            Some(Ok(mini)) => files.mini = Some(mini),
            Some(Err(error)) => files.problems.push(error),
            None => {}
        }
    }
    files.package = package_beside(&path, files.debug.as_ref());
    if files.missing.is_none() && &*module.path != vdso::NAME {
        files.missing = missing_from(&files);
    }
    files
}

fn open_program(module: &Module) -> Result<Mapped, Error> {
    if &*module.path == vdso::NAME {
        return checked(vdso::read()?, module);
    }
    // Another file may be at the path by now.
    let open =
        open_files::path(&module.path).and_then(|path| checked(Mapped::open(&path).ok()?, module).ok());
    if let Some(open) = open {
        return Ok(open);
    }
    let plain = Mapped::open(Path::new(&*module.path)).and_then(|program| checked(program, module));
    plain.or_else(|error| {
        let others = lossy_path::existing(&module.path).into_iter();
        let mut opened = others.filter_map(|path| checked(Mapped::open(&path).ok()?, module).ok());
        opened.next().ok_or(error)
    })
}

/// The file, if it is the one that was recorded.
fn checked(program: Mapped, module: &Module) -> Result<Mapped, Error> {
    let elf = Elf::parse(&program)?;
    let found = elf.build_id();
    if !module.build_id.is_empty() && found != &*module.build_id {
        return Err(Error::Changed {
            path: PathBuf::from(&*module.path),
            found: hex(found),
            recorded: hex(&module.build_id),
        });
    }
    Ok(program)
}

/// `/usr/lib/debug/.build-id/ab/cdef.debug`
fn by_build_id(id: &[u8], options: &Options) -> Vec<PathBuf> {
    let Some((first, rest)) = id.split_first().filter(|(_, rest)| !rest.is_empty()) else {
        return Vec::new();
    };
    let name = format!(".build-id/{first:02x}/{}.debug", hex(rest));
    let cached = options.debuginfod.as_ref().map(|debuginfod| debuginfod.cached(id));
    options.debug_folders().map(|folder| folder.join(&name)).chain(cached).collect()
}

/// The possible paths of a `.gnu_debuglink`.
fn by_link(program: &Path, name: &[u8], options: &Options) -> Vec<PathBuf> {
    let name = Path::new(OsStr::from_bytes(name));
    let folder = program.parent().unwrap_or(Path::new("/"));
    let mut paths = vec![folder.join(name), folder.join(".debug").join(name)];
    let inner = folder.strip_prefix("/").unwrap_or(folder);
    for global in options.debug_folders() {
        paths.push(global.join(inner).join(name));
        paths.push(global.join(name));
    }
    // A file that links to its own name is not its own debug file.
    paths.retain(|path| path != program);
    paths
}

/// Asks debuginfod for what is missing of each module. Those with the most locations come first, since time is limited.
/// Returns a line on the result.
pub fn fetch(modules: &[(&Module, usize)], files: &mut [Files], options: &Options) -> Option<String> {
    let mut session = options.debuginfod.as_ref()?.session();
    let mut order: Vec<usize> = (0..modules.len().min(files.len())).collect();
    order.sort_by_key(|index| std::cmp::Reverse(modules[*index].1));
    for index in order {
        let (module, files) = (modules[index].0, &mut files[index]);
        let name = file_name(&module.path);
        // A file that was replaced is wanted by its recorded id.
        let own = files.program.as_ref().and_then(|file| Elf::parse(file).ok());
        let own = own.as_ref().map(Elf::build_id).filter(|id| !id.is_empty());
        let id = own.unwrap_or(&module.build_id).to_vec();
        if files.missing.is_some() && session.fetch(&id, name) {
            *files = files_of(module, options);
        }
        let with_info = files.debug_info();
        let part = with_info.as_ref().and_then(Elf::shared_link).filter(|_| files.shared.is_none());
        if let Some(id) = part.map(|(_, id)| id.to_vec())
            && session.fetch(&id, name)
        {
            *files = files_of(module, options);
        }
    }
    session.message()
}

/// Opens a debug file if it belongs to the module.
fn open_debug(path: &Path, id: &[u8], crc: Option<u32>) -> Option<Mapped> {
    let file = Mapped::open(path).ok()?;
    let elf = Elf::parse(&file).ok()?;
    let found = elf.build_id();
    let wanted = if found.is_empty() || id.is_empty() {
        crc.is_some_and(|crc| crc32fast::hash(&file) == crc)
    } else {
        found == id
    };
    wanted.then_some(file)
}

/// `program.dwp` or `program.debug.dwp`.
fn package_beside(program: &Path, debug: Option<&Mapped>) -> Option<Mapped> {
    let mut candidates = Vec::new();
    for file in [Some(program), debug.map(Mapped::path)].into_iter().flatten() {
        let mut name = file.as_os_str().to_owned();
        name.push(".dwp");
        candidates.push(PathBuf::from(name));
        candidates.push(file.with_extension("dwp"));
    }
    candidates.into_iter().find_map(|path| Mapped::open(&path).ok())
}

fn missing_from(files: &Files) -> Option<Missing> {
    if files.debug_info().is_some() {
        return None;
    }
    match files.symbols() {
        Some((_, Table::Full)) => Some(Missing::DebugInfo),
        _ => Some(Missing::Names),
    }
}
