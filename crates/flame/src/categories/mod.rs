//! Colours by the kind of code: the scheme of the reference with custom functions, and one for native programs.
//!
//! Source: `StackFrameCategory` of FlameGraphs.jl.

pub(crate) mod by_crate;
pub(crate) mod native;

pub use by_crate::CrateColors;
pub use native::{Category, CategoryColors};

use crate::{Color, ColorFunction, Graph, Node};
use stackglass_profile::Frame;
use std::fmt;

/// Colours by module, or by any other property of a frame.
///
/// ```
/// use stackglass_flame::{Color, StackFrameCategory, categories::default_loccat};
///
/// // One's own parser in purple, all else as usual.
/// let modcat = |module: &str| module.starts_with("app::parser").then_some(Color([0x80, 0, 0x80]));
/// let colors = StackFrameCategory::new(modcat, default_loccat);
/// ```
pub struct StackFrameCategory<M = fn(&str) -> Option<Color>, L = fn(&Frame) -> Color> {
    modcat: M,
    loccat: L,
    colorbg: Color,
    colorfont: Color,
}

impl Default for StackFrameCategory {
    fn default() -> StackFrameCategory {
        StackFrameCategory::new(default_modcat, default_loccat)
    }
}

impl<M: Fn(&str) -> Option<Color>, L: Fn(&Frame) -> Color> StackFrameCategory<M, L> {
    /// `modcat` returns the colour for a module: crate and modules such as `serde_json::de`, or Julia's `Core.Compiler`.
    /// `loccat` returns the colour of frames without a known module, and if `modcat` returns none.
    pub fn new(modcat: M, loccat: L) -> StackFrameCategory<M, L> {
        StackFrameCategory { modcat, loccat, colorbg: Color::WHITE, colorfont: Color::BLACK }
    }

    /// Sets background and font.
    pub fn on(self, colorbg: Color, colorfont: Color) -> StackFrameCategory<M, L> {
        StackFrameCategory { colorbg, colorfont, ..self }
    }
}

impl<M: Fn(&str) -> Option<Color>, L: Fn(&Frame) -> Color> ColorFunction for StackFrameCategory<M, L> {
    fn background(&self) -> Color {
        self.colorbg
    }

    fn font(&self) -> Color {
        self.colorfont
    }

    fn node(&self, _: &mut [usize], graph: &Graph, node: &Node) -> Option<Color> {
        let frame = graph.frame(node);
        module(frame).and_then(&self.modcat).or_else(|| Some((self.loccat)(frame)))
    }
}

impl<M, L> fmt::Debug for StackFrameCategory<M, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StackFrameCategory { colorbg, colorfont, .. } = self;
        f.debug_struct("StackFrameCategory")
            .field("colorbg", colorbg)
            .field("colorfont", colorfont)
            .finish_non_exhaustive()
    }
}

/// The default background, that of [`FlameColors`](crate::FlameColors).
pub(crate) fn background(dark: bool) -> Color {
    if dark { Color::hex(0x171717) } else { Color::WHITE }
}

/// The default colour of text.
fn font(dark: bool) -> Color {
    if dark { Color::WHITE } else { Color::BLACK }
}

/// Crate and modules of a function, if the crate is known.
fn module(frame: &Frame) -> Option<&str> {
    if frame.krate.is_empty() {
        return None;
    }
    let within = frame.func.strip_prefix(&*frame.krate).is_some_and(|rest| rest.starts_with("::"));
    let path = if within { frame.func.rsplit_once("::").map(|(path, _)| path) } else { None };
    Some(path.unwrap_or(&frame.krate))
}

/// Colours for Julia's compiler, `Core`, `Base` and their modules. `None` for others.
pub fn default_modcat(module: &str) -> Option<Color> {
    let within =
        |outer: &str| module.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    [("Core.Compiler", 0x999999), ("Core", 0x4d4d4d), ("Base", 0xadd8e6)]
        .into_iter()
        .find_map(|(outer, digits)| within(outer).then(|| Color::hex(digits)))
}

/// Colours by file name: LLVM, other foreign code, Julia's compiler, its `Base`, and everything else.
pub fn default_loccat(frame: &Frame) -> Color {
    // Also recognises Windows paths.
    let slash = ['/', '\\'];
    let within = frame.file.strip_prefix('.').and_then(|rest| rest.strip_prefix(slash));
    let compiler = within.and_then(|rest| rest.strip_prefix("compiler")?.strip_prefix(slash));
    Color::hex(if frame.file.contains("LLVM") {
        0xffff00
    } else if frame.foreign {
        0xffa500
    } else if compiler.is_some() {
        0x999999
    } else if within.is_some() {
        0xadd8e6
    } else {
        0xff0000
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_of_functions() {
        let of = |krate: &str, func: &str| {
            let frame = Frame { krate: krate.into(), func: func.into(), ..Frame::unknown(0) };
            module(&frame).map(str::to_owned)
        };
        assert_eq!(of("serde_json", "serde_json::de::from_str").as_deref(), Some("serde_json::de"));
        assert_eq!(of("app", "main").as_deref(), Some("app"));
        assert_eq!(of("app", "application::main").as_deref(), Some("app"));
        assert_eq!(of("", "application::main"), None);
    }
}
