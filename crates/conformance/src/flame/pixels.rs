//! Converts a graph and a colour scheme to pixels, tags and a PNG.

use super::colors;
use super::node::{frame, graph};
use crate::Mode;
use crate::same::same;
use serde_json::{Value, json};
use stackglass_flame::pixels::flamepixels_unmoved;
use stackglass_flame::{Graph, Matrix, Pixels, PixelsError, flamepixels, flametags, png};
use stackglass_profile::Frame;
use std::fs::File;
use std::io::{BufReader, Cursor};
use std::path::Path;

pub(crate) fn run(
    file: &Value,
    case: &Value,
    mode: Mode,
) -> Result<(Graph, Result<Pixels, PixelsError>), String> {
    let stored = if case["graph"].is_object() { &case["graph"] } else { &file["graph"] };
    let graph = graph(stored).ok_or("the case has no graph\n")?;
    let colors = colors::function(&case["colors"])?;
    let scale = case["costscale"].as_f64();
    let pixels = match mode {
        Mode::Recorded => flamepixels_unmoved(&graph, &*colors, scale),
        Mode::Ours => flamepixels(&graph, &*colors, scale),
    };
    Ok((graph, pixels))
}

/// Pixels as text, one line for each row.
pub(crate) fn text(pixels: &Result<Pixels, PixelsError>) -> String {
    match pixels {
        Err(error) => format!("{error}\n"),
        Ok(pixels) => pixels.rows().map(|row| format!("{}\n", rle(row).join(" "))).collect(),
    }
}

fn rle<T: PartialEq + std::fmt::Display>(row: &[T]) -> Vec<String> {
    row.chunk_by(PartialEq::eq).map(|run| format!("{}*{}", run[0], run.len())).collect()
}

/// Compares with the record; `folder` contains the pictures.
pub(crate) fn judge(file: &Value, case: &Value, mode: Mode, folder: &Path) -> Result<(), String> {
    let (graph, pixels) = run(file, case, mode)?;
    let pixels = match (pixels, &case["error"]) {
        (Err(_), Value::Object(_)) => return Ok(()),
        (Err(error), _) => return Err(format!("{error}\n")),
        (Ok(pixels), Value::Object(error)) => {
            return Err(format!("expected an error: {error:?}\n{}", text(&Ok(pixels))));
        }
        (Ok(pixels), _) => pixels,
    };
    let size = |(cost, depth): (usize, usize)| json!([cost, depth]);
    same(&case["size"], &size(pixels.size()))?;
    same(&rows(case, "pixels", "rle")?, &ours(&pixels))?;
    if case["tags"].is_object() {
        let tags = flametags(&graph, &pixels).map_err(|error| format!("{error}\n"))?;
        let frames: Vec<Frame> = case["tags"]["frames"].as_array().into_iter().flatten().map(frame).collect();
        if frames != tags.frames {
            return Err(format!(
                "frames of the tags\n--- expected\n{frames:#?}\n+++ ours\n{:#?}\n",
                tags.frames
            ));
        }
        same(&rows(&case["tags"], "index", "index_rle")?, &ours(&tags.index))?;
    }
    let Some(name) = case["png"].as_str() else { return Ok(()) };
    let recorded = File::open(folder.join(name)).map_err(|error| format!("{name}: {error}\n"))?;
    let mut written = Vec::new();
    png::write_pixels(&pixels, &mut written).map_err(|error| format!("{error}\n"))?;
    let (recorded, written) = (decoded(BufReader::new(recorded))?, decoded(Cursor::new(written))?);
    if recorded == written { Ok(()) } else { Err(format!("the picture differs from {name}\n")) }
}

/// Recorded rows, complete or run-length encoded, as text.
fn rows(stored: &Value, full: &str, runs: &str) -> Result<Value, String> {
    let list = |value: &Value| value.as_array().cloned();
    let text = |cell: &Value| cell.as_str().map_or_else(|| cell.to_string(), str::to_owned);
    let rows: Vec<Vec<String>> = match (list(&stored[full]), list(&stored[runs])) {
        (Some(rows), _) => {
            let row = |row: &Value| list(row).unwrap_or_default().iter().map(text).collect::<Vec<_>>();
            rows.iter().map(|cells| rle(&row(cells))).collect()
        }
        (None, Some(rows)) => {
            let run = |run: &Value| format!("{}*{}", text(&run[0]), run[1]);
            rows.iter().map(|row| list(row).unwrap_or_default().iter().map(run).collect()).collect()
        }
        (None, None) => return Err(format!("the case has neither {full} nor {runs}\n")),
    };
    Ok(json!(rows))
}

fn ours<T: Copy + PartialEq + std::fmt::Display>(matrix: &Matrix<T>) -> Value {
    json!(matrix.rows().map(rle).collect::<Vec<_>>())
}

/// Width, height and all pixels of a PNG, as RGB.
fn decoded(from: impl std::io::BufRead + std::io::Seek) -> Result<(u32, u32, Vec<u8>), String> {
    let failed = |error: ::png::DecodingError| format!("{error}\n");
    let mut decoder = ::png::Decoder::new(from);
    decoder.set_transformations(::png::Transformations::normalize_to_color8());
    let mut reader = decoder.read_info().map_err(failed)?;
    let mut bytes = vec![0; reader.output_buffer_size().ok_or("too large a picture\n")?];
    let info = reader.next_frame(&mut bytes).map_err(failed)?;
    bytes.truncate(info.buffer_size());
    let rgb = match info.color_type {
        ::png::ColorType::Rgb => bytes,
        ::png::ColorType::Rgba => bytes.chunks(4).flat_map(|pixel| pixel[..3].to_vec()).collect(),
        ::png::ColorType::Grayscale => bytes.iter().flat_map(|grey| [*grey; 3]).collect(),
        other => return Err(format!("a picture of type {other:?}\n")),
    };
    Ok((info.width, info.height, rgb))
}
