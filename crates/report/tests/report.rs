//! The builder of reports: widths, colours and links, files, refusals.

use stackglass_profile::{Data, DataError, Dictionary, Frame, ShortPath};
use stackglass_report::{
    FILE_COLUMNS, Format, GroupBy, Links, NO_SAMPLES, Pick, Quirks, Recur, Report, ReportError, SortedBy,
    Style, UnknownValue,
};
use std::str::FromStr;
use unicode_width::UnicodeWidthStr;

fn frame(func: &str, file: &str, line: i64) -> Frame {
    Frame { func: func.into(), file: file.into(), line, foreign: false, ..Frame::unknown(0) }
}

/// Addresses 1, 2, … with these frames, and the samples `(stack, leaf first; thread; state)`.
fn source(frames: Vec<Frame>, samples: &[(&[u64], u64, u64)]) -> (Data, Dictionary) {
    let mut dictionary = Dictionary::new();
    for (address, mut frame) in (1..).zip(frames) {
        frame.address = address;
        dictionary.set(address, [frame]);
    }
    let block =
        |(stack, thread, state): &(&[u64], u64, u64)| [*stack, &[*thread, 7, 9, *state, 0, 0]].concat();
    (Data::new(samples.iter().flat_map(block).collect()), dictionary)
}

fn written(report: &Report, (data, dictionary): &(Data, Dictionary)) -> String {
    let mut out = Vec::new();
    report.write((data, dictionary), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Wide, combining and many characters, behind prefixes and without.
fn unwieldy() -> (Data, Dictionary) {
    let long = "module::".repeat(150);
    let frames = vec![
        frame("main", "/src/main.rs", 3),
        frame("計算する", "/資料/モジュール/とても長い名前のファイル.rs", 42),
        frame("e\u{301}te\u{301}", "cafe\u{301}/re\u{301}sume\u{301}.rs", 12_345_678),
        frame(&long, "/home/me/.cargo/registry/src/index/serde-1.0/src/de.rs", 99),
        frame("🚀::launch", &"deep/".repeat(60), 5),
        Frame { func: "malloc".into(), ..Frame::unknown(0) },
    ];
    let deep: Vec<u64> = (0..200).map(|n| n % 5 + 1).collect();
    let samples: Vec<(&[u64], u64, u64)> = vec![
        (&[6, 4, 3, 2, 1], 1, 1),
        (&[4, 3, 2, 1], 1, 1),
        (&[5, 1], 2, 2),
        (&[3, 1], 2, 1),
        (&deep, 1, 1),
    ];
    let (data, mut dictionary) = source(frames, &samples);
    let short = ShortPath { prefix: "@serdé".into(), rest: "src/de.rs".into() };
    dictionary.set_short_path("/home/me/.cargo/registry/src/index/serde-1.0/src/de.rs".into(), short);
    (data, dictionary)
}

#[test]
fn reports_are_80_columns_wide_and_1000_in_files() {
    let source = unwieldy();
    let widest = |text: &str| text.lines().filter(|line| !line.starts_with("Total")).map(|l| l.width()).max();
    assert_eq!(widest(&written(&Report::new(), &source)), Some(80));
    let folder = std::env::temp_dir().join(format!("stackglass-report-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let path = folder.join("report.txt");
    let in_file = |report: Report| {
        report.write_to_path((&source.0, &source.1), &path).unwrap();
        std::fs::read_to_string(&path).unwrap()
    };
    assert_eq!(widest(&in_file(Report::new())), Some(FILE_COLUMNS));
    assert_eq!(widest(&in_file(Report::new().cols(50))), widest(&written(&Report::new().cols(50), &source)));
    assert_eq!(in_file(Report::new().cols(80)), written(&Report::new(), &source));
    // What is refused leaves what is there alone, and nothing beside it.
    let refused = Report::new().write_to_path((&Data::new(vec![1, 0]), &source.1), &path);
    assert!(refused.is_err());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), written(&Report::new(), &source));
    assert_eq!(folder.read_dir().unwrap().count(), 1);
    let nowhere = Report::new().write_to_path((&source.0, &source.1), folder.join("no/report.txt"));
    assert!(nowhere.unwrap_err().to_string().contains("/no/report.txt: No such file"));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn widths_from_30_to_1000_hold() {
    let source = unwieldy();
    for cols in (30..=130).chain((140..=1000).step_by(20)) {
        for (c, combine) in [(false, true), (true, false)] {
            let tree = Report::new().c(c).combine(combine).cols(cols);
            for line in written(&tree, &source).lines().skip(2).take_while(|line| !line.starts_with("Total"))
            {
                assert!(line.width() <= cols, "{cols}: {line}");
                assert!(line.width() + 1 >= cols || !line.ends_with('…'), "cut too early, {cols}: {line}");
            }
            let flat = Report::new().c(c).combine(combine).cols(cols).format(Format::Flat);
            let text = written(&flat, &source);
            let header = text.lines().next().unwrap();
            let function = header.find(" Function").map(|at| header[..at].width() + 1).unwrap();
            for line in text.lines().skip(2).take_while(|line| !line.starts_with("Total")) {
                // Below 50 columns the numbers and the least of a name need more.
                assert!(line.width() <= cols.max(50), "{cols}: {line}");
                let before = line.chars().scan(0, |used, c| {
                    *used += c.to_string().width();
                    Some((*used, c))
                });
                let at_gap = before.into_iter().find(|(used, _)| *used >= function).unwrap();
                assert_eq!(at_gap, (function, ' '), "{cols}: the function is not below its header: {line}");
            }
        }
    }
    for format in Format::ALL {
        let text = written(&Report::new().cols(1000).format(*format), &source);
        assert!(text.contains("/資料/モジュール/とても長い名前のファイル.rs"), "there is room: {text}");
    }
}

#[test]
fn refusals_say_what_is_valid_and_write_nothing() {
    fn refusal<T: FromStr<Err = UnknownValue>>(words: &[&str]) {
        let Err(error) = T::from_str("bogus") else { panic!("bogus is none of {words:?}") };
        let text = error.to_string();
        assert!(text.starts_with("`bogus` is not a "), "{text}");
        words.iter().for_each(|word| assert!(text.contains(word), "{text} lacks {word}"));
    }
    refusal::<Format>(&Format::ALL.iter().map(|value| value.word()).collect::<Vec<_>>());
    refusal::<SortedBy>(&SortedBy::ALL.iter().map(|value| value.word()).collect::<Vec<_>>());
    refusal::<GroupBy>(&GroupBy::ALL.iter().map(|value| value.word()).collect::<Vec<_>>());
    refusal::<Recur>(&Recur::ALL.iter().map(|value| value.word()).collect::<Vec<_>>());
    refusal::<Pick>(&["all", "1,3,5-7"]);

    let (data, dictionary) = unwieldy();
    let bare = data.strip_meta().unwrap();
    let mut out = Vec::new();
    let flat = Report::new().format(Format::Flat).recur(Recur::FlatC);
    assert!(matches!(flat.write((&data, &dictionary), &mut out), Err(ReportError::FlatRecur)));
    for report in [Report::new(), Report::new().group_by(GroupBy::Thread)] {
        let refused = report.write((&bare, &dictionary), &mut out);
        assert!(matches!(refused, Err(ReportError::Data(DataError::MissingMetadata))));
    }
    assert!(out.is_empty());
}

/// Escapes as one can read them: `<1;90>` where a paint begins, `<>` where plain text goes on,
/// `[ADDRESS|` and `]` for links.
fn readable(text: &str) -> String {
    let text = text.replace("\x1b]8;;\x1b\\", "]").replace("\x1b\\", "|").replace("\x1b]8;;", "[");
    let (mut shown, mut paint) = (String::new(), "0");
    let mut parts = text.split("\x1b[");
    shown += parts.next().unwrap();
    for part in parts {
        let (code, text) = part.split_once('m').unwrap();
        // How a line is cut into pieces of one paint says nothing.
        if !text.is_empty() && code != paint {
            shown += &if code == "0" { "<>".to_owned() } else { format!("<{code}>") };
        }
        if !text.is_empty() {
            paint = code;
        }
        shown += text;
    }
    shown
}

#[test]
fn own_time_is_bold_sleep_grey_and_prefixes_have_colours() {
    let files = ["/p/main.rs", "/p/a.rs", "/p/b.rs", "/std/c.rs", "rel.rs"];
    let frames = files.iter().zip(["main", "a", "b", "c", "rel"]).map(|(file, func)| frame(func, file, 7));
    let samples: &[(&[u64], u64, u64)] =
        &[(&[2, 1], 1, 1), (&[3, 2, 1], 1, 2), (&[4, 1], 2, 2), (&[5, 4, 1], 2, 2), (&[5, 1], 2, 1)];
    let (data, mut dictionary) = source(frames.collect(), samples);
    for (file, prefix) in [("/p/a.rs", "@one"), ("/p/b.rs", "@two"), ("/std/c.rs", "@std")] {
        let rest = file.rsplit('/').next().unwrap();
        dictionary.set_short_path(file.into(), ShortPath { prefix: prefix.into(), rest: rest.into() });
    }
    let links = Links::new(|name| (name == "EDITOR").then(|| "code".to_owned()), "here");
    let report = Report::new().style(Style::Ansi).links(Some(links));
    let source = (data, dictionary);
    let text = readable(&written(&report, &source));
    let expected = [
        // The file without a prefix comes first and takes the first colour, of which nothing is seen.
        " ╎5 [vscode://file//p/main.rs:7|/p/main.rs:7]  main",
        "<1>1╎ 2 <>[vscode://file//p/a.rs:7|<1;36>@one<>][vscode://file//p/a.rs:7|<1>/a.rs:7<>]<1>  a<>",
        "<1;90>1<1>╎  <1;90>1<1> <>[vscode://file//p/b.rs:7|<1;32>@two<>]",
        "<1;90>1<1>╎ <1;90>2<1> <>[vscode://file//std/c.rs:7|<1;90>@std<>]",
        "|<1>/c.rs:7<>]<1>  <1;90>c<>",
        "<1;90>1<1>╎  <1;90>1<1> rel.rs:7  <1;90>rel<>",
        "<1>1╎ 1 rel.rs:7  rel<>",
    ];
    for line in expected {
        assert!(text.contains(line), "{line}\nis not in\n{text}");
    }
    let grouped =
        readable(&written(&Report::new().style(Style::Ansi).group_by(GroupBy::ThreadTask), &source));
    let headings = "<1;36>Thread 1 (default)<1;34> Task 0x0000000000000007 <>Total snapshots: 2.";
    assert!(grouped.contains(headings), "{grouped}");
    let hidden = Report::new().style(Style::Ansi).group_by(GroupBy::Thread);
    let (data, mut dictionary) = source;
    dictionary.set(1, [Frame::unknown(1)]);
    dictionary.set(4, [Frame::unknown(4)]);
    dictionary.set(5, [Frame::unknown(5)]);
    let hidden = readable(&written(&hidden, &(data, dictionary)));
    assert!(hidden.contains("Total snapshots: <33>3<>. Utilization: 33%"), "{hidden}");
}

#[test]
fn colours_and_links_change_no_text() {
    let source = unwieldy();
    for cols in [30, 47, 80, 120, 333] {
        for format in Format::ALL {
            let report = Report::new().format(*format).cols(cols).group_by(GroupBy::TaskThread).c(true);
            let styled = report.clone().style(Style::Ansi).links(Some(Links::new(|_| None, "here")));
            let text = written(&styled, &source);
            assert!(text.contains("\x1b]8;;file://here/") && text.contains("\x1b[1m"));
            let mut plain = String::new();
            let mut rest = &*text;
            while let Some((before, escape)) = rest.split_once('\x1b') {
                plain += before;
                let end = if escape.starts_with(']') { "\x1b\\" } else { "m" };
                rest = escape.split_once(end).unwrap().1;
            }
            assert_eq!(plain + rest, written(&report, &source));
        }
    }
}

/// The warning of a report, and whether its table or tree shows something.
fn warning(report: &Report, (data, dictionary): &(Data, Dictionary)) -> (String, bool) {
    let mut out = Vec::new();
    let warnings = report.write((data, dictionary), &mut out).unwrap().warnings;
    let text = String::from_utf8(out).unwrap();
    (warnings.join("; "), text.contains("main"))
}

#[test]
fn a_report_without_lines_says_what_hides_them() {
    let source_of = |foreign| {
        let frames = vec![Frame { foreign, ..frame("main", "main.rs", 3) }];
        source(frames, &[(&[1], 1, 1), (&[1], 2, 1), (&[1], 3, 2), (&[1], 5, 1)])
    };
    let (rust, c) = (source_of(false), source_of(true));
    for format in Format::ALL {
        let report = Report::new().format(*format);
        assert_eq!(warning(&report, &rust), (String::new(), true));
        let foreign = "all frames are foreign: show them with C = true (--c)".to_owned();
        assert_eq!(warning(&report, &c), (foreign.clone(), false));
        assert_eq!(warning(&report.clone().c(true), &c), (String::new(), true));
        let in_groups = format!("in one or more groups {foreign}");
        assert_eq!(warning(&report.clone().group_by(GroupBy::Task), &c), (in_groups, false));
        let threads = "no samples of the selected threads: there are threads 1-3, 5".to_owned();
        assert_eq!(warning(&report.clone().threads(99), &rust), (threads.clone(), false));
        assert_eq!(warning(&report.clone().threads(99).group_by(GroupBy::Thread), &rust), (threads, false));
        let tasks = "no samples of the selected tasks: there are tasks 0x7".to_owned();
        assert_eq!(warning(&report.clone().tasks(8), &rust), (tasks, false));
        assert_eq!(warning(&report, &(Data::default(), Dictionary::new())).0, NO_SAMPLES);
        // The reference knows one reason.
        assert_eq!(warning(&report.clone().quirks(Quirks::ALL), &c), (NO_SAMPLES.to_owned(), false));
    }
    // Thread 2 was seen, and task 9, but not together.
    let mut data = rust.0.into_words();
    data.extend([1, 1, 9, 9, 1, 0, 0]);
    let report = Report::new().threads(2).tasks(9);
    let text = warning(&report, &(Data::new(data), rust.1)).0;
    assert!(text.ends_with("on the selected threads: these tasks ran on threads 1"), "{text}");
}

#[test]
fn the_line_of_totals_is_wrapped() {
    let source = source(vec![frame("main", "main.rs", 3)], &[(&[1], 1, 1)]);
    for format in Format::ALL {
        let totals = |report: Report| {
            let text = written(&report.format(*format), &source);
            text[text.find("Total").unwrap()..].to_owned()
        };
        let (narrow, wide) = (totals(Report::new().cols(40)), totals(Report::new().cols(200)));
        assert!(narrow.lines().count() > 2 && narrow.lines().all(|line| line.width() <= 40), "{narrow}");
        assert_eq!(narrow.trim_end().replace('\n', " "), wide.trim_end());
        assert_eq!(wide.lines().count(), 1);
        assert_eq!(totals(Report::new().cols(40).quirks(Quirks::ALL)), wide);
    }
}

#[test]
fn a_tab_in_a_name_is_a_space_except_in_the_reference() {
    let source = source(vec![frame("ma\tin", "m\tain.rs", 3)], &[(&[1], 1, 1)]);
    for format in Format::ALL {
        let ours = written(&Report::new().format(*format), &source);
        assert!(ours.contains("ma in") && ours.contains("m ain.rs") && !ours.contains('\t'), "{ours}");
        let reference = written(&Report::new().format(*format).quirks(Quirks::ALL), &source);
        assert!(reference.contains("ma\tin") && reference.contains("m\tain.rs"), "{reference}");
    }
}

#[test]
fn code_without_names_goes_by_its_module() {
    let nameless = |module: &str| Frame { module: module.into(), ..Frame::unknown(0) };
    let frames = vec![nameless("/usr/bin/xz"), nameless("liblzma.so.5"), nameless("xz"), nameless("")];
    let source = source(frames, &[(&[2, 1], 1, 1), (&[2, 2], 1, 1), (&[3, 4], 1, 1)]);
    let tree = written(&Report::new().c(true), &source);
    let lines: Vec<&str> = tree.lines().skip(2).take_while(|line| !line.starts_with("Total")).collect();
    let expected = [
        " ╎1 [unknown stackframe]",
        "1╎ 1 [xz]",
        " ╎1 [xz]",
        "1╎ 1 [liblzma.so.5]",
        " ╎1 [liblzma.so.5]",
        "1╎ 1 [liblzma.so.5]",
    ];
    assert_eq!(lines.len(), expected.len(), "{tree}");
    for line in expected {
        assert!(lines.contains(&line), "{line}\nis not in\n{tree}");
    }
    let apart = written(&Report::new().c(true).combine(false), &source);
    assert!(apart.contains("0x0000000000000002 [liblzma.so.5]"), "{apart}");
    let flat = written(&Report::new().c(true).format(Format::Flat), &source);
    assert!(flat.contains("     2         2 [liblzma.so.5]\n"), "{flat}");
    assert!(flat.contains("[any unknown stackframes]\n"), "{flat}");
    let apart = written(&Report::new().c(true).format(Format::Flat).combine(false), &source);
    assert!(apart.contains("@0x2 [liblzma.so.5]\n"), "{apart}");
    let alike = written(&Report::new().c(true).quirks(Quirks::ALL), &source);
    assert!(!alike.contains("xz") && alike.contains("3 [unknown stackframe]"), "{alike}");
}
