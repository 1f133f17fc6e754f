//! Conversion between colour functions, which have one theme, and paints, which have two.

use crate::categories::background;
use crate::categories::by_crate::crate_or_module;
use crate::legend::{self, Sample};
use crate::paint::{Painted, Swatch};
use crate::{Color, ColorFunction, CrateColors, Graph, Node, Paint};
use foldhash::HashMap;

/// A paint of two colour functions, one for each theme. The legend is that of the first one.
///
/// ```
/// use stackglass_flame::{FlameColors, schemes};
///
/// let dark = FlameColors::builder().darkmode(true).build();
/// let _paint = schemes::paint(FlameColors::default(), dark);
/// ```
pub fn paint<'a>(light: impl ColorFunction + 'a, dark: impl ColorFunction + 'a) -> Paint<'a> {
    Paint::whole(move |graph| {
        let meanings: HashMap<Color, String> =
            light.legend().into_iter().map(|(name, c)| (c, name)).collect();
        let mut numbers: HashMap<(Color, Color), usize> = HashMap::default();
        let mut painted = Painted::default();
        for (light, dark) in colors(graph, &light).into_iter().zip(colors(graph, &dark)) {
            let next = painted.swatches.len();
            let number = *numbers.entry((light, dark)).or_insert(next);
            if number == next {
                let meaning = meanings.get(&light).cloned().unwrap_or_default();
                painted.swatches.push(Swatch { light: light.0, dark: dark.0, meaning });
            }
            painted.boxes.push(number);
        }
        painted
    })
}

/// The colours of [`CrateColors`], with the names of crates and modules as meanings.
pub fn by_crate() -> Paint<'static> {
    Paint::whole(|graph| {
        let mut painted = paint(CrateColors::new(false), CrateColors::new(true)).paint(graph);
        let mut numbers: HashMap<(usize, &str), usize> = HashMap::default();
        let mut swatches = Vec::new();
        for (node, swatch) in graph.nodes().iter().zip(&mut painted.boxes) {
            let name = crate_or_module(graph.frame(node));
            *swatch = *numbers.entry((*swatch, name)).or_insert_with(|| {
                swatches.push(Swatch { meaning: name.to_owned(), ..painted.swatches[*swatch].clone() });
                swatches.len() - 1
            });
        }
        drop(numbers);
        Painted { swatches, boxes: painted.boxes }
    })
}

/// The colour of each node, or grey if the function returns none.
fn colors(graph: &Graph, function: &impl ColorFunction) -> Vec<Color> {
    let mut next = vec![1; graph.depth()];
    let color = |node| function.node(&mut next, graph, node).unwrap_or(Color([200; 3]));
    graph.nodes().iter().map(color).collect()
}

/// One theme of a painted graph, as a colour function for that graph alone.
pub struct OneTheme {
    painted: Painted,
    legend: Vec<(String, Color)>,
    dark: bool,
}

impl OneTheme {
    /// The light or the dark colours of a paint.
    pub fn new(paint: &Paint<'_>, graph: &Graph, dark: bool) -> OneTheme {
        let painted = paint.paint(graph);
        let color = |swatch: &Swatch| Color(if dark { swatch.dark } else { swatch.light });
        let legend = legend::entries(graph, &painted, paint.has_shares()).into_iter();
        let colors = legend.filter_map(|entry| match entry.sample {
            Sample::Swatch(number) => Some((entry.text, color(&painted.swatches[number]))),
            Sample::Others => Some((entry.text, background(dark))),
            Sample::Nothing => None,
        });
        OneTheme { legend: colors.collect(), painted, dark }
    }

    fn color(&self, swatch: &Swatch) -> Color {
        Color(if self.dark { swatch.dark } else { swatch.light })
    }
}

impl ColorFunction for OneTheme {
    fn background(&self) -> Color {
        background(self.dark)
    }

    fn font(&self) -> Color {
        if self.dark { Color::WHITE } else { Color::BLACK }
    }

    fn node(&self, _: &mut [usize], graph: &Graph, node: &Node) -> Option<Color> {
        let swatch = self.painted.boxes.get(graph.number_of(node)? as usize)?;
        self.painted.swatches.get(*swatch).map(|swatch| self.color(swatch))
    }

    fn legend(&self) -> Vec<(String, Color)> {
        self.legend.clone()
    }
}
