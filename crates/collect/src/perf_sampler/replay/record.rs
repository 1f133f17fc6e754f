//! Takes the traces anew, by running the programs: `RECORD_TRACES=1 cargo test … -- --ignored traces_are_taken`.
//!
//! Without the variable, the traces are compared and dropped: a replay must give what the sampler itself has given.

use super::facts::Facts;
use super::play::{self, Op};
use super::programs::{self, Program};
use super::stored::Stored;
use super::trace::{SeenThread, Snapshot, Step, Trace};
use super::traced::{Answers, TracedSystem};
use crate::perf_sampler::events::Events;
use crate::perf_sampler::system::System;
use crate::perf_sampler::{PerfSampler, SETTLE_ALL};
use stackglass_procfs::clock::monotonic;
use stackglass_procfs::process::{children, executable};
use stackglass_procfs::threads::{Files, list};
use stackglass_profile::{Recorder, RecordingInfo};
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::rc::Rc;
use std::time::Duration;

/// Time between two settlings, ns.
const SETTLE: u64 = 100_000_000;

#[test]
#[ignore = "long: runs all programs of the traces"]
fn traces_are_taken() {
    let folder = Path::new("/tmp/stackglass-traces");
    std::fs::create_dir_all(folder).unwrap();
    programs::compile(folder);
    let (store, only) = (std::env::var_os("RECORD_TRACES"), std::env::var("ONLY_TRACE").ok());
    for program in
        programs::ALL.iter().filter(|program| only.as_ref().is_none_or(|only| program.name == only))
    {
        let is_whole = |facts: &Facts| facts.remarks.iter().all(|remark| !remark.contains("were lost"));
        let (mut trace, mut live) = take(program, folder);
        // The machine may be too busy for once.
        while program.pause.is_none() && !is_whole(&live) {
            (trace, live) = take(program, folder);
        }
        let packed = trace.packed();
        let trace = Rc::new(Trace::unpack(&packed).unwrap());
        let replayed = play::play(&trace, &Op::all(&trace), Answers::AsGiven);
        assert_eq!(replayed.unknown, Vec::<String>::new(), "{}", program.name);
        live.assert_equal(&Facts::from_recorder(&replayed.recorder), program.name);
        eprintln!("{}: {} bytes, {} entries", program.name, packed.len(), trace.entries.len());
        if store.is_some() {
            std::fs::write(programs::folder().join(program.name).with_extension("trace"), packed).unwrap();
        }
    }
}

/// Runs a program under the sampler. Returns the trace, and what the sampler recorded.
fn take(program: &Program, folder: &Path) -> (Trace, Facts) {
    let traced = TracedSystem::writing();
    let mut recorder = Recorder::new(RecordingInfo::default());
    let open = if program.inherited { Events::open_inherited } else { Events::open };
    let delay = Duration::from_millis(program.delay);
    let mut sampler = PerfSampler::with(System::with(Rc::clone(&traced)), open, (delay, true, true)).unwrap();
    assert_eq!(sampler.events.are_of_cpus(), !program.inherited, "events of CPUs are not allowed here");
    let began = monotonic();
    sampler.begin();
    let mut child = program.command(folder).stdout(Stdio::piped()).spawn().unwrap();
    sampler.started();
    let mut settled = monotonic();
    loop {
        match program.pause {
            Some(pause) => std::thread::sleep(pause),
            None => wait(&mut sampler),
        }
        sampler.drain(&mut recorder);
        look(&traced, child.id());
        if monotonic() - settled > SETTLE {
            settled = monotonic();
            sampler.settle(&mut recorder);
        }
        if has_ended(&mut child) {
            break;
        }
    }
    assert!(settled - began < 20 * SETTLE_ALL, "the program is short");
    let cpu = cpu_of_children();
    let status = child.wait().unwrap();
    let used = cpu_of_children() - cpu;
    sampler.settle_all(&mut recorder);
    sampler.close(&mut recorder);
    look(&traced, child.id());
    let mut output = String::new();
    child.stdout.take().unwrap().read_to_string(&mut output).unwrap();
    let mut trace = traced.written().borrow().clone();
    let end =
        status.signal().map_or(format!("exit {}", status.code().unwrap_or(-1)), |n| format!("signal {n}"));
    let truth = [
        ("program", child.id().to_string()),
        ("began", began.to_string()),
        ("ended", monotonic().to_string()),
        ("end", end),
        ("cpu", used.to_string()),
        ("output", output),
    ];
    trace.truth = truth.map(|(name, value)| (name.to_owned(), value)).to_vec();
    keep_what_is_used(&mut trace);
    (trace, Facts::from_recorder(&recorder))
}

/// Waits until a drain is due.
fn wait(sampler: &mut PerfSampler) {
    let events = libc::POLLIN;
    let mut waited: Vec<libc::pollfd> =
        sampler.descriptors().map(|fd| libc::pollfd { fd, events, revents: 0 }).collect();
    let pause = sampler.pause().as_millis().max(1) as libc::c_int;
    // SAFETY: as many descriptors as the list has.
    unsafe { libc::poll(waited.as_mut_ptr(), waited.len() as libc::nfds_t, pause) };
}

/// Whether a child has ended. It is still there to be waited for.
fn has_ended(child: &mut Child) -> bool {
    stackglass_procfs::Status::read(child.id()).is_none_or(|status| status.has_ended())
}

/// CPU time of all children that were waited for, and of theirs, ns.
fn cpu_of_children() -> u64 {
    // SAFETY: an all-zero rusage is a value, and the kernel fills it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage);
        usage
    };
    let nanos = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    nanos(usage.ru_utime) + nanos(usage.ru_stime)
}

/// Adds to the last drain what the kernel says of all threads now.
fn look(traced: &TracedSystem, program: u32) {
    let mut threads = Vec::new();
    let mut waiting = vec![(program, std::process::id())];
    while let Some((pid, parent)) = waiting.pop() {
        for tid in list(pid) {
            let mut files = Files::new(pid, tid);
            let answers = [files.stat().bytes(), files.state().bytes(), files.name().bytes()];
            threads.push(SeenThread { pid, tid, parent, executable: executable(pid), answers });
        }
        waiting.extend(children(pid).into_iter().map(|child| (child, pid)));
    }
    let mut trace = traced.written().borrow_mut();
    let drain = trace.entries.iter_mut().rev().find(|entry| matches!(entry.step, Step::Drain { .. }));
    drain.expect("it follows a drain").after = Snapshot { at: monotonic(), threads };
}

/// Removes files that were opened and not taken.
fn keep_what_is_used(trace: &mut Trace) {
    let used: Vec<usize> = trace.found.values().filter_map(|(_, number)| *number).collect();
    for (number, file) in trace.files.iter_mut().enumerate() {
        if !used.contains(&number) {
            file.blocks.clear();
        }
    }
}
