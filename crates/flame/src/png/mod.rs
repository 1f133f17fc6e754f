//! PNG pictures: of a matrix of pixels as it is, and of a graph with labels, for people.

mod canvas;
mod label;
mod merged;
mod picture;

pub use picture::{Layout, PictureOptions, write_picture};

use crate::{Pixels, PixelsError};
use std::io::{self, Write};

/// Why a picture was not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PngError {
    /// A picture has pixels.
    #[error("{columns} by {rows} pixels are no picture: there is nothing to draw")]
    Empty {
        /// Across.
        columns: usize,
        /// Down.
        rows: usize,
    },
    /// It would be too large.
    #[error("a picture of {columns} by {rows} pixels is too large: draw it narrower, or with fewer levels")]
    TooLarge {
        /// Across.
        columns: usize,
        /// Down.
        rows: usize,
    },
    /// The colour function did not give a colour.
    #[error(transparent)]
    Colors(#[from] PixelsError),
    /// It could not be written.
    #[error("cannot write the picture: {0}")]
    Write(#[from] io::Error),
}

/// Writes pixels as they are: across the cost axis, down the depth, the root on top.
///
/// # Errors
/// When there are no pixels, or they cannot be written.
pub fn write_pixels(pixels: &Pixels, out: impl Write) -> Result<(), PngError> {
    let (columns, rows) = pixels.size();
    write_rows(columns, rows, pixels.rows().map(<[_]>::iter).map(|row| row.flat_map(|color| color.0)), out)
}

/// Writes rows of red, green and blue bytes, one at a time.
fn write_rows(
    columns: usize,
    rows: usize,
    bytes: impl Iterator<Item = impl Iterator<Item = u8>>,
    out: impl Write,
) -> Result<(), PngError> {
    if columns == 0 || rows == 0 {
        return Err(PngError::Empty { columns, rows });
    }
    let (Ok(width), Ok(height)) = (u32::try_from(columns), u32::try_from(rows)) else {
        return Err(PngError::TooLarge { columns, rows });
    };
    let mut encoder = ::png::Encoder::new(out, width, height);
    encoder.set_color(::png::ColorType::Rgb);
    encoder.set_depth(::png::BitDepth::Eight);
    let mut writer = encoder.write_header().map_err(why)?;
    let mut stream = writer.stream_writer().map_err(why)?;
    let mut line = Vec::with_capacity(columns * 3);
    for row in bytes {
        line.clear();
        line.extend(row);
        stream.write_all(&line)?;
    }
    stream.finish().map_err(why)?;
    writer.finish().map_err(why)?;
    Ok(())
}

/// What the system said, where it was the system.
fn why(error: ::png::EncodingError) -> io::Error {
    match error {
        ::png::EncodingError::IoError(error) => error,
        other => io::Error::other(other),
    }
}
