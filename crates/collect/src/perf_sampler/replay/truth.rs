//! What recordings say of processes, threads and times is what the programs and the kernel said.

use super::facts::{Facts, ProcessFacts, number, said, said_of_threads};
use super::play::replay;
use super::programs::{trace, traces};
use super::stored::Stored;
use super::trace::Trace;
use stackglass_proc_text::SchedStat;
use std::collections::BTreeMap;

/// By how much a time may differ, ns, besides a part of it.
const SLACK: u64 = 500_000;

/// How much CPU time of a thread may be missing, ns. What ran before the exec of the program is this command.
fn slack_of(trace: &Trace, tid: u32) -> u64 {
    let is_first = tid == number(trace, "program") as u32 && !trace.setup.of_cpus;
    if is_first { 8 * SLACK } else { SLACK }
}

fn is_near(one: u64, other: u64, part: f64) -> bool {
    one.abs_diff(other) <= SLACK + (other as f64 * part) as u64
}

fn facts(name: &str) -> (std::rc::Rc<Trace>, Facts) {
    let trace = trace(name);
    let facts = Facts::from_recorder(&replay(&trace));
    (trace, facts)
}

#[test]
fn the_same_bytes_give_the_same_recording() {
    for (name, trace) in traces() {
        let once = Facts::from_recorder(&replay(&trace));
        once.assert_equal(&Facts::from_recorder(&replay(&trace)), name);
        assert!(once.awake() > 0, "{name}");
    }
}

#[test]
fn lives_are_in_order_and_have_no_more_time_than_they_last() {
    for (name, trace) in traces() {
        let facts = Facts::from_recorder(&replay(&trace));
        let (began, ended) = (number(&trace, "began"), number(&trace, "ended"));
        for process in &facts.processes {
            let end = process.end.unwrap_or_else(|| panic!("{name}: {process:?} has no end"));
            assert!(began <= process.start && process.start <= end && end <= ended, "{name}: {process:?}");
            for thread in &process.threads {
                let end_of_thread = thread.end.unwrap_or_else(|| panic!("{name}: {thread:?} has no end"));
                assert!(
                    process.start <= thread.start && thread.start <= end_of_thread && end_of_thread <= end,
                    "{name}: {thread:?} of {process:?}"
                );
                let life = end_of_thread - thread.start;
                assert!(thread.time() <= life + life / 50 + SLACK, "{name}: {thread:?} lasts {life}");
                // Each moment of a life is time that it ran, waited or slept, unless records were lost.
                let is_whole = name == "lost" || is_near(thread.time(), life, 0.02);
                assert!(is_whole, "{name}: {thread:?} lasts {life}");
            }
        }
    }
}

#[test]
fn cpu_time_is_the_kernels() {
    for (name, trace) in traces() {
        let facts = Facts::from_recorder(&replay(&trace));
        let (recorded, counted) = (facts.awake(), number(&trace, "cpu"));
        // Inherited events end with their thread, before the kernel has taken it apart, and begin with the exec of the program.
        let missing =
            if trace.setup.of_cpus { 0 } else { 100_000 * facts.threads().count() as u64 + 8 * SLACK };
        let missing = if name == "lost" { counted / 4 } else { missing + counted / 30 + SLACK };
        // What the host of a virtual machine takes is not in the kernel's count.
        let most = counted + counted / 30 + 4 * SLACK;
        assert!((counted - missing..most).contains(&recorded), "{name}: {recorded} ns of {counted}");
    }
}

#[test]
fn no_thread_has_less_time_than_the_kernels_account_said_or_than_it_said_itself() {
    for (name, trace) in traces().filter(|(name, _)| *name != "lost") {
        let recorded = Facts::from_recorder(&replay(&trace)).awake_by_tid();
        let mut accounts: BTreeMap<u32, u64> = BTreeMap::new();
        for thread in trace.entries.iter().flat_map(|entry| &entry.after.threads) {
            if let Some(account) = Option::<SchedStat>::get(&mut &thread.answers[0][..]).flatten() {
                accounts.insert(thread.tid, account.ran);
            }
        }
        for (tid, ran) in accounts {
            let recorded = recorded.get(&tid).copied().unwrap_or(0);
            let slack = slack_of(&trace, tid);
            assert!(recorded + slack + ran / 50 >= ran, "{name}: {tid} has {recorded} ns of {ran}");
        }
        for (tid, ran) in said_of_threads(&trace, "cpu") {
            let recorded = recorded.get(&tid).copied().unwrap_or(0);
            // What follows is the end of the thread; that of the first one is the end of the process.
            let most = ran + ran / 30 + 6 * SLACK;
            let slack = slack_of(&trace, tid);
            let least = (ran - ran / 100).saturating_sub(if slack > SLACK { slack } else { SLACK / 10 });
            assert!((least..most).contains(&recorded), "{name}: {tid} has {recorded} ns, it said {ran}");
        }
    }
}

/// Images of a program, by the end of its path.
fn images<'a>(facts: &'a Facts, path: &str) -> Vec<&'a ProcessFacts> {
    facts.processes.iter().filter(|process| process.exe.ends_with(path)).collect()
}

#[test]
fn a_storm_of_forks_has_each_process_once() {
    for name in ["storm", "storm-inherited"] {
        let (trace, facts) = facts(name);
        let program = number(&trace, "program") as u32;
        let (shells, children) = (images(&facts, "/dash"), images(&facts, "/true"));
        assert_eq!(children.len(), 200, "{name}");
        assert!(children.iter().all(|child| child.parent == program && !child.forked), "{name}");
        assert!(children.iter().all(|child| child.threads.len() == 1 && child.threads[0].name == "true"));
        assert!(children.windows(2).all(|pair| pair[0].pid != pair[1].pid), "{name}");
        // Between fork and exec, a child is the shell's image: only if a stack was taken there.
        let forked = shells.iter().filter(|shell| shell.forked).count();
        assert_eq!(shells.len() - forked, 1, "{name}");
        assert_eq!(facts.processes.len(), 201 + forked, "{name}");
        assert!(forked < 60, "{name}: {forked}");
    }
}

#[test]
fn a_thread_that_execs_is_the_first_thread_of_the_next_image() {
    for name in ["execs", "execs-inherited"] {
        let (trace, facts) = facts(name);
        assert_eq!(trace.truth("end"), "exit 7", "{name}");
        let program = number(&trace, "program") as u32;
        let all = images(&facts, "/replayed");
        assert_eq!((all.len(), facts.processes.len()), (7, 7), "{name}");
        assert!(all.iter().all(|image| image.pid == program && !image.forked), "{name}");
        assert!(all.windows(2).all(|pair| pair[0].end.is_some_and(|end| end <= pair[1].start)), "{name}");
        for (index, image) in all.iter().enumerate() {
            // The first one waits, three compute, and one replaces the program.
            assert_eq!(image.threads.len(), if index == 6 { 1 } else { 5 }, "{name}: {image:?}");
            assert!(image.threads.iter().any(|thread| thread.tid == program), "{name}: {image:?}");
        }
    }
}

#[test]
fn threads_that_live_briefly_are_all_seen() {
    for name in ["threads", "threads-inherited"] {
        let (trace, facts) = facts(name);
        let program = number(&trace, "program") as u32;
        let said = said(&trace, "cpu").count();
        assert_eq!((said, facts.processes.len()), (151, 1), "{name}");
        assert_eq!(facts.processes[0].threads.len(), said, "{name}");
        for thread in facts.processes[0].threads.iter().filter(|thread| thread.tid != program) {
            assert!(thread.awake >= 190_000 && thread.name == "replayed", "{name}: {thread:?}");
        }
    }
}

#[test]
fn sleep_is_what_the_program_slept() {
    for name in ["sleeps", "sleeps-inherited"] {
        let (trace, facts) = facts(name);
        for (tid, slept) in said_of_threads(&trace, "slept") {
            let (_, thread) = facts.threads().find(|(_, thread)| thread.tid == tid).unwrap();
            assert_eq!(thread.name, "sleeper", "{name}");
            // Its calls also have the time until it gets a CPU again, and that of the calls.
            let recorded = thread.asleep + thread.waiting;
            assert!(is_near(recorded, slept, 0.02), "{name}: {recorded} ns, it said {slept}");
        }
        // The first thread sleeps until the other one has ended.
        let first = number(&trace, "program") as u32;
        let (_, first) = facts.threads().find(|(_, thread)| thread.tid == first).unwrap();
        let (_, other) = facts.threads().find(|(_, thread)| thread.name == "sleeper").unwrap();
        let life = other.end.unwrap() - other.start;
        assert!(is_near(first.asleep, life, 0.01), "{name}: {} ns asleep of {life}", first.asleep);
    }
}

#[test]
fn a_pipeline_has_its_programs_with_one_parent() {
    let (trace, facts) = facts("pipeline");
    let program = number(&trace, "program") as u32;
    for name in ["seq", "sort", "tr", "tail"] {
        let of_name = images(&facts, &format!("/{name}"));
        assert_eq!(of_name.len(), 1, "{name}");
        assert_eq!((of_name[0].parent, &*of_name[0].threads[0].name), (program, name));
        assert!(of_name[0].threads[0].awake > 0);
    }
    assert_eq!(images(&facts, "/dash").iter().filter(|shell| !shell.forked).count(), 1);
    assert_eq!(trace.truth("output"), "3\n2\n2\n");
}

#[test]
fn a_program_that_is_killed_ends_with_all_its_threads() {
    let (trace, facts) = facts("killed");
    assert_eq!(trace.truth("end"), "signal 9");
    assert_eq!(facts.processes.len(), 1);
    let process = &facts.processes[0];
    assert_eq!(process.threads.len(), 4);
    let ends: Vec<u64> = process.threads.iter().filter_map(|thread| thread.end).collect();
    let (first, last) = (ends.iter().min().unwrap(), ends.iter().max().unwrap());
    assert!(ends.len() == 4 && last - first < 20_000_000, "{ends:?}");
}

#[test]
fn children_by_vfork_and_spawn_are_seen() {
    let (trace, facts) = facts("children");
    let program = number(&trace, "program") as u32;
    let mut said: Vec<u32> = said(&trace, "child").map(|words| words[0].parse().unwrap()).collect();
    said.sort_unstable();
    let children = images(&facts, "/true");
    assert_eq!(children.iter().map(|child| child.pid).collect::<Vec<_>>(), said);
    assert!(children.iter().all(|child| child.parent == program && child.threads[0].name == "true"));
    assert_eq!(said.len(), 30);
}

#[test]
fn the_last_name_is_a_threads_name() {
    let (_, facts) = facts("renames");
    let names: Vec<&str> = facts.threads().map(|(_, thread)| &*thread.name).collect();
    assert_eq!(names, ["name 99"]);
}
