//! A bitmap for boxes, hatched boxes and text.
//!
//! Text is drawn from rasters of Noto Sans Mono (SIL Open Font License 1.1, by the crate that contains them).

use crate::Color;
use noto_sans_mono_bitmap::{FontWeight, RasterHeight, get_raster, get_raster_width};
use std::ops::Range;

/// Bitmap pixels per picture pixel, in each direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Density(usize);

impl Density {
    pub const ONE: Density = Density(1);
    pub const TWO: Density = Density(2);

    /// A length of the picture in bitmap pixels.
    pub fn pixels(self, length: usize) -> usize {
        self.0 * length
    }

    fn raster(self) -> RasterHeight {
        if self == Density::ONE { RasterHeight::Size16 } else { RasterHeight::Size32 }
    }

    /// Height of a line of text in bitmap pixels.
    pub fn text_height(self) -> usize {
        self.raster().val()
    }

    /// Width of a character in bitmap pixels.
    pub fn text_width(self) -> usize {
        get_raster_width(FontWeight::Regular, self.raster())
    }
}

/// A bitmap.
pub(super) struct Canvas {
    width: usize,
    pixels: Vec<Color>,
    density: Density,
}

impl Canvas {
    pub fn new(width: usize, height: usize, background: Color, density: Density) -> Canvas {
        Canvas { width, pixels: vec![background; width * height], density }
    }

    pub fn rows(&self) -> impl Iterator<Item = &[Color]> {
        self.pixels.chunks_exact(self.width)
    }

    /// Fills the part of a box on the canvas.
    pub fn fill(&mut self, columns: Range<usize>, rows: Range<usize>, color: Color) {
        self.each(columns, rows, |_, _| color);
    }

    /// Fills a box with stripes.
    pub fn hatch(&mut self, columns: Range<usize>, rows: Range<usize>, color: Color, stripe: Color) {
        let step = self.density.pixels(1);
        self.each(
            columns,
            rows,
            |column, row| {
                if (column / step + row / step).is_multiple_of(4) { stripe } else { color }
            },
        );
    }

    fn each(&mut self, columns: Range<usize>, rows: Range<usize>, color: impl Fn(usize, usize) -> Color) {
        let columns = columns.start.min(self.width)..columns.end.min(self.width);
        let lines = self.pixels.chunks_exact_mut(self.width).enumerate();
        for (row, line) in lines.take(rows.end).skip(rows.start) {
            for column in columns.clone() {
                line[column] = color(column, row);
            }
        }
    }

    /// Three dots, which the font lacks.
    fn ellipsis(&mut self, column: usize, row: usize, ink: Color) {
        let (dot, width) = (self.density.pixels(1), self.density.text_width());
        let base = row + self.density.text_height() * 25 / 32;
        for number in 0..3 {
            let left = column + (2 * number + 1) * width / 6 - dot / 2;
            self.fill(left..left + dot, base - dot..base, ink);
        }
    }

    /// The mark of recursion, which the font lacks: a ring that is open at its upper right.
    fn ring(&mut self, column: usize, row: usize, ink: Color) {
        let (line, width, height) =
            (self.density.pixels(1), self.density.text_width(), self.density.text_height());
        let (left, right) = (column, column + width - line);
        let (top, bottom) = (row + height * 9 / 32, row + height * 25 / 32);
        self.fill(left..left + line, top..bottom, ink);
        self.fill(left..left + width / 2, top..top + line, ink);
        self.fill(left..right, bottom - line..bottom, ink);
        self.fill(right..right + line, (top + bottom) / 2..bottom, ink);
    }

    /// Draws text from its upper left corner. Characters that the font lacks get its replacement.
    pub fn text(&mut self, text: &str, column: usize, row: usize, ink: Color) {
        let (font, height) = (FontWeight::Regular, self.density.raster());
        let mut column = column;
        for character in text.chars().map(|c| if c == '\u{a0}' { ' ' } else { c }) {
            if character == '…' {
                self.ellipsis(column, row, ink);
                column += self.density.text_width();
                continue;
            }
            if character == '↻' {
                self.ring(column, row, ink);
                column += self.density.text_width();
                continue;
            }
            let raster = get_raster(character, font, height).or_else(|| get_raster('\u{fffd}', font, height));
            let Some(raster) = raster else { continue };
            let rows = self.pixels.chunks_exact_mut(self.width).skip(row);
            for (line, shades) in rows.zip(raster.rows()) {
                for (pixel, shade) in line.iter_mut().skip(column).zip(shades) {
                    *pixel = mixed(*pixel, ink, *shade);
                }
            }
            column += raster.width();
        }
    }
}

/// Blends a colour of this strength, at most 255, with the background.
fn mixed(ground: Color, ink: Color, strength: u8) -> Color {
    let strength = u32::from(strength);
    let part = |at: usize| {
        let (ground, ink) = (u32::from(ground.0[at]), u32::from(ink.0[at]));
        ((ground * (255 - strength) + ink * strength + 127) / 255) as u8
    };
    Color([part(0), part(1), part(2)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beside_is_left_out() {
        let mut canvas = Canvas::new(4, 3, Color::WHITE, Density::ONE);
        canvas.fill(2..9, 1..9, Color::BLACK);
        canvas.fill(7..9, 7..9, Color::CRIMSON);
        canvas.text("wide\u{1F600}", 3, 2, Color::CRIMSON);
        let rows: Vec<Vec<Color>> = canvas.rows().map(<[Color]>::to_vec).collect();
        assert_eq!(rows[0], [Color::WHITE; 4]);
        assert_eq!(rows[1], [Color::WHITE, Color::WHITE, Color::BLACK, Color::BLACK]);
    }

    #[test]
    fn letters_have_ink() {
        let mut canvas = Canvas::new(40, 16, Color::WHITE, Density::ONE);
        canvas.text("Hg", 0, 0, Color::BLACK);
        let dark = canvas.pixels.iter().filter(|color| **color != Color::WHITE).count();
        assert!((20..300).contains(&dark), "{dark}");
        assert_eq!(
            (mixed(Color::WHITE, Color::BLACK, 255), mixed(Color::CRIMSON, Color::BLACK, 0)),
            (Color::BLACK, Color::CRIMSON)
        );
    }
}
