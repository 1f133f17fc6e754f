//! The `stackglass` command: one file per verb, and the files that they share.
//!
//! Each verb declares its flags once, with clap. Help, the manual pages and shell completions are made from these
//! declarations. The output of the profiled program goes to stdout untouched; Stackglass prints to stderr while the
//! program runs. An error is one line.

mod allocs;
mod allocs_pid;
mod annotate;
mod arguments;
mod browser;
mod callers;
mod cargo_profile;
mod cargo_verb;
mod chosen_processes;
mod clear;
mod closed_stdout;
mod completions;
mod convert;
mod copy_flags;
mod demo;
mod demo_workload;
mod diff;
mod doctor;
mod drawn_output;
mod driver;
mod environment_help;
mod failure;
mod flamegraph;
mod heap;
mod help_topic;
mod hot;
mod info;
mod info_alike;
mod info_json;
mod info_samples;
mod input;
mod library;
mod man;
mod message;
mod metric_flag;
mod output;
mod peek;
mod peek_answer;
mod peek_answer_parts;
mod peek_children;
mod peek_tasks;
mod peek_text;
mod perf_refused;
mod pick_flags;
mod print;
mod range_flags;
mod record;
mod record_pid;
mod record_program;
mod recording_file;
mod recording_observer;
mod report_flags;
mod report_help;
mod run;
mod sampling_flags;
mod save;
mod source_files;
mod states_flag;
mod status_line;
mod summary;
mod tasks;
mod terminal;
mod top;
mod track_allocation;
mod values;
mod view;
mod view_beside;

use arguments::{CargoCommand, CargoVerb, Stackglass, Verb};
use clap::CommandFactory;
use std::ffi::OsString;

/// Runs `stackglass` with these arguments (the command's name first) and returns its exit status.
pub fn stackglass(arguments: Vec<OsString>) -> i32 {
    closed_stdout::make_writes_fail();
    // A link to this executable named cargo-stackglass provides `cargo stackglass`.
    let name = arguments.first().map(std::path::Path::new).and_then(|path| path.file_name());
    if name.is_some_and(|name| name == "cargo-stackglass") {
        return cargo_stackglass(arguments);
    }
    let verb = match failure::parse::<Stackglass>(arguments) {
        Ok(stackglass) => stackglass.verb,
        Err(status) => return status,
    };
    failure::status(match verb {
        Verb::Record(flags) => record::run(flags),
        Verb::Run(flags) => run::run(flags),
        Verb::Peek(flags) => peek::run(&flags),
        Verb::Tasks(flags) => tasks::run(&flags),
        Verb::Top(flags) => top::run(&flags),
        Verb::Print(flags) => print::run(&flags),
        Verb::Hot(flags) => hot::run(&flags),
        Verb::Allocs(flags) => allocs::run(&flags),
        Verb::Callers(flags) => callers::run(&flags),
        Verb::Annotate(flags) => annotate::run(&flags),
        Verb::Flamegraph(flags) => flamegraph::run(&flags),
        Verb::View(flags) => view::run(&flags),
        Verb::Diff(flags) => diff::run(&flags),
        Verb::Heap(flags) => heap::run(&flags),
        Verb::Convert(flags) => convert::run(&flags),
        Verb::Info(flags) => info::run(&flags),
        Verb::Save(flags) => save::run(&flags),
        Verb::Clear(flags) => clear::run(&flags),
        Verb::Doctor(flags) => doctor::run(&flags),
        Verb::Demo(flags) => demo::run(&flags),
        Verb::DemoWorkload(flags) => Ok(demo_workload::run(&flags)),
        Verb::Report => help_topic::print(report_help::TEXT),
        Verb::Environment => help_topic::print(environment_help::TEXT),
        Verb::Man(flags) => man::run(&flags, Stackglass::command()),
        Verb::Completions(flags) => completions::run(&flags, Stackglass::command()),
    })
}

/// Runs `cargo stackglass` with these arguments, as Cargo passes them (`cargo-stackglass stackglass …`)
/// or without the repeated name.
pub fn cargo_stackglass(mut arguments: Vec<OsString>) -> i32 {
    closed_stdout::make_writes_fail();
    if arguments.get(1).is_none_or(|argument| argument != "stackglass") {
        arguments.insert(1.min(arguments.len()), "stackglass".into());
    }
    match failure::parse(arguments) {
        Ok(CargoCommand { verb: CargoVerb::Stackglass(flags) }) => failure::status(cargo_verb::run(flags)),
        Err(status) => status,
    }
}
