//! No name in a recording makes an output of the command control a terminal or a browser, or changes the
//! direction of the text around a name. The reports alone are tested in crate `report`, class by class.

use crate::made_up::hostile::{ACTING, hostile};
use crate::support::{Place, text};

/// Every output with names in it, by its arguments. `FILE` stands for the recording, `EVIL` for all acting characters.
/// A last argument `> NAME` names the file that holds the output.
const OUTPUTS: &[(&str, &[&str])] = &[
    ("summary", &["print", "FILE", "--all", "--cols", "200"]),
    ("tree", &["print", "FILE", "--c", "--groupby", "task,thread", "--cols", "2000"]),
    ("flat", &["print", "FILE", "--c", "--format", "flat", "--groupby", "thread", "--cols", "2000"]),
    ("callers", &["callers", "work", "--regex", "FILE", "--cols", "2000"]),
    ("annotate", &["annotate", "FILE", "--cols", "2000"]),
    ("diff", &["diff", "FILE", "FILE", "--all", "--cols", "2000"]),
    ("types", &["allocs", "FILE", "--cols", "2000"]),
    ("sites", &["allocs", "FILE", "--by", "site", "--cols", "2000"]),
    (
        "functions",
        &["allocs", "FILE", "--by", "function", "--metric", "leaked-bytes", "--all", "--cols", "2000"],
    ),
    ("crates", &["allocs", "FILE", "--by", "crate", "--cols", "2000"]),
    ("threads", &["allocs", "FILE", "--by", "thread", "--cols", "2000"]),
    ("types as JSON", &["allocs", "FILE", "--json"]),
    ("sites as JSON", &["allocs", "FILE", "--json", "--by", "site"]),
    ("tree of bytes", &["print", "FILE", "--c", "--metric", "bytes", "--cols", "2000"]),
    ("callers by bytes", &["callers", "work", "--regex", "FILE", "--metric", "bytes", "--cols", "2000"]),
    ("annotate by bytes", &["annotate", "FILE", "--metric", "bytes", "--cols", "2000"]),
    ("diff by bytes", &["diff", "FILE", "FILE", "--metric", "bytes", "--all", "--cols", "2000"]),
    ("folded bytes", &["convert", "FILE", "-", "--to", "folded", "--metric", "bytes"]),
    ("SVG of types", &["flamegraph", "FILE", "--metric", "bytes", "--c", "-o", "bytes.svg", "> bytes.svg"]),
    ("info", &["info", "FILE"]),
    ("folded stacks", &["convert", "FILE", "-", "--to", "folded"]),
    ("SVG", &["flamegraph", "FILE", "--wall", "--c", "-o", "graph.svg", "> graph.svg"]),
    ("HTML", &["flamegraph", "FILE", "--wall", "--c", "-o", "graph.html", "> graph.html"]),
    ("SVG of a difference", &["diff", "FILE", "FILE", "-o", "difference.svg", "> difference.svg"]),
    ("a title", &["flamegraph", "FILE", "--title", "EVIL", "-o", "title.svg", "> title.svg"]),
    ("no such file", &["print", "missingEVIL.glass"]),
    ("no such function", &["callers", "noneEVIL", "FILE"]),
    ("no such source", &["annotate", "FILE", "--file", "noneEVIL.rs"]),
    ("no such option", &["print", "--noneEVIL"]),
    ("no such value", &["print", "--format", "noneEVIL"]),
    ("no such program", &["record", "--", "./noneEVIL"]),
];

#[test]
fn no_output_has_an_acting_character() {
    let evil: String = ACTING.iter().collect();
    let place = Place::new();
    let file = format!("r{evil}.glass");
    stackglass_files::write(place.file(&file), &hostile(&evil)).unwrap();
    for (what, arguments) in OUTPUTS {
        let (arguments, written) = match arguments.split_last() {
            Some((last, rest)) if last.starts_with("> ") => (rest, Some(&last[2..])),
            _ => (*arguments, None),
        };
        let arguments = arguments.iter().map(|word| word.replace("FILE", &file).replace("EVIL", &evil));
        let output = place.run(arguments.collect::<Vec<_>>());
        let mut printed = text(&output.stdout) + &text(&output.stderr);
        if let Some(written) = written {
            printed += &std::fs::read_to_string(place.file(written)).expect(&printed);
        }
        for c in ACTING {
            assert!(!printed.contains(c), "{what} has {c:?}:\n{}", printed.escape_debug());
        }
        let names = printed.replace("\\\\", "\\");
        let escapes = ["\\u{7}\\u{8}\\u{1b}\\u{7f}", "\\u0007\\u0008\\u001b\\u007f"];
        assert!(
            escapes.iter().any(|escape| names.contains(escape)),
            "{what} writes the characters out:\n{printed}"
        );
    }
}
