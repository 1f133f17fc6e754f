//! Functions that are left out, by the ends of their paths.

use stackglass_flame::{Flamegraph, Warning};
use stackglass_profile::{Data, Dictionary, Frame};

#[test]
fn the_end_of_a_path_names_a_function_to_prune() {
    let mut dictionary = Dictionary::new();
    for (address, func, file) in
        [(1, "serde::de::from_str", "/home/me/serde/src/de.rs"), (2, "app::main", "/home/me/app/src/main.rs")]
    {
        let frame = Frame { func: func.into(), file: file.into(), line: 1, ..Frame::unknown(address) };
        dictionary.set(address, [frame]);
    }
    // One thread: 1 called by 2, and 2 alone.
    let data = Data::new(vec![1, 2, 1, 1, 5, 1, 0, 0, 2, 1, 1, 6, 1, 0, 0]);
    let names = |func: &str, file: &str| {
        let drawn = Flamegraph::new().prune(func, file).graph((&data, &dictionary)).unwrap();
        let graph = drawn.graph.unwrap();
        (graph.nodes().len(), drawn.warning)
    };
    // The root, main, and from_str.
    let nothing = Some(Warning::PrunedNothing);
    for (func, file, seen) in [
        ("from_str", "de.rs", (2, None)),
        ("de::from_str", "src/de.rs", (2, None)),
        ("serde::de::from_str", "/home/me/serde/src/de.rs", (2, None)),
        ("str", "de.rs", (3, nothing)),
        ("from_str", "e.rs", (3, nothing)),
        ("from_str", "main.rs", (3, nothing)),
    ] {
        assert_eq!(names(func, file), seen, "{func} {file}");
    }
}
