//! Writes the pages that the browser tests open: graphs whose every figure is known, hostile names, many boxes, deep
//! graphs. `pages FOLDER`

use stackglass_flame::{Difference, Graph, GraphBuilder, Page, Paint, Span, Status, Svg, schemes};
use stackglass_profile::Frame;
use std::error::Error;
use std::fs;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("name a folder to write to")?;
    let folder = Path::new(&folder);
    fs::create_dir_all(folder)?;
    let (known, other) = (known(), other());
    fs::write(
        folder.join("known.html"),
        Page::new("known").paint(paint()).view("all threads", &known).view("thread 2", &other).to_text(),
    )?;
    fs::write(
        folder.join("known.svg"),
        Svg::new(&known).title("known").width(1016).paint(paint()).to_text(),
    )?;
    fs::write(folder.join("hostile.html"), hostile())?;
    let (title, graph) = hostile_graph();
    fs::write(folder.join("hostile.svg"), Svg::new(&graph).title(title).to_text())?;
    let (now, before) = changed();
    let difference = Difference::new(&before, &now, 1.0, 1.0);
    fs::write(
        folder.join("changed.html"),
        Page::new("changed")
            .paint(difference.paint())
            .difference(1.0, 1.0)
            .view("now", &now)
            .view("before", &before)
            .to_text(),
    )?;
    let (running, asleep) = switches();
    let schemes = vec![("kind".to_owned(), paint()), ("crate".to_owned(), schemes::by_crate())];
    let page =
        Page::new("switches").unit("samples on CPU").wall_unit("samples").foreign(false).schemes(schemes);
    let page = page.view_with_asleep("everything", Some(&running), Some(&asleep));
    fs::write(folder.join("switches.html"), page.view_with_asleep("sleeper", None, Some(&asleep)).to_text())?;
    let many = many(100_000);
    assert_eq!(many.nodes().len(), 100_000);
    fs::write(folder.join("many.svg"), Svg::new(&many).title("many").to_text())?;
    fs::write(folder.join("many.html"), Page::new("many").view("all", &many).to_text())?;
    fs::write(
        folder.join("million.html"),
        Page::new("million").view("all", &self::many(1_000_000)).to_text(),
    )?;
    fs::write(folder.join("runtime.html"), Page::new("runtime").view("all", &runtime(80)).to_text())?;
    fs::write(folder.join("deep.html"), Page::new("deep").view("all", &deep(100_000)).to_text())?;
    Ok(())
}

/// The usual colours, and a note for one function.
fn paint() -> Paint<'static> {
    Paint::default()
        .notes(|graph, node| (&*graph.frame(node).func == "app::eval").then(|| "+3 \u{202e}%".to_owned()))
}

fn rust(func: &str, line: i64) -> Frame {
    Frame { func: func.into(), file: "/src/main.rs".into(), line, foreign: false, ..Frame::unknown(0) }
}

/// Boxes by depth, from the root on: name, first and last sample, bits.
fn graph(boxes: &[(u32, &str, i64, i64, Status)]) -> Graph {
    let mut builder = GraphBuilder::default();
    for (at, (depth, name, from, to, status)) in boxes.iter().enumerate() {
        while builder.depth() > *depth as usize {
            builder.close();
        }
        let frame = if at == 0 { Frame::unknown(0) } else { rust(name, at as i64) };
        let frame = builder.frame(&frame);
        builder.open(frame, *status, Span::new(*from, *to));
    }
    builder.finish().expect("there is a root")
}

fn known() -> Graph {
    let none = Status::NONE;
    graph(&[
        (0, "", 1, 100, none),
        (1, "app::main", 1, 90, none),
        (2, "app::parse", 1, 40, none),
        (3, "alloc::alloc::alloc", 1, 10, Status::MEMORY),
        (2, "app::eval", 41, 80, Status::DISPATCH),
        (3, "app::parse", 41, 60, none),
        (3, "alloc::alloc::alloc", 61, 70, Status::MEMORY),
    ])
}

fn other() -> Graph {
    graph(&[(0, "", 1, 7, Status::NONE), (1, "app::worker", 1, 7, Status::RUNTIME)])
}

/// Two profiles, now and before: `slow` grew, `gone` is gone, and `new` is new. `slow` calls `leaf`, as `same` does.
fn changed() -> (Graph, Graph) {
    let none = Status::NONE;
    let now = graph(&[
        (0, "", 1, 2000, none),
        (1, "app::same", 1, 500, none),
        (2, "app::leaf", 1, 400, none),
        (1, "app::slow", 501, 1500, none),
        (2, "app::leaf", 501, 1400, none),
        (1, "app::new", 1501, 2000, none),
    ]);
    let before = graph(&[
        (0, "", 1, 1000, none),
        (1, "app::gone", 1, 200, none),
        (1, "app::same", 201, 700, none),
        (2, "app::leaf", 201, 600, none),
        (1, "app::slow", 701, 1000, none),
        (2, "app::leaf", 701, 900, none),
    ]);
    (now, before)
}

/// Samples on a CPU and asleep: a function with two lines, foreign frames, and a call through a pointer below one.
fn switches() -> (Graph, Graph) {
    let (none, call) = (Status::NONE, Status::DISPATCH);
    let foreign =
        |name: &str| Frame { func: name.into(), module: "/lib/libc.so.6".into(), ..Frame::unknown(0) };
    let build = |boxes: &[(usize, Frame, i64, i64, Status)]| {
        let mut builder = GraphBuilder::default();
        for (depth, frame, from, to, status) in boxes {
            let frame = builder.frame(frame);
            builder.open_at(*depth, frame, *status, Span::new(*from, *to));
        }
        builder.finish().expect("there is a root")
    };
    let running = build(&[
        (0, Frame::unknown(0), 1, 100, call),
        (1, rust("app::main", 1), 1, 100, none),
        (2, rust("app::work", 10), 1, 30, none),
        (2, rust("app::work", 20), 31, 60, none),
        (3, foreign("qsort"), 31, 60, none),
        (4, rust("app::compare", 5), 31, 50, call),
        (2, foreign("read"), 61, 80, none),
    ]);
    let asleep = build(&[
        (0, Frame::unknown(0), 1, 50, none),
        (1, rust("app::main", 1), 1, 50, none),
        (2, foreign("read"), 1, 50, none),
    ]);
    (running, asleep)
}

/// Names that would do something if they were more than text.
fn hostile_names() -> [String; 8] {
    let long = "long::".repeat(20_000);
    [
        "</script><script>window.hostile = 1</script>",
        "<img src=x onerror=window.hostile=1>",
        "\"';window.hostile=1;//",
        "</noscript></style></title><h2>hostile</h2>",
        "\u{202e}backwards\u{2066}\0\u{1b}[2J\u{200b}",
        "<!--<script>",
        "\\u003c/script>\\",
        &long,
    ]
    .map(str::to_owned)
}

/// A title and a graph of such names.
fn hostile_graph() -> (String, Graph) {
    let names = hostile_names();
    let mut all = vec![(0, "", 1, 10, Status::NONE)];
    all.extend(names.iter().zip(1..).map(|(name, depth)| (depth, &**name, 1, 10, Status::NONE)));
    (names[..7].concat(), graph(&all))
}

fn hostile() -> String {
    let ((title, graph), names) = (hostile_graph(), hostile_names());
    let mut page = Page::new(title).unit(&*names[1]);
    for name in &names[..7] {
        page = page.view(&**name, &graph);
    }
    page.to_text()
}

/// So many boxes in the shape of real ones: random stacks that have their outer frames in common.
fn many(count: usize) -> Graph {
    let mut random = 88_172_645_463_325_252_u64;
    let mut next = move |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % below
    };
    // Frame, samples, callees of each place.
    let mut places: Vec<(u64, u64, Vec<usize>)> = vec![(0, 0, Vec::new())];
    while places.len() < count {
        let (mut place, samples) = (0, 1 + next(20));
        places[0].1 += samples;
        for _ in 0..10 + next(50) {
            // Mostly the one callee, sometimes another.
            let choice = [0, 0, 0, 0, 0, 1, 1, 2, 3, 4][next(10) as usize];
            let frame = (places[place].0 * 7 + choice * 311 + 13) % 5000;
            let known = places[place].2.iter().copied().find(|callee| places[*callee].0 == frame);
            place = match known {
                Some(callee) => callee,
                None if places.len() == count => break,
                None => {
                    places.push((frame, 0, Vec::new()));
                    let new = places.len() - 1;
                    places[place].2.push(new);
                    new
                }
            };
            places[place].1 += samples;
        }
    }
    let mut builder = GraphBuilder::default();
    let frames: Vec<_> = (0..5000)
        .map(|at| {
            builder.frame(&rust(&format!("crate_{}::module::Type{}::method_{at}", at % 40, at % 300), at))
        })
        .collect();
    let root = builder.frame(&Frame::unknown(0));
    builder.open(root, Status::NONE, Span::of_len(1, places[0].1));
    // Places that are open: number, callees seen, where the next one starts.
    let mut open: Vec<(usize, usize, i64)> = vec![(0, 0, 1)];
    while let Some((place, seen, start)) = open.last_mut() {
        let Some(callee) = places[*place].2.get(*seen).copied() else {
            open.pop();
            builder.close();
            continue;
        };
        let (frame, samples, _) = &places[callee];
        let at = *start;
        *seen += 1;
        *start += *samples as i64;
        let status = Status([0, 0, 0, 0, 0, 1, 2][*frame as usize % 7]);
        builder.open(frames[*frame as usize], status, Span::of_len(at, *samples));
        open.push((callee, 0, at));
    }
    builder.finish().expect("there is a root")
}

/// So many levels that pass all samples on, with three functions above.
fn runtime(levels: usize) -> Graph {
    let mut builder = GraphBuilder::default();
    for level in 0..levels {
        let frame = builder.frame(&Frame { func: format!("runtime::{level}").into(), ..Frame::unknown(0) });
        builder.open_at(level, frame, Status::NONE, Span::of_len(1, 90));
    }
    for (number, name) in (0..).zip(["parse", "sort", "write"]) {
        for above in 0..30 {
            let frame =
                builder.frame(&Frame { func: format!("{name}::{above}").into(), ..Frame::unknown(0) });
            builder.open_at(levels + above, frame, Status::NONE, Span::of_len(1 + 30 * number, 30));
        }
    }
    builder.finish().unwrap()
}

fn deep(levels: usize) -> Graph {
    let mut builder = GraphBuilder::default();
    let frame = builder.frame(&rust("app::recurse", 1));
    let root = builder.frame(&Frame::unknown(0));
    let total = 1 + levels as u64;
    builder.open(root, Status::NONE, Span::of_len(1, total));
    for level in 0..levels {
        builder.open(frame, Status::NONE, Span::of_len(1, total - level as u64));
    }
    builder.finish().expect("there is a root")
}
