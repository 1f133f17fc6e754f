//! Draws folded stacks: `draw [--icicle] [--title TEXT] [--width N] FILE.svg|FILE.html < stacks.folded`.

use stackglass_files::folded;
use stackglass_flame::{Flamegraph, Page, Svg};
use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write, stdin};

fn main() -> Result<(), Box<dyn Error>> {
    let (mut title, mut width, mut icicle, mut output) = ("Flame graph".to_owned(), 1200, false, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match &*argument {
            "--icicle" => icicle = true,
            "--title" => title = arguments.next().ok_or("--title needs a text")?,
            "--width" => width = arguments.next().ok_or("--width needs a number")?.parse()?,
            _ => output = Some(argument),
        }
    }
    let output = output.ok_or("name a file to write, .svg or .html")?;
    let recording = folded::read_from(stdin())?;
    let graph = Flamegraph::new().c(true).graph(&recording)?.graph.ok_or("there are no stacks")?;
    let mut file = BufWriter::new(File::create(&output)?);
    if output.ends_with(".html") {
        Page::new(title).view("all", &graph).icicle(icicle).write_to(&mut file)?;
    } else {
        Svg::new(&graph).title(title).width(width).icicle(icicle).write_to(&mut file)?;
    }
    file.flush()?;
    eprintln!("{output}: {} boxes", graph.nodes().len());
    Ok(())
}
