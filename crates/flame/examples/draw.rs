//! Draws folded stacks, or a recording with a page for each of its threads:
//! `draw [--icicle] [--inverted] [--title TEXT] [--width N] [RECORDING.glass] FILE.svg|FILE.html < stacks.folded`.

use stackglass_files::{folded, read_merged};
use stackglass_flame::{Flamegraph, Graph, Page, Svg};
use stackglass_profile::{Recording, ThreadNumber};
use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write, stdin};

fn main() -> Result<(), Box<dyn Error>> {
    let (mut title, mut width, mut input, mut output) = ("Flame graph".to_owned(), 1200, None, None);
    let (mut icicle, mut inverted) = (false, false);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match &*argument {
            "--icicle" => icicle = true,
            "--inverted" => inverted = true,
            "--title" => title = arguments.next().ok_or("--title needs a text")?,
            "--width" => width = arguments.next().ok_or("--width needs a number")?.parse()?,
            name if name.ends_with(".glass") => input = Some(argument),
            _ => output = Some(argument),
        }
    }
    let output = output.ok_or("name a file to write, .svg or .html")?;
    let recording = match input {
        Some(input) => read_merged(input, |_, _| {})?.0,
        None => folded::read_from(stdin())?,
    };
    let graphs = graphs(&recording)?;
    let (_, first) = graphs.first().ok_or("there are no stacks")?;
    let mut file = BufWriter::new(File::create(&output)?);
    if output.ends_with(".html") {
        let page = Page::new(title).icicle(icicle).inverted(inverted);
        let page = graphs.iter().fold(page, |page, (label, graph)| page.view(label, graph));
        page.write_to(&mut file)?;
    } else {
        Svg::new(first).title(title).width(width).icicle(icicle).write_to(&mut file)?;
    }
    file.flush()?;
    eprintln!("{output}: {} boxes", first.nodes().len());
    Ok(())
}

/// Of all threads, and of each where there are several.
fn graphs(recording: &Recording) -> Result<Vec<(String, Graph)>, Box<dyn Error>> {
    let foreign = !recording.has_rust();
    let mut graphs = Vec::new();
    graphs
        .extend(Flamegraph::new().c(foreign).graph(recording)?.graph.map(|all| ("all threads".into(), all)));
    for number in 1..=recording.threads.len() as u32 * u32::from(recording.threads.len() > 1) {
        let graph = Flamegraph::new().c(foreign).threads(u64::from(number)).graph(recording)?.graph;
        let label = recording.thread_label(ThreadNumber(number));
        graphs.extend(graph.map(|graph| (format!("thread {number} ({label})"), graph)));
    }
    Ok(graphs)
}
