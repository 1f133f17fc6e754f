//! Cost of the crate for its program, measured inside the program.
//!
//! * `pairs N`: N rounds of three equal blocks of work at 10 kHz: not sampled, sampled with an empty handler, and sampled.
//!   The blocks of a round alternate, so that other load on the machine affects all equally.
//! * `task-poll N`: the additional time of a poll if the future is a task.

mod task_poll;

use serde_json::{Value, json};
use stackglass_sampler::{Config, set_empty_handler};
use std::process::ExitCode;
use std::time::Duration;
use workloads::chain::links;
use workloads::clock::thread_cpu;

/// Chains of 20 calls in a block: about 130 ms.
const BLOCK: u32 = 600_000;

/// Time between two samples, ns: 10 kHz.
const DELAY: u64 = 100_000;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let answer = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["pairs", rounds] => match rounds.parse() {
            Ok(rounds) => pairs(rounds),
            Err(_) => return usage(),
        },
        ["task-poll", rounds] => match rounds.parse() {
            Ok(rounds) => task_poll::rounds(rounds),
            Err(_) => return usage(),
        },
        _ => return usage(),
    };
    println!("{answer}");
    ExitCode::SUCCESS
}

fn usage() -> ExitCode {
    eprintln!("in-process pairs N | in-process task-poll N");
    ExitCode::from(2)
}

/// How a block is sampled.
#[derive(Clone, Copy)]
enum Way {
    Plain,
    Empty,
    Whole,
}

const WAYS: [(Way, &str); 3] = [(Way::Plain, "plain_ns"), (Way::Empty, "empty_ns"), (Way::Whole, "whole_ns")];

fn pairs(rounds: usize) -> Value {
    for (way, _) in WAYS {
        block(way);
    }
    let rounds: Vec<Value> = (0..rounds)
        .map(|round| {
            let mut times = serde_json::Map::new();
            for i in 0..WAYS.len() {
                let (way, key) = WAYS[(i + round) % WAYS.len()];
                times.insert(key.into(), json!(block(way)));
            }
            Value::Object(times)
        })
        .collect();
    json!({"rounds": rounds})
}

/// CPU time of this thread for one block, ns.
fn block(way: Way) -> u64 {
    set_empty_handler(matches!(way, Way::Empty));
    let sampling = match way {
        Way::Plain => None,
        Way::Empty | Way::Whole => {
            let config = Config { delay_ns: DELAY, ..Config::default() };
            Some(stackglass_sampler::start(config).expect("sampling starts"))
        }
    };
    // The start is measured elsewhere.
    std::thread::sleep(Duration::from_millis(10));
    links(BLOCK / 20);
    let before = thread_cpu();
    links(BLOCK);
    let cpu = thread_cpu() - before;
    if let Some(sampling) = sampling {
        sampling.stop();
    }
    cpu.as_nanos() as u64
}
