//! A colour of a picture.

use std::fmt;
use std::str::FromStr;

/// An 8-bit sRGB colour. Displayed as `rrggbb`; parsed from `rrggbb`, `#rrggbb` or a CSS name.
///
/// ```
/// use stackglass_flame::Color;
///
/// assert_eq!("crimson".parse::<Color>()?.to_string(), "dc143c");
/// assert_eq!("#FFA500".parse::<Color>()?, Color([255, 165, 0]));
/// assert!("ffa50".parse::<Color>().is_err());
/// # Ok::<(), stackglass_flame::color::NoSuchColor>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Color(pub [u8; 3]);

/// A text that is not a colour.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0:?} is not a colour: use rrggbb in hexadecimal or a CSS name such as crimson")]
pub struct NoSuchColor(pub String);

impl Color {
    /// White.
    pub const WHITE: Color = Color([255; 3]);
    /// Black.
    pub const BLACK: Color = Color([0; 3]);
    /// Default mark of dispatch.
    pub const CRIMSON: Color = Color([0xdc, 0x14, 0x3c]);
    /// Default mark of memory management.
    pub const ORANGE: Color = Color([0xff, 0xa5, 0]);

    /// The colour of a number of six hexadecimal digits.
    pub(crate) const fn hex(digits: u32) -> Color {
        let [_, red, green, blue] = digits.to_be_bytes();
        Color([red, green, blue])
    }

    /// The contrast ratio to another colour, 1 to 21 (WCAG 2.1).
    pub fn contrast(self, other: Color) -> f64 {
        let (one, two) = (self.luminance() + 0.05, other.luminance() + 0.05);
        one.max(two) / one.min(two)
    }

    fn luminance(self) -> f64 {
        let [red, green, blue] = self.0.map(|part| match f64::from(part) / 255.0 {
            part if part <= 0.04045 => part / 12.92,
            part => ((part + 0.055) / 1.055).powf(2.4),
        });
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    }
}

impl fmt::Display for Color {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [red, green, blue] = self.0;
        write!(f, "{red:02x}{green:02x}{blue:02x}")
    }
}

impl FromStr for Color {
    type Err = NoSuchColor;

    fn from_str(text: &str) -> Result<Color, NoSuchColor> {
        let digits = text.strip_prefix('#').unwrap_or(text);
        if digits.len() == 6 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return u32::from_str_radix(digits, 16).map(Color::hex).map_err(|_| NoSuchColor(text.to_owned()));
        }
        let named = palette::named::from_str(&text.to_ascii_lowercase());
        named.map(|color| Color(color.into())).ok_or_else(|| NoSuchColor(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_digits() {
        for (text, color) in [
            ("white", Color::WHITE),
            ("Black", Color::BLACK),
            ("orange", Color::ORANGE),
            ("dc143C", Color::CRIMSON),
        ] {
            assert_eq!(text.parse(), Ok(color));
            assert_eq!(color.to_string().parse(), Ok(color));
        }
        for text in ["", "#", "no-color", "+12345", "ff00é0", "##ffffff"] {
            assert_eq!(text.parse::<Color>(), Err(NoSuchColor(text.to_owned())));
        }
    }

    #[test]
    fn contrasts_of_the_standard() {
        assert!((Color::WHITE.contrast(Color::BLACK) - 21.0).abs() < 1e-9);
        // The lightest grey that is readable on white.
        assert!((Color::hex(0x767676).contrast(Color::WHITE) - 4.54).abs() < 0.01);
    }
}
