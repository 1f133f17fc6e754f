//! The walker compared with a shadow stack, at every single instruction of a running program.
//!
//! ptrace steps the program. A call pushes its return address and the address of its stack slot; the entry ends when the
//! stack pointer is above the slot. A signal pushes the interrupted address. After every step, the walker reads the memory
//! and modules of the process, and must give exactly these addresses.
#![allow(unsafe_code, reason = "calls the C library")]

use iced_x86::{Decoder, DecoderOptions, Mnemonic};
use stackglass_unwind::memory::{ProcessStack, read_process};
use stackglass_unwind::modules::OwnedModuleList;
use stackglass_unwind::rules::Rule;
use stackglass_unwind::{
    Cut, End, Module, ModuleMemory, Registers, RuleTable, Scratch, StackMemory, Walk, Walker,
};
use std::collections::{BTreeMap, HashMap};
use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The modules of the process, copied whenever its mappings change, since a million walks read them.
#[derive(Default)]
struct Images {
    bytes: Vec<(u64, Vec<u8>)>,
    /// Rules by build id, also of modules that are not mapped any more.
    rules: HashMap<Vec<u8>, RuleTable>,
}

impl ModuleMemory for Images {
    fn read(&self, _: &Module, address: u64, into: &mut [u8]) -> usize {
        for (start, bytes) in &self.bytes {
            if let Some(rest) = address.checked_sub(*start).and_then(|from| bytes.get(from as usize..)) {
                let len = rest.len().min(into.len());
                into[..len].copy_from_slice(&rest[..len]);
                return len;
            }
        }
        0
    }

    fn file_rules(&self, module: &Module) -> Option<(&RuleTable, u64)> {
        Some((self.rules.get(module.build_id())?, module.bias()))
    }
}

/// A copy of the stack from the stack pointer up, as in perf events, without values that were just popped.
struct FromSp<'a> {
    stack: ProcessStack<'a>,
    sp: u64,
}

impl StackMemory for FromSp<'_> {
    fn read_u64(&mut self, address: u64) -> Option<u64> {
        let popped = self.sp.saturating_sub(4096)..self.sp;
        (!popped.contains(&address)).then(|| self.stack.read_u64(address)).flatten()
    }
}

/// The expected frame of a caller.
#[derive(Clone, Copy, Debug)]
struct Entry {
    lookup: u64,
    /// Address of the return address; the entry is valid while rsp is not above.
    slot: u64,
}

struct Instruction {
    next: u64,
    mnemonic: Mnemonic,
}

struct Stepper {
    pid: i32,
    modules: OwnedModuleList,
    images: Images,
    table: RuleTable,
    decoded: HashMap<u64, Instruction>,
    shadow: Vec<Entry>,
    /// Frames at the start of the comparison.
    base: Vec<u64>,
}

/// The result of a run.
#[derive(Default, Debug)]
struct Outcome {
    steps: u64,
    deepest: usize,
    signals: u64,
    /// By address: how often the walk was cut at code without unwind rules, with right frames up to there. These
    /// exceptions are start and exit code in assembly (`_start` of `ld.so`, `_init`, `_fini`) and code of the compiler's
    /// crtbegin.o (`__do_global_dtors_aux`, `deregister_tm_clones`, `frame_dummy`).
    without_rules: BTreeMap<String, u64>,
    /// By address: how often, and an example.
    wrong: BTreeMap<String, (u64, String)>,
    exit: i32,
}

impl Stepper {
    fn registers(&self) -> libc::user_regs_struct {
        // SAFETY: the structure is plain numbers, which the kernel fills for the stopped child.
        unsafe {
            let mut regs: libc::user_regs_struct = std::mem::zeroed();
            assert_eq!(libc::ptrace(libc::PTRACE_GETREGS, self.pid, 0, &raw mut regs), 0);
            regs
        }
    }

    fn load_modules(&mut self) {
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", self.pid)).unwrap();
        let mut list = OwnedModuleList::new().unwrap();
        let mut end = 0;
        for line in maps.lines() {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let [range, rights, offset, _, _, path] = fields[..] else { continue };
            let start = u64::from_str_radix(range.split_once('-').unwrap().0, 16).unwrap();
            let image = path.starts_with('/') || path == "[vdso]";
            if !image || !rights.starts_with('r') || offset != "00000000" || start < end {
                continue;
            }
            if let Some(module) = Module::from_image(start, |at, into| read_process(self.pid, at, into)) {
                end = module.range().end;
                list.push(module, path.as_bytes());
            }
        }
        list.finish(None);
        for module in list.iter().filter(|module| !module.build_id().is_empty()) {
            assert!(self.images.rules.entry(module.build_id().to_vec()).or_default().reserve());
        }
        self.images.bytes = list
            .iter()
            .map(|module| {
                let mut bytes = vec![0; (module.range().end - module.range().start) as usize];
                let len = read_process(self.pid, module.range().start, &mut bytes);
                bytes.truncate(len);
                (module.range().start, bytes)
            })
            .collect();
        self.modules = list;
        self.table = RuleTable::new();
        assert!(self.table.reserve());
        self.decoded.clear();
    }

    fn instruction(&mut self, pc: u64) -> &Instruction {
        let pid = self.pid;
        self.decoded.entry(pc).or_insert_with(|| {
            let mut bytes = [0u8; 16];
            let len = read_process(pid, pc, &mut bytes);
            let instruction = Decoder::with_ip(64, &bytes[..len], pc, DecoderOptions::NONE).decode();
            Instruction { next: instruction.next_ip(), mnemonic: instruction.mnemonic() }
        })
    }

    fn walk(&mut self, regs: &libc::user_regs_struct, out: &mut [u64]) -> (usize, End) {
        let mut buffer = [0u8; 4096];
        let mut stack = ProcessStack::new(self.pid, &mut buffer);
        let walk = self.walk_in(regs, Some(&self.table), &mut stack, out);
        (walk.len, walk.end)
    }

    /// Whether a walk of a copy of the stack from the stack pointer up, with the rules of files, is equal.
    fn same_from_sp(&self, regs: &libc::user_regs_struct, frames: &[u64], end: End) -> bool {
        let mut buffer = [0u8; 4096];
        let mut out = [0u64; 512];
        let mut stack = FromSp { stack: ProcessStack::new(self.pid, &mut buffer), sp: regs.rsp };
        let walk = self.walk_in(regs, None, &mut stack, &mut out);
        (&out[..walk.len], walk.end) == (frames, end)
    }

    fn walk_in(
        &self,
        regs: &libc::user_regs_struct,
        table: Option<&RuleTable>,
        stack: &mut impl StackMemory,
        out: &mut [u64],
    ) -> Walk {
        let (modules, memory, scratch) = (&self.modules, &self.images, &mut Scratch::new());
        Walker { modules, table, memory, scratch }.walk(&Registers::of_stopped(regs), stack, out)
    }

    fn place(&self, pc: u64) -> String {
        match self.modules.find(pc) {
            Some(module) => {
                let path = String::from_utf8_lossy(self.modules.path(module)).into_owned();
                format!("{}+{:#x}", path.rsplit('/').next().unwrap(), pc - module.bias())
            }
            None => format!("{pc:#x}"),
        }
    }

    /// Compares at the current instruction.
    fn check(&mut self, regs: &libc::user_regs_struct, outcome: &mut Outcome) {
        let mut out = [0u64; 512];
        let (len, end) = self.walk(regs, &mut out);
        if !self.same_from_sp(regs, &out[..len], end) {
            let entry = outcome.wrong.entry(self.place(regs.rip)).or_default();
            entry.0 += 1;
            entry.1 = "not the same from a copy that begins at sp".into();
            return;
        }
        let wanted = self.shadow.iter().rev().map(|e| e.lookup).chain(self.base.iter().copied());
        outcome.deepest = outcome.deepest.max(len);
        if end == End::Complete && out[0] == regs.rip && out[1..len].iter().copied().eq(wanted.clone()) {
            return;
        }
        let prefix = out[1..len].iter().copied().zip(wanted.clone()).all(|(ours, truth)| ours == truth);
        if end == End::Cut(Cut::NoRule) && out[0] == regs.rip && prefix && len <= self.shadow.len() + 1 {
            let last = out[..len].iter().find(|a| {
                let module = self.modules.find(**a);
                module.is_some_and(|m| Scratch::new().rule_at(m, &self.images, **a) == Rule::Missing)
            });
            if let Some(last) = last {
                *outcome.without_rules.entry(self.place(*last)).or_default() += 1;
                return;
            }
        }
        let got: Vec<String> = out[1..len].iter().map(|a| self.place(*a)).collect();
        let wanted: Vec<String> = wanted.map(|a| self.place(a)).collect();
        let entry = outcome.wrong.entry(self.place(regs.rip)).or_default();
        entry.0 += 1;
        entry.1 = format!("{end:?}\n   got    {got:?}\n   wanted {wanted:?}");
    }

    fn step(&mut self, signal: i32) -> i32 {
        // SAFETY: the stopped child of this process.
        unsafe {
            assert_eq!(libc::ptrace(libc::PTRACE_SINGLESTEP, self.pid, 0, signal as usize), 0);
            let mut status = 0;
            assert_eq!(libc::waitpid(self.pid, &raw mut status, 0), self.pid);
            status
        }
    }

    fn run(&mut self, limit: u64) -> Outcome {
        let mut outcome = Outcome::default();
        let mut signal = 0;
        let mut regs = self.registers();
        while outcome.steps < limit {
            let before = regs;
            let (next, mnemonic) = {
                let i = self.instruction(regs.rip);
                (i.next, i.mnemonic)
            };
            let status = self.step(signal);
            if libc::WIFEXITED(status) {
                outcome.exit = libc::WEXITSTATUS(status);
                return outcome;
            }
            assert!(libc::WIFSTOPPED(status), "the program died: {status:#x}");
            outcome.steps += 1;
            regs = self.registers();
            if signal != 0 {
                // Now at the handler's first instruction; on top of its stack the trampoline's address.
                let mut trampoline = [0u8; 8];
                assert_eq!(read_process(self.pid, regs.rsp, &mut trampoline), 8);
                self.shadow.push(Entry { lookup: before.rip, slot: regs.rsp + 8 });
                self.shadow.push(Entry { lookup: u64::from_le_bytes(trampoline), slot: regs.rsp });
                outcome.signals += 1;
            } else if mnemonic == Mnemonic::Call {
                self.shadow.push(Entry { lookup: next - 1, slot: regs.rsp });
            }
            if let Some(top) = self.shadow.last_mut()
                && signal == 0
            {
                if mnemonic == Mnemonic::Pop && top.slot == before.rsp {
                    top.slot += 8; // vfork takes its return address into a register, and puts it back later
                } else if mnemonic == Mnemonic::Ret && top.lookup + 1 == regs.rip {
                    self.shadow.pop();
                }
            }
            while self.shadow.last().is_some_and(|e| e.slot < regs.rsp) {
                self.shadow.pop();
            }
            let changes_mappings =
                [libc::SYS_mmap, libc::SYS_munmap, libc::SYS_mprotect].contains(&(before.rax as i64));
            if mnemonic == Mnemonic::Syscall && signal == 0 && changes_mappings {
                self.load_modules();
            }
            signal = match libc::WSTOPSIG(status) {
                // No handler exists for the end of a child, so it is not passed on.
                libc::SIGTRAP | libc::SIGCHLD => 0,
                other => other,
            };
            self.check(&regs, &mut outcome);
        }
        // SAFETY: a child of this process; it is reaped.
        unsafe {
            libc::kill(self.pid, libc::SIGKILL);
            libc::waitpid(self.pid, std::ptr::null_mut(), 0);
        }
        outcome
    }
}

/// Compiles the program with its library into `folder`.
fn build(folder: &Path) -> PathBuf {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let cc = |arguments: &[&str]| {
        let status = Command::new("cc").args(arguments).current_dir(folder).status();
        assert!(status.expect("cc, the C compiler that also links Rust programs").success(), "{arguments:?}");
    };
    let common = ["-O2", "-g", "-fomit-frame-pointer"];
    let library = sources.join("stepped_library.c");
    let program = sources.join("stepped.c");
    let mut arguments = common.to_vec();
    arguments.extend(["-shared", "-fPIC", "-o", "libstepped.so", library.to_str().unwrap()]);
    cc(&arguments);
    let mut arguments = common.to_vec();
    let rpath = format!("-Wl,-rpath,{}", folder.display());
    arguments.extend(["-o", "stepped", program.to_str().unwrap(), "-L.", "-lstepped", "-Wl,-z,lazy", &rpath]);
    cc(&arguments);
    folder.join("stepped")
}

/// Starts a program, stopped at its first instruction.
fn start(program: &Path, rounds: u64) -> Stepper {
    let path = CString::new(program.to_str().unwrap()).unwrap();
    let rounds = CString::new(rounds.to_string()).unwrap();
    let arguments = [path.as_ptr(), rounds.as_ptr(), std::ptr::null()];
    let environment = [std::ptr::null()];
    // SAFETY: between fork and exec the child makes system calls only.
    let pid = unsafe {
        let pid = libc::fork();
        if pid == 0 {
            libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0);
            libc::execve(path.as_ptr(), arguments.as_ptr(), environment.as_ptr());
            libc::_exit(127);
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(pid, &raw mut status, 0), pid);
        assert!(libc::WIFSTOPPED(status));
        libc::ptrace(libc::PTRACE_SETOPTIONS, pid, 0, libc::PTRACE_O_EXITKILL);
        pid
    };
    let mut stepper = Stepper {
        pid,
        modules: OwnedModuleList::new().unwrap(),
        images: Images::default(),
        table: RuleTable::new(),
        decoded: HashMap::new(),
        shadow: Vec::new(),
        base: Vec::new(),
    };
    stepper.load_modules();
    stepper
}

fn report(outcome: &Outcome) {
    let wrong: u64 = outcome.wrong.values().map(|w| w.0).sum();
    println!(
        "{} instructions, {} signals, deepest stack {}, {wrong} wrong at {} places",
        outcome.steps,
        outcome.signals,
        outcome.deepest,
        outcome.wrong.len()
    );
    let without: u64 = outcome.without_rules.values().sum();
    println!("{without} times in code without rules: {:?}", outcome.without_rules.keys());
    assert!(without * 1000 <= outcome.steps);
    for (place, (times, example)) in outcome.wrong.iter().take(40) {
        println!("{place}: {times} times, last: {example}");
    }
}

/// Runs to the breakpoint at full speed; the frames there are assumed.
fn go_to_breakpoint(stepper: &mut Stepper) {
    // SAFETY: the stopped child of this process.
    unsafe {
        assert_eq!(libc::ptrace(libc::PTRACE_CONT, stepper.pid, 0, 0), 0);
        let mut status = 0;
        assert_eq!(libc::waitpid(stepper.pid, &raw mut status, 0), stepper.pid);
        assert_eq!(libc::WSTOPSIG(status), libc::SIGTRAP);
    }
    stepper.load_modules();
    let mut out = [0u64; 64];
    let regs = stepper.registers();
    let (len, end) = stepper.walk(&regs, &mut out);
    assert_eq!(end, End::Complete, "from {}: {out:x?}", stepper.place(regs.rip));
    stepper.base = out[1..len].to_vec();
}

#[test]
fn every_instruction_from_main_on() {
    let folder = tempfile::tempdir().unwrap();
    let mut stepper = start(&build(folder.path()), 1000);
    go_to_breakpoint(&mut stepper);
    assert!(stepper.base.len() >= 2, "below main the C library's start, and _start");
    let outcome = stepper.run(50_000);
    report(&outcome);
    assert_eq!(outcome.steps, 50_000);
    assert!(outcome.signals > 0 && outcome.deepest > 20);
    assert!(outcome.wrong.is_empty());
}

/// A program that aborts on panic, optimised over all crates: its unwind tables exist and are right.
fn build_aborting(folder: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/aborting.rs");
    let program = folder.join("aborting");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let status = Command::new(rustc)
        .args(["--edition", "2024", "-Copt-level=3", "-Cpanic=abort", "-Clto=fat", "-o"])
        .args([&program, &source])
        .status();
    assert!(status.expect("rustc").success());
    program
}

#[test]
#[ignore = "long: links a program with the standard library, and fifty thousand instructions of it"]
fn every_instruction_of_a_program_that_aborts_on_panic() {
    let folder = tempfile::tempdir().unwrap();
    let mut stepper = start(&build_aborting(folder.path()), 1000);
    go_to_breakpoint(&mut stepper);
    let outcome = stepper.run(50_000);
    report(&outcome);
    assert!(outcome.steps == 50_000 && outcome.deepest > 20);
    assert!(outcome.wrong.is_empty());
}

#[test]
#[ignore = "long: a million instructions, from the dynamic linker's first to the exit"]
fn every_instruction_of_a_whole_life() {
    let folder = tempfile::tempdir().unwrap();
    let mut stepper = start(&build(folder.path()), 120);
    let outcome = stepper.run(u64::MAX);
    report(&outcome);
    assert!(outcome.steps >= 1_000_000, "only {} instructions", outcome.steps);
    assert_eq!(outcome.exit, 7, "the program ran as it does alone");
    assert!(outcome.wrong.is_empty());
}

#[test]
#[ignore = "long: a million instructions of an optimised Rust program"]
fn every_instruction_of_a_whole_life_in_rust() {
    let folder = tempfile::tempdir().unwrap();
    let mut stepper = start(&build_aborting(folder.path()), 40);
    let outcome = stepper.run(u64::MAX);
    report(&outcome);
    assert!(outcome.steps >= 1_000_000, "only {} instructions", outcome.steps);
    assert_eq!(outcome.exit, 7, "the program ran as it does alone");
    assert!(outcome.wrong.is_empty());
}
