//! Distinguishable colours, chosen one after the other: each has the largest distance to all earlier ones under
//! deuteranopia.
//!
//! Source: FlameGraphs.jl's `FlameColors` and `distinguishable_colors` of Colors.jl, with their numbers.

use super::deutan::deutan;
use super::space::{Lab, Lch, LinSrgb, Srgb, Xyz};
use crate::Color;
use palette::Clamp;
use palette::color_difference::Ciede2000;
use palette::convert::{FromColorUnclamped, IntoColorUnclamped};

/// Light, medium and strong colours around the circle of hues.
const HUES: u32 = 18;
const CHROMAS: [f64; 2] = [10.0, 55.0];
const LIGHTNESSES: [f64; 2] = [65.0, 80.0];

/// Distances are compared in this many parts of one.
const DIGITS: f64 = 1e4;

/// Less chroma is grey, whose hue is 0.
const LEAST_CHROMA: f64 = 0.01;

/// The surroundings of a colour scheme.
pub(crate) struct Surroundings {
    /// Background and font, not always with 8 bits.
    pub background: Srgb,
    pub font: Srgb,
    /// Background and font have 8 bits. Then all colours to avoid are rounded to 8 bits.
    pub rounded: bool,
    /// Other colours to avoid.
    pub others: Vec<Color>,
    /// The result is sorted by the distance to this colour.
    pub sorted_from: Srgb,
}

/// This many colours for these surroundings. There are 72 candidates; then the first one repeats.
pub(crate) fn choose(count: usize, surroundings: &Surroundings) -> Vec<Color> {
    let candidates = candidates();
    let seen: Vec<Lab> = candidates.iter().map(|color| lab(deutan(*color))).collect();
    let mut distances = vec![f64::INFINITY; seen.len()];
    let keep_away = |distances: &mut [f64], from: Lab| {
        for (distance, color) in distances.iter_mut().zip(&seen) {
            *distance = distance.min(from.difference(*color));
        }
    };
    let others = surroundings.others.iter().map(|color| floats(*color));
    for color in [surroundings.background, surroundings.font].into_iter().chain(others) {
        let mut seen = srgb(deutan(Xyz::from_color_unclamped(color))).clamp();
        if surroundings.rounded {
            seen = floats(rounded(seen));
        }
        keep_away(&mut distances, lab(Xyz::from_color_unclamped(seen)));
    }
    // Sorted by distance, then in the order of candidates.
    let mut chosen: Vec<(u64, usize, Color)> = Vec::with_capacity(count);
    let from = lab(Xyz::from_color_unclamped(surroundings.sorted_from));
    for _ in 0..count {
        // The first one with the largest distance.
        let farther = |best: usize, next: usize| if distances[next] > distances[best] { next } else { best };
        let best = (0..distances.len()).reduce(farther).unwrap_or(0);
        keep_away(&mut distances, seen[best]);
        distances[best] = 0.0;
        let color = srgb(candidates[best]).clamp();
        let compared = if surroundings.rounded { floats(rounded(color)) } else { color };
        let distance = from.difference(lab(Xyz::from_color_unclamped(compared)));
        // Colours with the same lightness and chroma have the same distance to white, except for rounding.
        chosen.push(((distance * DIGITS).round() as u64, best, rounded(color)));
    }
    chosen.sort();
    chosen.into_iter().map(|(.., color)| color).collect()
}

/// Four variants of a colour, from lighter and stronger to darker and weaker. The colour itself is not among them.
pub(crate) fn variants(of: Srgb) -> [Color; 4] {
    let Lch { l, chroma, hue, .. } = Lch::from_color_unclamped(lab(Xyz::from_color_unclamped(of)));
    let hue = if chroma < LEAST_CHROMA { 0.0 } else { hue.into_positive_degrees() };
    let from = ((l + 2.5).min(100.0), chroma + 10.0, hue - 7.5);
    let to = ((l - 2.5).max(0.0), (chroma - 10.0).max(0.0), hue + 7.5);
    [0.0, 1.0, 2.0, 3.0].map(|step| {
        let between = |from: f64, to: f64| from + (to - from) * step / 3.0;
        let color = Lch::new(between(from.0, to.0), between(from.1, to.1), between(from.2, to.2));
        rounded(srgb(xyz(color)).clamp())
    })
}

/// A colour in numbers from 0 to 1.
pub(crate) fn floats(color: Color) -> Srgb {
    let [red, green, blue] = color.0.map(|part| f64::from(part) / 255.0);
    Srgb::new(red, green, blue)
}

/// The nearest colour of 8 bits.
pub(crate) fn rounded(color: Srgb) -> Color {
    Color([color.red, color.green, color.blue].map(|part| (part * 255.0).round_ties_even() as u8))
}

/// The difference of two colours under deuteranopia (CIEDE2000).
#[cfg(test)]
pub(crate) fn deutan_difference(one: Color, two: Color) -> f64 {
    let seen = |color| lab(deutan(Xyz::from_color_unclamped(floats(color))));
    seen(one).difference(seen(two))
}

fn candidates() -> Vec<Xyz> {
    let mut candidates = Vec::with_capacity(HUES as usize * 4);
    for hue in 0..HUES {
        for chroma in CHROMAS {
            for lightness in LIGHTNESSES {
                let color = Lch::new(lightness, chroma, f64::from(10 + 20 * hue));
                let linear: LinSrgb = xyz(color).into_color_unclamped();
                candidates.push(Xyz::from_color_unclamped(linear.clamp()));
            }
        }
    }
    candidates
}

fn xyz(color: Lch) -> Xyz {
    Xyz::from_color_unclamped(Lab::from_color_unclamped(color))
}

fn lab(color: Xyz) -> Lab {
    Lab::from_color_unclamped(color)
}

fn srgb(color: Xyz) -> Srgb {
    Srgb::from_color_unclamped(color)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_72_to_choose_from() {
        let on_white = Surroundings {
            background: floats(Color::WHITE),
            font: floats(Color::BLACK),
            rounded: true,
            others: Vec::new(),
            sorted_from: floats(Color::WHITE),
        };
        let mut colors = choose(80, &on_white);
        assert_eq!(colors.len(), 80);
        colors.sort();
        colors.dedup();
        assert!(colors.len() <= 72 && colors.len() > 60, "{}", colors.len());
    }
}
