//! Decompresses sections, and tells which declared sizes are possible.

use crate::elf::{Method, RawSection};
#[cfg(feature = "zstd")]
use std::io::Read;

/// Largest decompressed section.
const LARGEST: u64 = 8 << 30;

/// Largest ratio of decompressed to compressed size in zlib.
const ZLIB_RATIO: u64 = 1032;

/// The bytes of a section. Its declared size is checked before memory is allocated.
pub(crate) fn expand(section: RawSection<'_>) -> Result<Vec<u8>, String> {
    let Some(compression) = section.compression else {
        return Ok(section.bytes.to_vec());
    };
    let size = compression.size;
    let stored = section.bytes.len() as u64;
    match compression.method {
        Method::Zlib => {
            let mut bytes = vec![0; size_of_zlib(size, stored)?];
            let mut inflate = flate2::Decompress::new(true);
            let status = inflate
                .decompress(section.bytes, &mut bytes, flate2::FlushDecompress::Finish)
                .map_err(|error| error.to_string())?;
            if status != flate2::Status::StreamEnd || inflate.total_out() != size {
                return Err(format!("it declares {size} bytes and holds {}", inflate.total_out()));
            }
            Ok(bytes)
        }
        #[cfg(feature = "zstd")]
        Method::Zstd => {
            check_size(size)?;
            let decoder = zstd::Decoder::with_buffer(section.bytes).map_err(|error| error.to_string())?;
            // Room for a common ratio at once, more as data comes.
            let mut bytes = Vec::with_capacity(size.min(stored.saturating_mul(16)) as usize);
            let read = decoder.take(size + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
            if read as u64 != size {
                return Err(format!("it declares {size} bytes and does not hold as many"));
            }
            Ok(bytes)
        }
        #[cfg(not(feature = "zstd"))]
        Method::Zstd => {
            Err("it is compressed with zstd, which this build does not read (feature `zstd`)".into())
        }
        Method::Unknown(method) => Err(format!("compression method {method} is not known")),
    }
}

/// The size of a section that is compressed with zlib to `stored` bytes, if they can hold as much.
pub(crate) fn size_of_zlib(size: u64, stored: u64) -> Result<usize, String> {
    check_size(size)?;
    if size > stored.saturating_mul(ZLIB_RATIO).saturating_add(64) {
        return Err(format!("it declares {size} bytes, which {stored} bytes of zlib cannot hold"));
    }
    Ok(size as usize)
}

fn check_size(size: u64) -> Result<(), String> {
    if size > LARGEST {
        return Err(format!("it declares {size} bytes, more than the {LARGEST} that are read"));
    }
    Ok(())
}
