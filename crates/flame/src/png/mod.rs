//! PNG pictures: of a matrix of pixels, and of a graph with labels.

mod canvas;
mod merged;
mod picture;

pub use picture::{Layout, MOST_LEVELS, PictureOptions, write_picture};

use crate::{Pixels, PixelsError};
use std::io::{self, Write};

/// Why a picture could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PngError {
    /// There are no pixels.
    #[error("a picture of {columns} by {rows} pixels is empty: there is nothing to draw")]
    Empty {
        /// Width in pixels.
        columns: usize,
        /// Height in pixels.
        rows: usize,
    },
    /// The picture would be too large.
    #[error("a picture of {columns} by {rows} pixels is too large: draw it narrower, or with fewer levels")]
    TooLarge {
        /// Width in pixels.
        columns: usize,
        /// Height in pixels.
        rows: usize,
    },
    /// The colour function returned no colour.
    #[error(transparent)]
    Colors(#[from] PixelsError),
    /// Writing failed.
    #[error("cannot write the picture: {0}")]
    Write(#[from] io::Error),
}

/// Writes pixels: the cost axis to the right, depth downwards, with the root at the top.
///
/// # Errors
/// If there are no pixels, or if writing fails.
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

/// The error of the system, if it was one.
fn why(error: ::png::EncodingError) -> io::Error {
    match error {
        ::png::EncodingError::IoError(error) => error,
        other => io::Error::other(other),
    }
}
