//! Types of blocks in programs that know what their blocks contain.

#[path = "../support/mod.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod support;

use stackglass_heapgraph::blocks::Blocks;
use stackglass_heapgraph::blocks::glibc::live_blocks;
use stackglass_heapgraph::graph::{Root, Site};
use stackglass_heapgraph::roots;
use stackglass_heapgraph::typing::{Evidence, Typing, infer};
use stackglass_layouts::Wanted;
use stackglass_process_view::modules::LoadedModule;
use stackglass_process_view::{ProcessView, Threads};
use stackglass_symbols::Options;
use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use support::{Process, build};

/// What the program prints of a block, and what is found.
#[derive(Debug)]
#[allow(dead_code, reason = "printed if it is wrong")]
struct Answer {
    address: u64,
    contains: String,
    found: Option<String>,
    /// Only the stack holds it.
    by_stack: bool,
}

struct Known {
    answers: Vec<Answer>,
    typing: Typing,
}

/// A stopped program, and the types of its blocks.
struct Asked {
    lines: Vec<String>,
    blocks: Blocks,
    typing: Typing,
    sites: Vec<Site>,
    /// How long it took to infer them.
    time: Duration,
}

/// Builds and runs a program, and infers the types of its blocks. `source` is a name in `sources`, or an absolute path.
fn ask(source: &str, compiler: &str, flags: &[&str]) -> Asked {
    let folder = tempfile::tempdir().unwrap();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let registers = build(folder.path(), &sources.join("glibc/sources/registers.c"), "gcc", &["-O2"]);
    let program = build(folder.path(), &sources.join("typing/sources").join(source), compiler, flags);
    let (process, lines) = Process::start_with_lines(&mut Command::new(&program), &registers);
    process.settle();
    process.stop();
    let image = process.image();
    let mut heap = live_blocks(&image).unwrap();
    assert!(heap.report.is_complete(), "{:#?}", heap.report);
    let view = ProcessView::open(&image);
    let Threads { stacks: threads, frames, .. } = view.threads();
    let (layouts, locals) =
        view.layouts_and_locals(&view.files(), &Options::default(), &frames, Wanted::Types);
    let modules = view.modules;
    let mut variables = roots::statics(&modules, &layouts);
    variables.extend(roots::thread_locals(&image, &modules, &layouts));
    let biases: Vec<u64> = modules.iter().map(LoadedModule::bias).collect();
    let types = |variables: &[Root]| {
        infer(Evidence {
            image: &image,
            blocks: &heap.blocks,
            sites: &[],
            layouts: &layouts,
            biases: &biases,
            roots: variables,
        })
    };
    let without_locals = types(&variables).typed_blocks;
    for ((thread, frames), locals) in threads.iter().zip(&frames).zip(&locals) {
        let names = vec![String::new(); frames.len()];
        variables.extend(roots::stack(&image, thread, frames, &names, locals, false));
    }
    let begin = Instant::now();
    let typing = types(&variables);
    let time = begin.elapsed();
    eprintln!(
        "{} blocks in {time:?}: {}, {without_locals} blocks without locals; {} conflicts",
        heap.blocks.len(),
        typing.remark(true),
        typing.conflicts
    );
    let mut sites = Vec::new();
    typing.add_sites(&layouts, &mut heap.blocks, &mut sites);
    Asked { lines, blocks: heap.blocks, typing, sites, time }
}

/// Compares what a program prints of its blocks with what is found.
fn known(source: &str, compiler: &str, flags: &[&str]) -> Known {
    let Asked { lines, blocks, typing, sites, .. } = ask(source, compiler, flags);
    let name = |index: usize| {
        let site = &sites[blocks.sites[index].0 as usize];
        site.contains.map(|_| site.name.clone())
    };
    let by_address: HashMap<u64, usize> =
        blocks.addresses.iter().enumerate().map(|(index, address)| (*address, index)).collect();
    let mut answers = Vec::new();
    let mut by_stack = false;
    for line in lines {
        let Some((address, contains)) = line.split_once(' ') else {
            by_stack = true;
            continue;
        };
        let address = u64::from_str_radix(address, 16).unwrap();
        // Short strings of C++ are part of their owner.
        let Some(index) = by_address.get(&address) else { continue };
        answers.push(Answer { address, contains: contains.to_owned(), found: name(*index), by_stack });
    }
    Known { answers, typing }
}

impl Known {
    /// Nothing has a wrong type, and at least this share of the blocks has one.
    fn check(&self, by_stack: bool, least: f64) {
        let answers: Vec<&Answer> =
            self.answers.iter().filter(|answer| answer.by_stack == by_stack).collect();
        let is_wrong = |answer: &&&Answer| {
            let any = ["*", "-"].contains(&answer.contains.as_str());
            let contains = answer.contains.trim_start_matches('-');
            !any && answer.found.as_ref().is_some_and(|found| *found != contains)
        };
        let wrong: Vec<_> = answers.iter().filter(is_wrong).take(10).collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
        // Of these, no type is expected.
        let answers: Vec<&Answer> =
            answers.into_iter().filter(|answer| !answer.contains.starts_with('-')).collect();
        let missing: Vec<_> = answers.iter().filter(|answer| answer.found.is_none()).collect();
        let typed = answers.len() - missing.len();
        let share = typed as f64 / answers.len() as f64;
        eprintln!("{typed} of {} blocks are typed", answers.len());
        let some: Vec<_> = missing.iter().step_by(missing.len() / 10 + 1).collect();
        assert!(share >= least, "{typed} of {} are typed; not {some:#?}", answers.len());
        assert!(self.typing.typed_blocks > 0);
    }
}

#[test]
fn rust() {
    let known = known("known.rs", "rustc", &["--edition=2024", "-O", "-g", "--crate-name=known"]);
    known.check(false, 0.99);
    known.check(true, 0.99);
}

#[test]
fn c() {
    let known = known("known.c", "gcc", &["-O2", "-g"]);
    known.check(false, 0.99);
}

#[test]
fn cpp() {
    let known = known("known.cpp", "g++", &["-O2", "-g"]);
    known.check(false, 0.99);
    known.check(true, 0.99);
}

/// Offsets of virtual bases lie at the begin of these vtables.
#[test]
fn virtual_bases_of_cpp() {
    virtual_bases(&["-O2", "-Wl,-z,pack-relative-relocs"]);
}

#[test]
#[ignore = "long: links four more programs"]
fn virtual_bases_of_cpp_in_other_links() {
    let linked: [&[&str]; 3] = [&["-O2"], &["-O0", "-no-pie"], &["-O2", "-static-pie"]];
    linked.into_iter().for_each(virtual_bases);
    if Command::new("clang++").arg("--version").output().is_ok() {
        known("virtual_bases.cpp", "clang++", &["-O2", "-g"]).check(false, 1.0);
    }
}

fn virtual_bases(flags: &[&str]) {
    let known = known("virtual_bases.cpp", "g++", &[&["-g"], flags].concat());
    known.check(false, 1.0);
    assert_eq!(known.answers.len(), 300, "{flags:?}");
}

#[test]
fn local_variables_of_rust() {
    let known = known("locals.rs", "rustc", &["--edition=2024", "-O", "-g", "--crate-name=known"]);
    known.check(false, 0.99);
}

#[test]
fn local_variables_of_rust_without_optimization() {
    let known = known("locals.rs", "rustc", &["--edition=2024", "-g", "--crate-name=known"]);
    known.check(false, 0.99);
}

#[test]
fn local_variables_of_c() {
    known("locals.c", "gcc", &["-O2", "-g"]).check(false, 0.99);
    known("locals.c", "gcc", &["-O0", "-g"]).check(false, 0.99);
}

/// `waits` has saved the register, and its own frame has no other word with the address.
#[test]
fn variables_in_registers_that_a_called_function_saves() {
    // The tests of whole programs read it with the command.
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/hosts/saved_registers.c");
    // Lists of locations are in `.debug_loclists`, `.debug_loc` and sections of `.dwo` files.
    for flags in ["-gdwarf-5", "-gdwarf-4", "-gsplit-dwarf", "-gz"] {
        let known = known(source, "gcc", &["-O2", "-g", flags]);
        known.check(false, 1.0);
        assert_eq!(known.answers.len(), 2, "{flags}");
    }
}

#[test]
fn local_variables_of_cpp() {
    known("locals.cpp", "g++", &["-O2", "-g"]).check(false, 0.99);
}

#[test]
#[ignore = "long: another build; those of C and Rust are read without optimization in every run"]
fn local_variables_of_cpp_without_optimization() {
    known("locals.cpp", "g++", &["-O0", "-g"]).check(false, 0.99);
}

/// A build for tests on a busy machine is slower than a user's.
#[test]
#[ignore = "long: a million blocks"]
fn a_million_blocks() {
    let asked = ask("million.rs", "rustc", &["--edition=2024", "-O", "-g"]);
    assert!(asked.blocks.len() > 1_000_000 && asked.time < Duration::from_secs(3), "{:?}", asked.time);
    let share = asked.typing.typed_blocks as f64 / asked.blocks.len() as f64;
    assert!(share > 0.999, "{}", asked.typing.remark(true));
}
