//! Style rules of a picture: colours in both themes, marks, hatching.

use crate::paint::{Painted, hex, wants_black};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The style rules, with those of the colours in use.
pub(super) fn rules(painted: &Painted, used: &BTreeSet<usize>) -> String {
    let mut style = STYLE.to_owned();
    let colors = |style: &mut String, dark: bool| {
        for number in used {
            let swatch = &painted.swatches[*number];
            let color = if dark { swatch.dark } else { swatch.light };
            let class = class(*number);
            let _ = write!(style, ".{class}{{fill:{}}}", hex(color));
            // Text and marks are black in the light theme and white in the dark one, except on some colours.
            if wants_black(color) == dark {
                let ink = if dark { "#000" } else { "#fff" };
                let marks = ["D", "M", "R"].map(|mark| format!(".{class}+.{mark},.{class}+text+.{mark}"));
                let _ = write!(style, ".{class}+text{{fill:{ink}}}{}{{stroke:{ink}}}", marks.join(","));
            }
        }
    };
    colors(&mut style, false);
    style += STYLE_DARK;
    colors(&mut style, true);
    style.push('}');
    style
}

/// Name of the class of a swatch: a, b, … z, ba, bb, …
pub(super) fn class(mut number: usize) -> String {
    let mut letters = Vec::new();
    loop {
        letters.push(b'a' + (number % 26) as u8);
        number /= 26;
        if number == 0 {
            break;
        }
    }
    letters.iter().rev().map(|letter| char::from(*letter)).collect()
}

/// Classes in capitals: T title, I total, Z merged boxes (G ground, H hatching), N no colour, D M R marks of status bits. For the
/// script: B buttons, F matches of the search.
const STYLE: &str = "svg{background:#fff;font:11px ui-monospace,Menlo,Consolas,monospace}\
    text{pointer-events:none;fill:#000;white-space:pre}.T{font:600 14px system-ui,sans-serif}\
    path{stroke:#fff;stroke-width:.6}path:hover{stroke:#000;stroke-width:1.2}.Z{fill:url(#z)}.H{stroke:#c4c4c4;stroke-width:1;fill:none}.G{fill:#f2f2f2;stroke:none}.N{fill:none}\
    .D,.M,.R{stroke:#000;stroke-opacity:.6;stroke-width:1.5;fill:none;stroke-dasharray:5 3;pointer-events:none}\
    .M{stroke-dasharray:none}.R{stroke-dasharray:1 3}.k path{stroke:#000;stroke-width:.5}.k .D,.k .M,.k .R{stroke-width:1.5}\
    .B{pointer-events:all;cursor:pointer;text-decoration:underline}.F{fill:none;stroke:#0b3cff;stroke-width:2;pointer-events:none}";
/// The rules of the dark theme, with an open bracket.
const STYLE_DARK: &str = "@media(prefers-color-scheme:dark){svg{background:#171717}text{fill:#fff}path{stroke:#171717}\
    path:hover,.D,.M,.R,.k path{stroke:#fff}.F{stroke:#ffe14d}.H{stroke:#4d4d4d}.G{fill:#242424}";
/// The hatching of merged boxes.
pub(super) const DEFINITIONS: &str = "<defs><pattern id=\"z\" width=\"4\" height=\"4\" patternUnits=\"userSpaceOnUse\">\
    <path class=\"G\" d=\"M0 0h4v4h-4z\"/><path d=\"M-1 1l2-2M0 4l4-4M3 5l2-2\" class=\"H\"/></pattern></defs>\n";
