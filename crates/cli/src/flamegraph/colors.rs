//! `--colors`: what the colour of a box means.

use stackglass_flame::schemes::{by_crate, paint};
use stackglass_flame::{CategoryColors, FlameColors, Highlight, Paint};

/// A colour scheme.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Scheme {
    /// By kind of code, and by status bits.
    #[default]
    Kind,
    /// By the owner of the code: own, dependency, standard library, foreign, kernel.
    Category,
    /// By crate, or by module.
    Crate,
    /// Alternating, as in FlameGraphs.jl.
    Julia,
}

impl Scheme {
    /// All of them.
    pub(crate) const ALL: &[Scheme] = &[Scheme::Kind, Scheme::Category, Scheme::Crate, Scheme::Julia];

    /// Its name.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Scheme::Kind => "kind",
            Scheme::Category => "category",
            Scheme::Crate => "crate",
            Scheme::Julia => "julia",
        }
    }

    pub(crate) fn help(self) -> &'static str {
        match self {
            Scheme::Kind => "kind of code, dynamic calls, memory management",
            Scheme::Category => "own code, dependencies, standard library, foreign, kernel",
            Scheme::Crate => "one colour per crate or module",
            Scheme::Julia => "alternating, with the highlights of FlameGraphs.jl",
        }
    }

    /// The colours of graphs.
    pub(crate) fn paint(self) -> Paint<'static> {
        match self {
            Scheme::Kind => Paint::default(),
            Scheme::Category => Paint::whole(|graph| {
                let colors = CategoryColors::from_graph(graph);
                paint(colors.clone(), colors.darkmode(true)).paint(graph)
            }),
            Scheme::Crate => by_crate(),
            Scheme::Julia => Paint::whole(|graph| {
                // A dynamic call is what slows Julia down, but nothing is wrong with one elsewhere.
                let julia = graph.frames().iter().any(|frame| frame.file.ends_with(".jl"));
                let colors = |dark| {
                    let colors = FlameColors::builder().darkmode(dark);
                    if julia { colors.build() } else { colors.colorsrt(Highlight::None).build() }
                };
                paint(colors(false), colors(true)).paint(graph)
            }),
        }
    }

    /// All schemes by name for a page, this one first.
    pub(crate) fn all_for_page(self) -> Vec<(String, Paint<'static>)> {
        let others = Scheme::ALL.iter().filter(|other| **other != self);
        std::iter::once(&self)
            .chain(others)
            .map(|scheme| (scheme.word().to_owned(), scheme.paint()))
            .collect()
    }
}
