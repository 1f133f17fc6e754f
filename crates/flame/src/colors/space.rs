//! Colour spaces, with sRGB in the precision of Colors.jl.
//!
//! With the usual seven digits, white has a slight hue, which changes the order of colours with equal distance to it.

use palette::encoding;
use palette::rgb::RgbSpace;
use palette::white_point::D65;

/// CIE XYZ, Lab and LCHab with daylight white.
pub(crate) type Xyz = palette::Xyz<D65, f64>;
pub(crate) type Lab = palette::Lab<D65, f64>;
pub(crate) type Lch = palette::Lch<D65, f64>;

/// sRGB, encoded and linear.
pub(crate) type Srgb = palette::rgb::Rgb<(Exact, encoding::Srgb), f64>;
pub(crate) type LinSrgb = palette::rgb::Rgb<encoding::Linear<Exact>, f64>;

/// The primaries and the white of sRGB.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Exact;

impl RgbSpace for Exact {
    type Primaries = encoding::Srgb;
    type WhitePoint = D65;

    #[rustfmt::skip]
    fn rgb_to_xyz_matrix() -> Option<[f64; 9]> {
        Some([
            0.4124564390896921, 0.357576077643909, 0.18043748326639894,
            0.21267285140562253, 0.715152155287818, 0.07217499330655958,
            0.019333895582329317, 0.119192025881303, 0.9503040785363677,
        ])
    }

    #[rustfmt::skip]
    fn xyz_to_rgb_matrix() -> Option<[f64; 9]> {
        Some([
            3.2404541621141054, -1.5371385127977166, -0.4985314095560162,
            -0.9692660305051868, 1.8760108454466942, 0.04155601753034984,
            0.05564343095911469, -0.20402591351675387, 1.0572251882231791,
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use palette::convert::FromColorUnclamped;

    #[test]
    fn white_has_no_hue_and_back_is_the_inverse() {
        let white = Lab::from_color_unclamped(Xyz::from_color_unclamped(Srgb::new(1.0, 1.0, 1.0)));
        assert!((white.l - 100.0).abs() + white.a.abs() + white.b.abs() < 1e-12, "{white:?}");
        let color = Srgb::new(0.2, 0.5, 0.9);
        let back = Srgb::from_color_unclamped(Xyz::from_color_unclamped(color));
        let parts = [(color.red, back.red), (color.green, back.green), (color.blue, back.blue)];
        assert!(parts.iter().all(|(one, two)| (one - two).abs() < 1e-9), "{back:?}");
    }
}
