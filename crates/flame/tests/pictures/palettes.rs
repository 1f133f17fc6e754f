//! Chosen colours: as many as asked for, and told apart.

use proptest::prelude::*;
use stackglass_flame::{Color, FlameColors, FlameColorsBuilder, Highlight};
use std::collections::BTreeSet;

fn colors() -> impl Strategy<Value = Color> {
    any::<[u8; 3]>().prop_map(Color)
}

fn highlights() -> impl Strategy<Value = Highlight> {
    prop_oneof![
        Just(Highlight::None),
        colors().prop_map(Highlight::Color),
        prop::collection::vec(colors(), 0..5).prop_map(Highlight::List),
    ]
}

fn builders() -> impl Strategy<Value = (u16, FlameColorsBuilder)> {
    let given = (prop::option::of(colors()), prop::option::of(colors()), highlights(), highlights());
    (0..=16u16, any::<bool>(), given).prop_map(|(n, dark, (background, font, srt, gc))| {
        let mut builder = FlameColors::builder().n(n).darkmode(dark).colorsrt(srt).colorsgc(gc);
        builder = background.into_iter().fold(builder, FlameColorsBuilder::colorbg);
        (n, font.into_iter().fold(builder, FlameColorsBuilder::colorfont))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn two_for_each_and_all_different((n, builder) in builders()) {
        let chosen = builder.build();
        prop_assert_eq!(chosen.colors.len(), 2 * usize::from(n));
        let different: BTreeSet<Color> = chosen.colors.iter().copied().collect();
        prop_assert_eq!(different.len(), chosen.colors.len());
        // What is chosen first stays chosen.
        let more: BTreeSet<Color> = builder.n(n + 1).build().colors.into_iter().collect();
        prop_assert!(different.is_subset(&more));
    }
}
