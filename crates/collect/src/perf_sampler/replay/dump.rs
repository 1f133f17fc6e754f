use super::programs::trace;
use super::trace::Step;
use stackglass_perf::records::{self, What};
#[test]
#[ignore = "long: prints"]
fn dump() {
    let name = std::env::var("DUMP").unwrap();
    let pid: Option<u32> = std::env::var("DUMP_PID").ok().and_then(|p| p.parse().ok());
    let trace = trace(&name);
    println!("{:?}", trace.truth);
    for (i, chapter) in trace.chapters.iter().enumerate() {
        match &chapter.step {
            Step::Drain { until, records } => {
                println!("-- chapter {i} drain {until} {} records", records.len());
                for taken in records {
                    let Some(r) = records::parse(taken.raw(), trace.setup.counted) else { continue };
                    let what = match r.what {
                        What::Sample(s) => format!("sample pc {:x?} user {}", s.registers.map(|r| r.pc()), s.in_user_code),
                        What::SwitchIn => "in".into(),
                        What::SwitchOut { preempted } => format!("out {preempted}"),
                        What::Fork { parent } => format!("fork by {parent}"),
                        What::Exit => "exit".into(),
                        What::Comm { exec, name } => format!("comm {exec} {}", String::from_utf8_lossy(name)),
                        What::Mmap(m) => format!("mmap {:x} {:x} {}", m.start, m.len, String::from_utf8_lossy(m.path)),
                        What::Lost(n) => format!("lost {n}"),
                        What::Other => format!("other {}", taken.kind),
                    };
                    if pid.is_none_or(|p| r.pid == p || r.tid == p || what == format!("fork by {p}")) {
                        println!("{} cpu {} pid {} tid {} {}", r.at, taken.cpu, r.pid, r.tid, what);
                    }
                }
            }
            step => println!("-- chapter {i} {step:?}"),
        }
        for (q, a) in &chapter.answers {
            println!("   {q} = {:?}", &a[..a.len().min(40)]);
        }
    }
}
#[test]
#[ignore = "long: prints"]
fn show() {
    let name = std::env::var("DUMP").unwrap();
    let trace = trace(&name);
    let recorder = super::play::play(&trace, &super::play::Op::all(&trace), super::tape::Answers::AsGiven).recorder;
    let facts = super::facts::Facts::of(&recorder);
    println!("{:?}", trace.truth);
    for p in &facts.processes {
        println!("{} {} by {} {} - {:?} forked {}", p.pid, p.exe, p.parent, p.start, p.end, p.forked);
        for t in &p.threads { println!("    {t:?}"); }
    }
    for (s, t) in &facts.stacks { println!("{t:?} {s:?}"); }
    println!("{:?} {:?}", facts.remarks, recorder.recording().processes[0].counters);
}
#[test]
#[ignore = "long: prints"]
fn lossy() {
    use super::*;
    let name = std::env::var("DUMP").unwrap();
    let trace = trace(&name);
    let ops = play::Op::all(&trace);
    let facts = |ops: &[play::Op<'_>]| {
        let r = play::play(&trace, ops, tape::Answers::OfTheMoment).recorder;
        for s in &r.recording().samples {
            if s.time.0 > 1 << 40 { println!("huge {s:?} {:?} {:?}", r.recording().threads[s.thread.0 as usize - 1], facts::frames(r.recording(), s)); }
        }
        facts::Facts::of(&r) };
    let whole = facts(&ops);
    for (seed, part) in (0..60).flat_map(|s| [(s, 0.1), (s, 0.4)]) {
    let mut random = stackglass_sampling::Random::new(seed);
        let (changed, n) = losses::with_losses(&ops, part, &mut random);
        let f = facts(&changed);
        if f.awake() < whole.awake() * 22 / 20 { continue; }
        println!("== {part} lost {n}: {} of {}", f.awake(), whole.awake());
        let before = whole.awake_by_tid();
        let mut shown = 0;
        for (tid, time) in f.awake_by_tid() {
            let b = before.get(&tid).copied().unwrap_or(0);
            if time > b + 1_000_000 && shown < 4 {
                shown += 1;
                println!("tid {tid}: {time} not {b}");
                for (p, t) in f.threads().filter(|(_, t)| t.tid == tid) { println!("   {} {t:?}", p.exe); }
                for op in &changed {
                    match op {
                        play::Op::Begin { until } => println!("      drain {until}"),
                        play::Op::Record(taken) => {
                            let Some(r) = records::parse(taken.raw(), trace.setup.counted) else { continue };
                            let w = match r.what { What::SwitchIn => "in".to_owned(), What::SwitchOut { preempted } => format!("out {preempted}"), What::Fork { parent } => format!("fork {parent}"), What::Exit => "exit".into(), What::Comm { .. } => "comm".into(), What::Lost(n) => format!("lost {n}"), What::Sample(_) => "sample".into(), _ => "-".into() };
                            if r.tid == tid || matches!(r.what, What::Lost(_)) { println!("      {} cpu {} {} {} {w}", r.at, taken.cpu, r.pid, r.tid); }
                        }
                        _ => {}
                    }
                }
            }
        }
    }
}
