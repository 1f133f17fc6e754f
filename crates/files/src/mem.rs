//! `SOURCE.PID.mem`: a source file with the bytes that each line allocated, as Julia's `--track-allocation` writes it.
//!
//! Each line of the source follows a field of nine columns and a space. The field holds the bytes of an *instrumented* line,
//! which has code, and `-` for all others.

use crate::hidden_file::{self, without_passing_name};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Component, Path, PathBuf};

/// Larger files are not sources.
const LARGEST: u64 = 64 << 20;

/// The bytes of each instrumented line of a source, from line 1 on. Lines beyond the end of the source are ignored.
pub type LineBytes = BTreeMap<u64, u64>;

/// Writes the text of a `.mem` file.
///
/// ```
/// use stackglass_files::mem::write_lines;
///
/// let mut text = Vec::new();
/// write_lines(b"fn f() {\n    g()\n}", &[(1, 0), (2, 4096)].into(), &mut text)?;
/// assert_eq!(text, b"        0 fn f() {\n     4096     g()\n        - }\n");
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// When writing fails.
pub fn write_lines(source: &[u8], lines: &LineBytes, out: &mut dyn Write) -> io::Result<()> {
    for (number, line) in (1..).zip(source.split_inclusive(|byte| *byte == b'\n')) {
        match lines.get(&number) {
            Some(bytes) => write!(out, "{bytes:9} ")?,
            None => out.write_all(b"        - ")?,
        }
        out.write_all(line)?;
        if !line.ends_with(b"\n") {
            out.write_all(b"\n")?;
        }
    }
    Ok(())
}

/// The contents of a source; `None` if it cannot be opened, or is no source.
pub fn read_source(path: &Path) -> Option<Vec<u8>> {
    let meta = path.metadata().ok()?;
    if !meta.is_file() || meta.len() > LARGEST {
        return None;
    }
    let mut text = Vec::new();
    File::open(path).ok()?.take(LARGEST).read_to_end(&mut text).ok()?;
    Some(text)
}

/// Writes the `.mem` file of a source, whose path must be absolute and without `..`. The file is beside the source, or at
/// its path below `folder`, whose missing folders are made. It appears when it is complete, and replaces an older one.
///
/// Returns its path; `None` if the source cannot be opened.
///
/// # Errors
/// If the system refuses, or if a symbolic link has its name or is on the way to it below `folder`. Nothing is written
/// through links.
pub fn write_mem(
    source: &Path,
    lines: &LineBytes,
    pid: u32,
    folder: Option<&Path>,
) -> io::Result<Option<PathBuf>> {
    let Some(text) = read_source(source) else { return Ok(None) };
    let path = mem_path(source, pid, folder)?;
    if let Some(folder) = folder {
        make_folders(folder, path.parent().unwrap_or(folder))?;
    }
    match path.symlink_metadata() {
        Ok(meta) if !meta.is_file() => {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "its name is taken by something that is no file",
            ));
        }
        _ => {}
    }
    let (file, part) = hidden_file::beside(&path, 0o666)?.into_parts();
    let mut out = BufWriter::new(file);
    write_lines(&text, lines, &mut out)?;
    out.flush()?;
    part.persist(&path).map_err(|error| without_passing_name(error.error))?;
    Ok(Some(path))
}

/// `SOURCE.PID.mem`, beside the source or below `folder`.
fn mem_path(source: &Path, pid: u32, folder: Option<&Path>) -> io::Result<PathBuf> {
    let plain = source.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    let (true, true, Some(name)) = (plain, source.is_absolute(), source.file_name()) else {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the path of a source must be absolute, without `..`",
        ));
    };
    let mut name = name.to_owned();
    name.push(format!(".{pid}.mem"));
    let beside = source.with_file_name(name);
    Ok(match folder {
        Some(folder) => folder.join(beside.strip_prefix("/").unwrap_or(&beside)),
        None => beside,
    })
}

/// Makes the folders from `top` to `path`. Refuses links below `top`.
fn make_folders(top: &Path, path: &Path) -> io::Result<()> {
    fs::create_dir_all(top)?;
    let mut at = top.to_owned();
    for part in path.strip_prefix(top).unwrap_or(Path::new("")).components() {
        at.push(part);
        match fs::create_dir(&at) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if !at.symlink_metadata()?.is_dir() {
                    let message = format!("{} is no folder", at.display());
                    return Err(io::Error::new(io::ErrorKind::NotADirectory, message));
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The sum of all `.mem` files of a source, by line from 1 on; `None` for lines without code. `folder` is that of
/// [`write_mem`]. Files of other versions of the source, with fewer or more lines, are summed as well.
///
/// # Errors
/// If the folder or one of the files cannot be read, or if a file is no `.mem` file.
pub fn sum_mem(source: &Path, folder: Option<&Path>) -> io::Result<Vec<Option<u64>>> {
    let pattern = mem_path(source, 0, folder)?;
    let name = source.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut sums: Vec<Option<u64>> = Vec::new();
    for entry in pattern.parent().unwrap_or(Path::new("/")).read_dir()? {
        let entry = entry?;
        let file = entry.file_name().to_string_lossy().into_owned();
        let pid = file.strip_prefix(&name).and_then(|rest| rest.strip_prefix('.')?.strip_suffix(".mem"));
        if pid.is_some_and(|pid| !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit())) {
            add_mem(&fs::read(entry.path())?, &mut sums)?;
        }
    }
    Ok(sums)
}

/// Adds the fields of one file.
fn add_mem(text: &[u8], sums: &mut Vec<Option<u64>>) -> io::Result<()> {
    for (index, line) in text.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let field = line.split(u8::is_ascii_whitespace).find(|field| !field.is_empty()).unwrap_or_default();
        let bytes = match field {
            b"-" => None,
            digits => match std::str::from_utf8(digits).ok().and_then(|digits| digits.parse::<u64>().ok()) {
                Some(bytes) => Some(bytes),
                None => {
                    let message = format!("line {} has no number of bytes", index + 1);
                    return Err(io::Error::new(io::ErrorKind::InvalidData, message));
                }
            },
        };
        if sums.len() <= index {
            sums.push(None);
        }
        if let Some(bytes) = bytes {
            sums[index] = Some(sums[index].unwrap_or(0).saturating_add(bytes));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn text(source: &[u8], lines: &[(u64, u64)]) -> String {
        let mut out = Vec::new();
        write_lines(source, &lines.iter().copied().collect(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_layout_is_that_of_the_reference() {
        assert_eq!(
            text(b"a\n\nb\r\n c", &[(1, 0), (3, 7)]),
            "        0 a\n        - \n        7 b\r\n        -  c\n"
        );
        assert_eq!(text(b"a\n", &[(1, 1_234_567_890_123), (2, 5)]), "1234567890123 a\n");
        assert_eq!(text(b"", &[(1, 5)]), "");
    }

    #[test]
    fn files_of_all_processes_add_up() {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().canonicalize().unwrap().join("a.rs");
        fs::write(&source, "one\ntwo\nthree").unwrap();
        let first = write_mem(&source, &[(1, 5), (2, 0)].into(), 7, None).unwrap().unwrap();
        assert_eq!(first, source.with_file_name("a.rs.7.mem"));
        write_mem(&source, &[(1, 6), (3, 1)].into(), 71, None).unwrap();
        // Replaced, not added.
        write_mem(&source, &[(1, 7), (3, 1)].into(), 71, None).unwrap();
        fs::write(source.with_file_name("a.rs.x.mem"), "no").unwrap();
        fs::write(source.with_file_name("b.rs.7.mem"), "no").unwrap();
        assert_eq!(sum_mem(&source, None).unwrap(), [Some(12), Some(0), Some(1)]);
        let mode = first.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode & 0o600, 0o600);
        fs::write(source.with_file_name("a.rs.9.mem"), "x\n").unwrap();
        assert!(sum_mem(&source, None).is_err());
        let left: Vec<_> =
            folder.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(left.iter().all(|name| !name.to_string_lossy().ends_with(".part")), "{left:?}");
    }

    #[test]
    fn a_folder_mirrors_the_paths_of_sources() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        let source = top.join("src/a.rs");
        fs::create_dir(top.join("src")).unwrap();
        fs::write(&source, "x\n").unwrap();
        let mirror = top.join("new/mem");
        let written = write_mem(&source, &[(1, 3)].into(), 5, Some(&mirror)).unwrap().unwrap();
        assert_eq!(written, mirror.join(source.strip_prefix("/").unwrap()).with_file_name("a.rs.5.mem"));
        assert_eq!(fs::read_to_string(&written).unwrap(), "        3 x\n");
        assert_eq!(sum_mem(&source, Some(&mirror)).unwrap(), [Some(3)]);
        assert_eq!(write_mem(&top.join("src/none.rs"), &[(1, 3)].into(), 5, None).unwrap(), None);
        assert_eq!(write_mem(&top.join("src"), &[(1, 3)].into(), 5, None).unwrap(), None, "a folder");
        assert!(write_mem(&top.join("src/../src/a.rs"), &[(1, 3)].into(), 5, Some(&mirror)).is_err());
    }

    #[test]
    fn nothing_is_written_through_links() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        let (source, target) = (top.join("a.rs"), top.join("target"));
        fs::write(&source, "x\n").unwrap();
        fs::write(&target, "keep").unwrap();
        std::os::unix::fs::symlink(&target, top.join("a.rs.5.mem")).unwrap();
        assert!(write_mem(&source, &[(1, 3)].into(), 5, None).is_err());
        assert_eq!(fs::read_to_string(&target).unwrap(), "keep");
        let (mirror, elsewhere) = (top.join("mirror"), top.join("elsewhere"));
        fs::create_dir(&mirror).unwrap();
        fs::create_dir(&elsewhere).unwrap();
        let first = source.components().nth(1).unwrap();
        std::os::unix::fs::symlink(&elsewhere, mirror.join(first)).unwrap();
        assert!(write_mem(&source, &[(1, 3)].into(), 5, Some(&mirror)).is_err());
        assert_eq!(elsewhere.read_dir().unwrap().count(), 0);
    }
}
