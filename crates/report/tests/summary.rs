//! The summary of recordings with known content, as it looks.
//!
//! Goldens lie in `tests/goldens`; `STACKGLASS_BLESS=1` writes them anew, to be reviewed by eye.

use crate::goldens::check;
use crate::made_up;
use stackglass_profile::Recording;
use stackglass_report::{Style, Summary};

fn screen(recording: &Recording, screen: Summary) -> String {
    let mut out = Vec::new();
    screen.write(recording, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn threads_of_one_program() {
    let recording = made_up::demo();
    for cols in [80, 120] {
        check(&format!("demo-{cols}.txt"), &screen(&recording, Summary::new().cols(cols)));
    }
}

#[test]
fn several_programs() {
    check("build-80.txt", &screen(&made_up::build(), Summary::new()));
}

#[test]
fn notes_say_what_is_wanting() {
    check("notes-80.txt", &screen(&made_up::troubled(), Summary::new()));
}

#[test]
fn everything() {
    check("demo-all-100.txt", &screen(&made_up::demo(), Summary::new().cols(100).everything(true)));
}

#[test]
fn a_screen_shows_what_matters() {
    for (name, recording) in
        [("demo", made_up::demo()), ("build", made_up::build()), ("notes", made_up::troubled())]
    {
        let text = screen(&recording, Summary::new().rows(Some(23)).file("app.glass"));
        assert!(text.lines().count() <= 23, "{text}");
        check(&format!("{name}-80x24.txt"), &text);
    }
}

#[test]
fn colours_change_nothing_but_colours() {
    let recording = made_up::demo();
    let coloured = screen(&recording, Summary::new().style(Style::Ansi));
    let mut plain = String::new();
    let mut rest = coloured.as_str();
    while let Some(start) = rest.find('\u{1b}') {
        plain += &rest[..start];
        let end = rest[start..].find('m').expect("a colour ends with m");
        rest = &rest[start + end + 1..];
    }
    assert_eq!(plain + rest, screen(&recording, Summary::new()));
}
