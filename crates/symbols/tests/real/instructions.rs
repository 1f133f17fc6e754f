//! Instructions of a C program against objdump, and files that are not those of the recording.

use crate::program::run;
use stackglass_profile::recording::Module;
use stackglass_profile::{Location, Nanos, Recording, Sample, State, ThreadNumber};
use stackglass_symbols::disassembly::Why;
use stackglass_symbols::{Options, disassembly};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

const SOURCE: &str = "#include <stdio.h>\n\
                      static inline unsigned half(unsigned x) {\n  return x / 7;\n}\n\
                      __attribute__((noinline)) unsigned hot(unsigned n, unsigned by) {\n\
                      \x20 unsigned sum = 0;\n\
                      \x20 for (unsigned i = 1; i < n; i++)\n\
                      \x20   sum += n / (by + i) + half(i);\n\
                      \x20 return sum;\n}\n\
                      int main(int argc, char **argv) {\n  return puts(hot(1000, argc) ? \"a\" : \"b\") < 0;\n}\n";

fn built(folder: &Path, flags: &[&str]) -> PathBuf {
    let source = folder.join("hot.c");
    fs::write(&source, SOURCE).unwrap();
    let program = folder.join("hot");
    run(Command::new("cc").args(["-O2", "-g"]).args(flags).arg("-o").arg(&program).arg(&source));
    program
}

/// Address and mnemonic of each instruction by function, as objdump says.
fn objdump(program: &Path) -> BTreeMap<String, Vec<(u64, String)>> {
    let text = run(Command::new("objdump").args(["-d", "--no-show-raw-insn", "-M", "intel"]).arg(program));
    let mut functions: BTreeMap<String, Vec<(u64, String)>> = BTreeMap::new();
    let mut name = String::new();
    for line in text.lines() {
        if let Some((_, after)) = line.split_once(" <").filter(|_| line.ends_with(">:")) {
            name = after.trim_end_matches(">:").to_owned();
        } else if let Some((address, code)) = line.split_once(":\t") {
            let address = u64::from_str_radix(address.trim(), 16).unwrap();
            functions
                .entry(name.clone())
                .or_default()
                .push((address, code.split_whitespace().next().unwrap().to_owned()));
        }
    }
    functions
}

/// A recording with a sample of 1 ms at each of these addresses of a module.
fn recording(path: &Path, build_id: Arc<[u8]>, addresses: &[u64]) -> Recording {
    let mut recording = Recording::default();
    recording.info.started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    let module = Some(recording.intern_module(Module { path: path.to_str().unwrap().into(), build_id }));
    for offset in addresses {
        let leaf = recording.stacks.intern_location(Location { module, offset: *offset });
        recording.samples.push(Sample {
            stack: recording.stacks.intern(&[leaf]),
            thread: ThreadNumber(1),
            task: 0,
            clock: Nanos(1),
            state: State::Awake,
            cut: None,
            hits: 1,
            time: Nanos(1_000_000),
            spread: Nanos(0),
        });
    }
    recording
}

#[test]
fn instructions_are_those_of_objdump_with_lines_of_inlined_functions() {
    let folder = tempfile::tempdir().unwrap();
    let program = built(&folder.path().canonicalize().unwrap(), &[]);
    let theirs = objdump(&program);
    let starts: Vec<u64> = ["hot", "main"].iter().map(|name| theirs[*name][0].0).collect();
    let code = disassembly(
        &recording(&program, [].into(), &[starts[0], starts[0] + 1, starts[1]]),
        &Options::default(),
    );
    assert!(code.left.is_empty(), "{:?}", code.left);
    let of: Vec<u64> = code.functions.iter().map(|function| function.addresses.start).collect();
    assert_eq!(of, starts, "the one with most time comes first");
    for (name, function) in ["hot", "main"].iter().zip(&code.functions) {
        let ours: Vec<(u64, String)> = function
            .instructions
            .iter()
            .map(|code| (code.address, code.text.split_whitespace().next().unwrap().to_owned()))
            .collect();
        // objdump goes on through the padding behind.
        assert_eq!(ours, theirs[*name][..ours.len()], "{name}");
    }
    let hot = &code.functions[0].instructions;
    let division = hot.iter().find(|code| code.text.starts_with("div ")).expect("there is no way around it");
    assert_eq!((division.line, &*division.function), (8, "hot"), "{division:?}");
    assert!(division.file.ends_with("/hot.c"));
    assert!(hot.iter().any(|code| (code.line, &*code.function) == (3, "half")), "{hot:?}");
    let main = &code.functions[1].instructions;
    assert!(
        main.iter().any(|code| code.text.starts_with("call ") && code.text.ends_with(" hot")),
        "{main:?}"
    );
    assert!(main.iter().any(|code| code.text.ends_with(" puts")), "through the linker's table: {main:?}");
}

#[test]
fn only_the_recorded_files_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let program = built(&folder.path().canonicalize().unwrap(), &["-Wl,--build-id=none"]);
    let address = objdump(&program)["hot"][0].0;
    let why = |recording: &Recording| {
        let code = disassembly(recording, &Options::default());
        assert!(code.functions.is_empty());
        code.left.into_iter().map(|(_, why, time)| (why, time)).collect::<Vec<_>>()
    };
    let other_id = recording(&program, [1; 20].into(), &[address]);
    assert_eq!(why(&other_id), [(Why::Changed, 1_000_000)]);
    let mut older = recording(&program, [].into(), &[address]);
    older.info.started -= 3_600_000_000_000;
    assert_eq!(why(&older), [(Why::Changed, 1_000_000)]);
    assert_eq!(
        why(&recording(Path::new("/no/such/file"), [].into(), &[address])),
        [(Why::NotFound, 1_000_000)]
    );
    assert_eq!(
        why(&recording(Path::new("/etc/passwd"), [].into(), &[address])),
        [(Why::NotFound, 1_000_000)]
    );
    assert_eq!(why(&recording(&program, [].into(), &[0xdead_0000])), [(Why::NoFunction, 1_000_000)]);
    let mut asleep = recording(&program, [].into(), &[address]);
    asleep.samples[0].state = State::Asleep;
    assert_eq!(why(&asleep), []);
    // Code of another CPU: EM_AARCH64.
    let mut bytes = fs::read(&program).unwrap();
    bytes[18] = 183;
    fs::write(&program, bytes).unwrap();
    assert_eq!(why(&recording(&program, [].into(), &[address])), [(Why::OtherMachine, 1_000_000)]);
}
