//! The builder of [`FlameColors`].

use super::greedy::{self, Surroundings, floats, rounded};
use super::space::Srgb;
use crate::{Color, FlameColors};

/// Greys of the dark mode in Julia's floating-point numbers: the background, and one that boxes avoid.
const DARK: f64 = 0.09;
const LIGHT_GREY: f64 = 0.9;

/// The colours of boxes with a status bit.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Highlight {
    /// Like other boxes.
    #[default]
    None,
    /// Four variants of a colour.
    Color(Color),
    /// These colours in turn, as [`FlameColors::colors`].
    List(Vec<Color>),
}

impl From<Color> for Highlight {
    fn from(color: Color) -> Highlight {
        Highlight::Color(color)
    }
}

impl From<Vec<Color>> for Highlight {
    fn from(list: Vec<Color>) -> Highlight {
        Highlight::List(list)
    }
}

impl Highlight {
    fn colors(&self) -> Vec<Color> {
        match self {
            Highlight::None => Vec::new(),
            Highlight::Color(color) => greedy::variants(floats(*color)).to_vec(),
            Highlight::List(list) => list.clone(),
        }
    }
}

/// Builds a [`FlameColors`]. Its colours differ from each other, from background, font and highlights, also for readers
/// with colour blindness.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlameColorsBuilder {
    n: u16,
    darkmode: bool,
    colorbg: Option<Color>,
    colorfont: Option<Color>,
    colorsrt: Highlight,
    colorsgc: Highlight,
}

impl Default for FlameColorsBuilder {
    fn default() -> FlameColorsBuilder {
        FlameColorsBuilder {
            n: 2,
            darkmode: false,
            colorbg: None,
            colorfont: None,
            colorsrt: Color::CRIMSON.into(),
            colorsgc: Color::ORANGE.into(),
        }
    }
}

impl FlameColorsBuilder {
    /// Number of colours for each depth, 2 by default. Twice as many are chosen. From 36 on they repeat.
    pub fn n(mut self, n: u16) -> FlameColorsBuilder {
        self.n = n;
        self
    }

    /// Uses white text on dark grey, unless other colours are set.
    pub fn darkmode(mut self, dark: bool) -> FlameColorsBuilder {
        self.darkmode = dark;
        self
    }

    /// The colour behind all boxes.
    pub fn colorbg(mut self, color: Color) -> FlameColorsBuilder {
        self.colorbg = Some(color);
        self
    }

    /// The colour of text.
    pub fn colorfont(mut self, color: Color) -> FlameColorsBuilder {
        self.colorfont = Some(color);
        self
    }

    /// Sets the mark of calls through vtables and function pointers.
    pub fn colorsrt(mut self, highlight: impl Into<Highlight>) -> FlameColorsBuilder {
        self.colorsrt = highlight.into();
        self
    }

    /// Sets the mark of memory management.
    pub fn colorsgc(mut self, highlight: impl Into<Highlight>) -> FlameColorsBuilder {
        self.colorsgc = highlight.into();
        self
    }

    /// Chooses the colours.
    pub fn build(&self) -> FlameColors {
        let (dark, light) = (Srgb::new(DARK, DARK, DARK), Srgb::new(1.0, 1.0, 1.0));
        let (background, font) =
            if self.darkmode { (dark, light) } else { (light, Srgb::new(0.0, 0.0, 0.0)) };
        let background = self.colorbg.map_or(background, floats);
        let font = self.colorfont.map_or(font, floats);
        let (colorsrt, colorsgc) = (self.colorsrt.colors(), self.colorsgc.colors());
        let mut others = [&*colorsrt, &colorsgc].concat();
        if self.darkmode {
            others.extend(greedy::variants(Srgb::new(LIGHT_GREY, LIGHT_GREY, LIGHT_GREY)));
        }
        let surroundings = Surroundings {
            background,
            font,
            rounded: !self.darkmode,
            others,
            sorted_from: if self.darkmode { font } else { background },
        };
        FlameColors {
            colors: greedy::choose(usize::from(self.n) * 2, &surroundings),
            colorbg: rounded(background),
            colorfont: rounded(font),
            colorsrt,
            colorsgc,
        }
    }
}
