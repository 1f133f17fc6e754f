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
