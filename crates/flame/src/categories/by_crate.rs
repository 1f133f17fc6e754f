//! A colour for each crate, the same in every picture.

use super::native::krate;
use crate::{Color, ColorFunction, FlameColors, Graph, Node};
use stackglass_profile::Frame;

/// Colours per depth of the list; the list has twice as many.
const COLORS: u16 = 12;

/// The colour of unknown code.
const GREY: Color = Color::hex(0xdddddd);

/// Colours by the crate of a function, or by the module of foreign code. A name always has the same colour. Two names may
/// share one.
#[derive(Clone, Debug)]
pub struct CrateColors {
    colors: Vec<Color>,
    dark: bool,
}

impl CrateColors {
    /// Colours for a light or a dark background.
    pub fn new(dark: bool) -> CrateColors {
        CrateColors { colors: FlameColors::builder().n(COLORS).build().colors, dark }
    }
}

impl ColorFunction for CrateColors {
    fn background(&self) -> Color {
        super::background(self.dark)
    }

    fn font(&self) -> Color {
        super::font(self.dark)
    }

    fn node(&self, _: &mut [usize], graph: &Graph, node: &Node) -> Option<Color> {
        let frame = graph.frame(node);
        let name = crate_or_module(frame);
        if name.is_empty() {
            return Some(GREY);
        }
        let at = fnv(name) % self.colors.len() as u64;
        self.colors.get(at as usize).copied()
    }
}

/// The crate of a function, or the file name of its module. Empty if neither is known.
pub(crate) fn crate_or_module(frame: &Frame) -> &str {
    match krate(frame) {
        "" => frame.module.rsplit('/').next().unwrap_or(""),
        krate => krate,
    }
}

/// FNV-1a, so that colours are the same in every run and version.
fn fnv(name: &str) -> u64 {
    name.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{GraphBuilder, Span, Status};

    #[test]
    fn crates_keep_their_colors() {
        let color = |krate: &str, func: &str, module: &str, dark| {
            let mut builder = GraphBuilder::default();
            let frame =
                Frame { krate: krate.into(), func: func.into(), module: module.into(), ..Frame::unknown(0) };
            let frame = builder.frame(&frame);
            builder.open(frame, Status::NONE, Span::new(1, 1));
            let graph = builder.finish().unwrap();
            CrateColors::new(dark).node(&mut [1], &graph, graph.root()).unwrap()
        };
        let serde = color("serde", "serde::de::next", "app", false);
        assert_eq!(serde, color("serde", "serde::ser::end", "other", true));
        assert_eq!(serde, color("", "serde::ser::end", "", false));
        assert_ne!(serde, color("tokio", "tokio::run", "app", false));
        assert_eq!(color("", "memcpy", "/a/libc.so.6", false), color("", "memmove", "/b/libc.so.6", false));
        assert_eq!(color("", "", "", false), GREY);
        for color in CrateColors::new(false).colors {
            assert!(color.contrast(Color::BLACK) > 4.5, "{color}");
            assert!(color.contrast(super::super::background(true)) > 4.5, "{color}");
        }
    }
}
