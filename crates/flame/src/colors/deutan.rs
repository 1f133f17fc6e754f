//! Simulation of deuteranopia, the most common colour blindness.
//!
//! Brettel's projection (Brettel, Viénot, Mollon 1997) at nearly full strength, in the cone space of CAT02. The response of
//! the middle-wave cone is projected onto the plane through grey and the two hues that look the same with deuteranopia.
//!
//! Source: Colors.jl, `deuteranopic`, which FlameGraphs.jl uses to keep its colours apart.

use super::space::{LinSrgb, Xyz};
use palette::convert::FromColorUnclamped;

const STRENGTH: f64 = 0.95;

type Matrix = [[f64; 3]; 3];

/// CAT02: XYZ to long-wave, middle-wave and short-wave cones.
const TO_LMS: Matrix = [[0.7328, 0.4296, -0.1624], [-0.7036, 1.6975, 0.0061], [0.0030, 0.0136, 0.9834]];
const FROM_LMS: Matrix = inverse(&TO_LMS);

/// The CIE 1931 2 degree observer at 575 nm and 475 nm: a yellow and a blue that look the same with deuteranopia.
const YELLOW: [f64; 3] = [0.8425, 0.9154, 0.0018];
const BLUE: [f64; 3] = [0.1421, 0.1126, 1.0419];

/// A colour as it looks with deuteranopia.
pub(crate) fn deutan(color: Xyz) -> Xyz {
    let [long, middle, short] = times(&TO_LMS, [color.x, color.y, color.z]);
    let white = Xyz::from_color_unclamped(LinSrgb::new(1.0, 1.0, 1.0));
    let neutral = times(&TO_LMS, [white.x, white.y, white.z]);
    // Black would be 0 / 0. It is treated as bluish.
    let anchor = if short / long < neutral[2] / neutral[0] { YELLOW } else { BLUE };
    let anchor = times(&TO_LMS, anchor);
    let [a, b, c] = cross(neutral, anchor);
    let middle = (1.0 - STRENGTH) * middle - STRENGTH * (a * long + c * short) / b;
    Xyz::from(times(&FROM_LMS, [long, middle, short]))
}

fn cross([one, two, three]: [f64; 3], [a, b, c]: [f64; 3]) -> [f64; 3] {
    [two * c - three * b, three * a - one * c, one * b - two * a]
}

fn times(matrix: &Matrix, [one, two, three]: [f64; 3]) -> [f64; 3] {
    matrix.map(|[a, b, c]| a * one + b * two + c * three)
}

const fn inverse(m: &Matrix) -> Matrix {
    let mut adjugate = [[0.0; 3]; 3];
    let mut row = 0;
    while row < 3 {
        let mut column = 0;
        while column < 3 {
            let (a, b, c, d) = ((row + 1) % 3, (row + 2) % 3, (column + 1) % 3, (column + 2) % 3);
            adjugate[column][row] = m[a][c] * m[b][d] - m[a][d] * m[b][c];
            column += 1;
        }
        row += 1;
    }
    let determinant = m[0][0] * adjugate[0][0] + m[0][1] * adjugate[1][0] + m[0][2] * adjugate[2][0];
    let mut cell = 0;
    while cell < 9 {
        adjugate[cell / 3][cell % 3] /= determinant;
        cell += 1;
    }
    adjugate
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grey_stays_and_back_is_the_inverse() {
        for part in [0.01, 0.2, 1.0] {
            let grey = Xyz::from_color_unclamped(LinSrgb::new(part, part, part));
            let seen = deutan(grey);
            assert!((seen.x - grey.x).abs() + (seen.y - grey.y).abs() + (seen.z - grey.z).abs() < 1e-9);
        }
        let back = times(&FROM_LMS, times(&TO_LMS, [0.1, 0.5, 0.9]));
        assert!(back.iter().zip([0.1, 0.5, 0.9]).all(|(one, two)| (one - two).abs() < 1e-12));
    }
}
