//! The symbol table in `.gnu_debugdata`, which Fedora and its relatives keep in stripped files ("MiniDebugInfo", GDB
//! manual). The section is an ELF file compressed by xz. It has the functions that are not exported, and nothing else.

use crate::Error;
use crate::elf::{Elf, Table};
use crate::mapped::Mapped;
use xz4rust::{XzDecoder, XzNextBlockResult};

/// Name of the section.
const SECTION: &str = ".gnu_debugdata";

/// Largest dictionary: that of `xz -9`. Small files declare large ones as well, and use only the beginning.
const DICTIONARY: usize = 64 << 20;

/// Largest file without compression. Those of the largest programs have some 50 MB.
const LARGEST: usize = 512 << 20;

/// Largest ratio of the sizes without and with compression; symbol tables have 3 to 10.
const RATIO: usize = 64;

/// Bytes decompressed at once.
const STEP: usize = 64 << 10;

/// The file in the section of a program; `None` if there is no such section.
pub fn read(elf: &Elf<'_>) -> Option<Result<Mapped, Error>> {
    let section = elf.section(SECTION)?;
    let path = elf.file().path();
    let bad = |what: String| Error::Compression { path: path.to_owned(), section: SECTION, what };
    let read = expand(section.bytes).map_err(bad).and_then(|bytes| {
        let file = Mapped::from_memory(&format!("{SECTION} of {}", path.display()), bytes);
        Elf::parse(&file)?.symbols(Table::Full).ok_or_else(|| bad("it has no symbols".into()))?;
        Ok(file)
    });
    Some(read)
}

/// Decompresses an xz stream. The result is in proportion to it.
fn expand(mut compressed: &[u8]) -> Result<Vec<u8>, String> {
    let most = compressed.len().saturating_mul(RATIO).min(LARGEST);
    let mut decoder = XzDecoder::in_heap_with_alloc_dict_size(0, DICTIONARY);
    let mut bytes = Vec::new();
    let mut part = vec![0; STEP];
    loop {
        let step = decoder.decode(compressed, &mut part).map_err(|error| error.to_string())?;
        bytes.extend_from_slice(part.get(..step.output_produced()).unwrap_or_default());
        compressed = compressed.get(step.input_consumed()..).unwrap_or_default();
        match step {
            XzNextBlockResult::EndOfStream(..) => return Ok(bytes),
            _ if !step.made_progress() => return Err("it ends too early".into()),
            _ if bytes.len() > most => {
                return Err(format!("it holds more than the {most} bytes that are read"));
            }
            _ => {}
        }
    }
}
