//! Functions that are left out, by the ends of their paths.

use stackglass_flame::Flamegraph;
use stackglass_profile::{Data, Dictionary, Frame};

#[test]
fn the_end_of_a_path_names_a_function_to_prune() {
    let mut dictionary = Dictionary::new();
    for (address, func, file) in
        [(1, "serde::de::from_str", "/home/me/serde/src/de.rs"), (2, "app::main", "/home/me/app/src/main.rs")]
    {
        let (func, file) = (func.into(), file.into());
        let frame = Frame { func, file, line: 1, foreign: false, ..Frame::unknown(address) };
        dictionary.set(address, [frame]);
    }
    // One thread: 1 called by 2, and 2 alone.
    let data = Data::new(vec![1, 2, 1, 1, 5, 1, 0, 0, 2, 1, 1, 6, 1, 0, 0]);
    let names = |func: &str, file: &str| {
        let options = Flamegraph::new().norepl(false).prune(func, file);
        let graph = options.graph((&data, &dictionary)).unwrap().graph.unwrap();
        (graph.nodes().len(), options.prunes_in_vain((&data, &dictionary)))
    };
    // The root, main, and from_str.
    for (func, file, seen) in [
        ("from_str", "de.rs", (2, false)),
        ("de::from_str", "src/de.rs", (2, false)),
        ("serde::de::from_str", "/home/me/serde/src/de.rs", (2, false)),
        ("str", "de.rs", (3, true)),
        ("from_str", "e.rs", (3, true)),
        ("from_str", "main.rs", (3, true)),
    ] {
        assert_eq!(names(func, file), seen, "{func} {file}");
    }
}
