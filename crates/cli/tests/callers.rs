//! `callers`: whole parts of names, expressions, files and lines; counts that add up.

use crate::support::samples::{julia, recorded};
use crate::support::{Place, text};

#[test]
fn names_match_by_whole_parts() {
    let place = recorded();
    for name in ["count_leaves", "stackglass_demo::count_leaves", "::count_leaves"] {
        let printed = place.stdout_of(&["callers", name]);
        assert!(printed.starts_with("stackglass_demo::count_leaves\non the stack for "), "{printed}");
        assert!(printed.contains("stackglass_demo::recurse"), "{printed}");
    }
    for name in ["leaves", "demo::count_leaves", "eaf::count_leaves"] {
        let message = place.refused(&["callers", name]);
        assert!(message.contains(&format!("no function `{name}`")), "{message}");
        assert!(message.contains("stackglass_demo::count_leaves"), "it says what there is: {message}");
    }
    let printed = place.stdout_of(&["callers", "--regex", "^stackglass_demo::.*leav"]);
    assert!(printed.starts_with("stackglass_demo::count_leaves\n"), "{printed}");
    let message = place.refused(&["callers", "--regex", "(leaves"]);
    assert!(message.contains("(leaves") && message.contains("unclosed"), "{message}");
}

#[test]
fn counts_add_up_and_fit() {
    let place = recorded();
    let printed = place.stdout_of(&["callers", "compare", "--cols", "80"]);
    assert!(printed.lines().all(|line| line.chars().count() <= 80), "{printed}");
    let rows = printed.lines().skip_while(|line| !line.starts_with("    %")).skip(1);
    let share: f64 = rows.map(|row| row.split_whitespace().next().unwrap().parse::<f64>().unwrap()).sum();
    assert!((99.0..101.0).contains(&share), "{share}: {printed}");
    assert!(printed.contains("[libc.so.6]") || printed.contains("sort"), "qsort calls it: {printed}");
}

#[test]
fn files_and_lines_choose_calls() {
    let place = Place::new();
    std::fs::copy(julia("samples-recorded.jlprof"), place.file("r.jlprof")).unwrap();
    let all = place.stdout_of(&["callers", "--regex", ".", "r.jlprof"]);
    assert!(all.contains("on the stack in"), "{all}");

    let place = recorded();
    let whole = place.stdout_of(&["callers", "count_leaves", "--file", "demo/src/lib.rs"]);
    assert_eq!(whole, place.stdout_of(&["callers", "count_leaves"]));
    assert!(place.refused(&["callers", "count_leaves", "--file", "no.rs"]).contains("no.rs"));
    let message = place.refused(&["callers", "count_leaves", "--file", "lib.rs", "--line", "1-2"]);
    assert!(message.contains("`count_leaves` was not seen at these lines, only at "), "{message}");
    let seen = message.trim_end().rsplit_once("only at ").unwrap().1.split(", ").next().unwrap();
    let there = place.stdout_of(&["callers", "count_leaves", "--file", "lib.rs", "--line", seen]);
    assert!(there.contains("on the stack for"), "{there}");
    let message = place.refused(&["callers", "no_such_function", "--file", "lib.rs", "--line", "1-2"]);
    assert!(message.contains("no function `no_such_function` was seen there"), "{message}");
    let source = include_str!("../../demo/src/lib.rs");
    let line = source.lines().position(|line| line.contains("if depth == 0")).unwrap() + 1;
    let lines = format!("{}-{}", line - 1, line + 1);
    let some = place.stdout_of(&["callers", "count_leaves", "--file", "lib.rs", "--line", &lines]);
    assert!(some.contains("count_leaves"), "{some}");

    let output = place.run(["callers", "count_leaves", "--line", "3-4"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("--file"), "{}", text(&output.stderr));
    let output = place.run(["callers", "f", "--file", "lib.rs", "--line", "4-3"]);
    assert!(text(&output.stderr).contains("12 or 10-40"));
}

#[test]
fn julias_samples_give_what_the_reference_gives() {
    // Counted here from the buffer: `callers` counts a caller for each frame below it.
    let place = Place::new();
    std::fs::write(place.file("s.folded"), "main;a::f;b::f 3\nmain;a::f 2\na::f 1\nmain;my_f 9\n").unwrap();
    let printed = place.stdout_of(&["callers", "f", "s.folded"]);
    let blocks: Vec<&str> = printed.split("\n\n").collect();
    assert_eq!(
        blocks[0].lines().map(str::trim_end).collect::<Vec<_>>(),
        [
            "a::f",
            "on the stack in 6 of 15 samples (40 %)",
            "    %  samples  caller, at the line of the call",
            " 83.3        5  main",
            " 16.7        1  [none: outermost frame]"
        ]
    );
    assert!(blocks[1].starts_with("b::f\non the stack in 3 of 15") && blocks.len() == 2, "{printed}");
}
