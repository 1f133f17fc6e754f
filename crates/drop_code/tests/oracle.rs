//! The processor is the oracle: random instructions are executed by it and by the interpreter, and the results compared.
#![allow(unsafe_code, reason = "executes random instructions")]

use iced_x86::{Decoder, DecoderOptions};
use stackglass_drop_code::instructions::{Flow, execute};
use stackglass_drop_code::machine::{Machine, Register};
use stackglass_process_view::core_image::{CoreImage, Memory};
use stackglass_process_view::pages::Pages;

/// Cases of each instruction.
const CASES: u64 = 300;
/// Flags that decide jumps: carry, zero, sign, overflow.
const CARRY: u64 = 1;
const ZERO: u64 = 1 << 6;
const SIGN: u64 = 1 << 7;
const OVERFLOW: u64 = 1 << 11;
/// Bytes of memory that instructions may change.
const SCRATCH: usize = 64;

/// What the processor starts and ends with. `rdi` points to the middle of the scratch memory.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct State {
    rax: u64,
    rcx: u64,
    rdx: u64,
    rsi: u64,
    rdi: u64,
    r8: u64,
    flags: u64,
    xmm0: u128,
    xmm1: u128,
}

/// Memory of this process at one moment.
struct Bytes(u64, Vec<u8>);

impl Memory for Bytes {
    fn read(&self, address: u64, into: &mut [u8]) -> usize {
        let (begin, bytes) = (self.0, &self.1);
        for (at, byte) in into.iter_mut().enumerate() {
            let index = (address + at as u64).wrapping_sub(begin) as usize;
            *byte = bytes.get(index).copied().unwrap_or(0);
        }
        into.len()
    }
}

/// A function that loads the state, executes one instruction, and stores the state.
#[repr(C)]
struct Function {
    call: unsafe extern "C" fn(*mut State),
    /// Address of the instruction.
    begin: usize,
    /// Address behind it.
    end: usize,
}

impl Function {
    fn instruction(&self) -> &'static [u8] {
        // SAFETY: both lie in the program's code, `end` not before `begin`.
        unsafe { std::slice::from_raw_parts(self.begin as *const u8, self.end - self.begin) }
    }

    fn call(&self, state: &mut State) {
        // SAFETY: the function keeps the registers that it must keep, and touches only the state and the scratch memory to which
        // `rdi` points.
        unsafe { (self.call)(state) }
    }
}

macro_rules! instructions {
    ($($text:literal)*) => {
        /// The instructions, in the order of their functions.
        const INSTRUCTIONS: &[&str] = &[$($text),*];

        std::arch::global_asm!(
            ".macro oracle_function instruction:vararg",
            ".Lfunction\\@:",
            "push rbx",
            "mov rbx, rdi",
            "movups xmm0, xmmword ptr [rbx + {xmm0}]",
            "movups xmm1, xmmword ptr [rbx + {xmm1}]",
            "push qword ptr [rbx + {flags}]",
            "popfq",
            "mov rax, qword ptr [rbx]",
            "mov rcx, qword ptr [rbx + 8]",
            "mov rdx, qword ptr [rbx + 16]",
            "mov rsi, qword ptr [rbx + 24]",
            "mov rdi, qword ptr [rbx + 32]",
            "mov r8, qword ptr [rbx + 40]",
            ".Lbegin\\@:",
            "\\instruction",
            ".Lend\\@:",
            "mov qword ptr [rbx], rax",
            "mov qword ptr [rbx + 8], rcx",
            "mov qword ptr [rbx + 16], rdx",
            "mov qword ptr [rbx + 24], rsi",
            "mov qword ptr [rbx + 32], rdi",
            "mov qword ptr [rbx + 40], r8",
            "pushfq",
            "pop qword ptr [rbx + {flags}]",
            "movups xmmword ptr [rbx + {xmm0}], xmm0",
            "movups xmmword ptr [rbx + {xmm1}], xmm1",
            "pop rbx",
            "ret",
            ".pushsection .data.rel.ro.oracle, \"aw\", @progbits",
            ".quad .Lfunction\\@, .Lbegin\\@, .Lend\\@",
            ".popsection",
            ".endm",
            ".pushsection .data.rel.ro.oracle, \"aw\", @progbits",
            ".balign 8",
            "oracle_functions:",
            ".popsection",
            $(concat!("oracle_function ", $text),)*
            xmm0 = const std::mem::offset_of!(State, xmm0),
            xmm1 = const std::mem::offset_of!(State, xmm1),
            flags = const std::mem::offset_of!(State, flags),
        );
    };
}

unsafe extern "C" {
    #[link_name = "oracle_functions"]
    static FUNCTIONS: [Function; INSTRUCTIONS.len()];
}

instructions! {
    "add rax, rcx" "add eax, ecx" "add ax, cx" "add al, cl" "add ah, cl" "add al, dh"
    "add rax, -5" "add eax, -5" "add ax, 0x7fff" "add al, 0x7f"
    "add rax, qword ptr [rdi]" "add eax, dword ptr [rdi + 3]" "add word ptr [rdi], cx" "add byte ptr [rdi + 1], cl"
    "add qword ptr [rdi - 8], 1" "add qword ptr [rdi + r8 * 2], rcx"
    "sub rax, rcx" "sub eax, ecx" "sub ax, cx" "sub al, cl" "sub rax, rax" "sub eax, 1" "sub qword ptr [rdi], 0x40"
    "sub dword ptr [rdi + 4], ecx" "sub rax, qword ptr [rdi + 5]"
    "cmp rax, rcx" "cmp eax, ecx" "cmp ax, cx" "cmp al, cl" "cmp rax, -1" "cmp byte ptr [rdi], 3" "cmp qword ptr [rdi], 0"
    "cmp dword ptr [rdi], ecx" "cmp eax, 0x80000000"
    "inc rax" "inc eax" "inc al" "inc dword ptr [rdi]" "dec rcx" "dec cx" "dec qword ptr [rdi + 8]"
    "neg rax" "neg eax" "neg cl" "not rdx" "not edx" "not byte ptr [rdi]"
    "and rax, rcx" "and eax, 7" "and al, cl" "and rax, -64" "and dword ptr [rdi], ecx" "and rcx, qword ptr [rdi]"
    "or rax, rcx" "or ecx, 1" "or cl, dl" "or qword ptr [rdi], 2" "or byte ptr [rdi], cl"
    "xor rax, rcx" "xor eax, eax" "xor ecx, edx" "xor al, 1" "xor qword ptr [rdi], rax" "xor rdx, qword ptr [rdi]"
    "test rax, rax" "test eax, ecx" "test al, 1" "test cl, cl" "test byte ptr [rdi], 4" "test dword ptr [rdi], 0x80000000"
    "shl rax, 3" "shl eax, 31" "shl cl, 1" "shl rax, cl" "shl edx, cl" "shr rax, 7" "shr eax, 1" "shr ax, 3" "shr rdx, cl"
    "shr al, cl" "sar rax, 63" "sar eax, 4" "sar dx, cl" "sar al, 1" "shl qword ptr [rdi], 1" "shr dword ptr [rdi], cl"
    "imul rax, rcx" "imul eax, ecx" "imul ax, cx" "imul rax, rcx, -3" "imul edx, dword ptr [rdi], 1000"
    "mov rax, rcx" "mov eax, ecx" "mov ax, cx" "mov al, ch" "mov ah, cl" "movabs rax, -7" "mov ecx, 5" "mov cl, 0x90"
    "mov rax, qword ptr [rdi]" "mov eax, dword ptr [rdi + 1]" "mov byte ptr [rdi], dl" "mov qword ptr [rdi + 8], -2"
    "mov word ptr [rdi], 7" "mov dword ptr [rdi + 2], ecx"
    "movzx eax, cl" "movzx rax, cx" "movzx eax, byte ptr [rdi]" "movzx rcx, word ptr [rdi]" "movzx ax, cl" "movzx eax, ch"
    "movsx eax, cl" "movsx rax, cx" "movsx rax, byte ptr [rdi]" "movsx ax, cl" "movsxd rax, ecx" "movsxd rdx, dword ptr [rdi]"
    "lea rax, [rcx + rdx * 4 + 9]" "lea eax, [rcx - 1]" "lea ax, [rcx + rdx]" "lea rax, [ecx + edx]"
    "xchg rax, rcx" "xchg eax, edx" "xchg qword ptr [rdi], rcx" "xchg byte ptr [rdi], cl" "xchg al, ah"
    "xadd qword ptr [rdi], rcx" "xadd dword ptr [rdi], edx" "xadd rax, rcx" "xadd rax, rax"
    "cmpxchg qword ptr [rdi], rcx" "cmpxchg dword ptr [rdi], edx" "cmpxchg byte ptr [rdi], cl" "cmpxchg rdx, rcx"
    "bt rax, rcx" "bt eax, 5" "bt ecx, edx" "bt qword ptr [rdi], 5" "bt ax, cx"
    "tzcnt rax, rcx" "tzcnt eax, ecx" "bsf rax, rcx"
    "cdqe" "cmove rax, rcx" "cmovne eax, ecx" "cmovb rax, qword ptr [rdi]" "cmovg ecx, edx" "cmovle rdx, rcx" "cmovs eax, edx"
    "cmova ax, cx" "cmovo eax, edx" "cmovae rcx, rax" "cmovbe ecx, eax" "cmovl rcx, rdx" "cmovge rdx, rcx" "cmovns rdx, rcx"
    "sete al" "setne cl" "setb byte ptr [rdi]" "setg ah" "setbe dl" "setl al" "setae al" "seta cl" "setge cl" "setle cl" "sets dl"
    "setns dl" "seto al" "setno al"
    "movups xmm0, xmmword ptr [rdi]" "movups xmmword ptr [rdi], xmm1" "movaps xmm0, xmm1" "movdqu xmm1, xmmword ptr [rdi - 16]"
    "movq xmm0, rax" "movq rcx, xmm1" "movq qword ptr [rdi], xmm0" "movq xmm1, qword ptr [rdi]" "movd xmm0, ecx" "movd eax, xmm1"
    "movd dword ptr [rdi], xmm1" "movd xmm0, dword ptr [rdi]" "xorps xmm0, xmm0" "pxor xmm1, xmm1" "xorps xmm0, xmm1"
    "pcmpeqb xmm0, xmm1" "pcmpeqb xmm0, xmmword ptr [rdi]" "pcmpeqb xmm1, xmm1" "pmovmskb eax, xmm0"
    // Not interpreted: their results must be unknown, not wrong.
    "adc rax, rcx" "sbb rax, rcx" "sbb eax, eax" "rol rax, 5" "ror ecx, cl" "bswap rax" "mul rcx" "div cl" "cqo" "cdq" "cwde"
    "bsr rax, rcx" "popcnt rax, rcx" "lzcnt eax, ecx" "shld rax, rcx, 5" "shrd eax, edx, cl" "btc eax, ecx" "bts qword ptr [rdi], 3"
    "btr rax, 7" "paddq xmm0, xmm1" "pshufd xmm0, xmm1, 0x4e" "punpcklqdq xmm0, xmm1" "movhlps xmm0, xmm1" "movss xmm0, xmm1"
    "movsd xmm0, xmm1" "movlps xmm0, qword ptr [rdi]" "movhps qword ptr [rdi], xmm1" "por xmm0, xmm1" "pand xmm0, xmm1"
    "cmpxchg16b xmmword ptr [rdi - 16]" "lahf" "sahf" "stc" "clc" "cmc" "movnti qword ptr [rdi], rcx" "crc32 eax, ecx"
    "xchg ax, cx" "movbe rax, qword ptr [rdi]" "imul rcx" "cwd" "movsb" "nop" "endbr64" "mfence"
}

/// Numbers that look random, with many that are at the edges.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut number = self.0;
        number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        number ^ number >> 31
    }

    fn value(&mut self) -> u64 {
        let number = self.next();
        match number % 8 {
            0 => [0, 1, u64::MAX, 1 << 63, 1 << 31, 0x7fff_ffff, 0xffff_ffff, 0x80, 0xff, 0x8000]
                [(number >> 8) as usize % 10],
            1 => number >> 8 & 0xff,
            2 => (number >> 8) & 0xffff_ffff,
            _ => self.next(),
        }
    }
}

#[test]
fn the_processor_agrees() {
    let mut numbers = Numbers(0x5eed);
    let (mut known, mut all_results, mut stopped) = (0u64, 0u64, 0u64);
    let mut wrong: Vec<String> = Vec::new();
    // SAFETY: the table is as long as the list from which it is made, and never changes.
    let functions = unsafe { &FUNCTIONS };
    for (name, native) in INSTRUCTIONS.iter().zip(functions) {
        let is_division = name.starts_with("div");
        let is_string = name.starts_with("movsb");
        let code = native.instruction();
        let decoded = Decoder::with_ip(64, code, native.begin as u64, DecoderOptions::NONE).decode();
        assert!(!decoded.is_invalid() && decoded.len() == code.len(), "{name}");
        for _ in 0..CASES {
            #[repr(align(64))]
            struct Aligned([u8; SCRATCH]);
            let mut scratch = Aligned([0; SCRATCH]);
            scratch
                .0
                .chunks_exact_mut(8)
                .for_each(|word| word.copy_from_slice(&numbers.value().to_le_bytes()));
            let before = scratch.0.to_vec();
            let middle = scratch.0.as_ptr() as u64 + 32;
            let mut state = State {
                rax: numbers.value(),
                rcx: if is_division { numbers.value() | 0xff } else { numbers.value() },
                rdx: numbers.value(),
                rsi: middle,
                rdi: middle,
                r8: numbers.next() % 3,
                flags: 0x202 | numbers.next() & (CARRY | ZERO | SIGN | OVERFLOW),
                xmm0: u128::from(numbers.value()) << 64 | u128::from(numbers.value()),
                xmm1: u128::from(numbers.value()) << 64 | u128::from(numbers.value()),
            };
            if is_division {
                state.rax &= 0xff;
            }
            if numbers.next().is_multiple_of(3) && !is_division {
                // Compare-and-exchange succeeds now and then.
                state.rax = u64::from_le_bytes(before[32..40].try_into().expect("8 bytes"));
            }
            let image = CoreImage {
                pid: 1,
                executable: String::new(),
                mappings: Vec::new(),
                threads: Vec::new(),
                memory: Box::new(Bytes(middle - 32, before)),
            };
            let pages = Pages::new(&image);
            let mut machine = Machine::new(&pages, None);
            let start = state;
            for (number, value) in [
                (0, start.rax),
                (1, start.rcx),
                (2, start.rdx),
                (6, start.rsi),
                (7, start.rdi),
                (8, start.r8),
            ] {
                machine.registers[number] = Register::from_value(value);
            }
            machine.vectors[0] = Some(start.xmm0);
            machine.vectors[1] = Some(start.xmm1);
            let flag = |flag: u64| Some(start.flags & flag != 0);
            machine.flags.carry = flag(CARRY);
            machine.flags.zero = flag(ZERO);
            machine.flags.sign = flag(SIGN);
            machine.flags.overflow = flag(OVERFLOW);
            match execute(&mut machine, &decoded) {
                Ok(Flow::Next) => {}
                Ok(flow) => panic!("{name}: {flow:?}"),
                Err(_) => {
                    stopped += 1;
                    assert!(is_string || name.contains("bt"), "{name} stops");
                    continue;
                }
            }
            native.call(&mut state);
            let mut compare = |what: &str, found: Option<u128>, expected: u128| {
                all_results += 1;
                known += u64::from(found.is_some());
                if found.is_some_and(|found| found != expected) {
                    let of = |wrong: &&String| wrong.starts_with(&format!("{name}: {what} "));
                    if wrong.iter().filter(of).count() < 2 {
                        wrong.push(format!("{name}: {what} is {found:x?}, not {expected:x}; {start:x?}"));
                    }
                }
            };
            let registers = [
                ("rax", 0, state.rax),
                ("rcx", 1, state.rcx),
                ("rdx", 2, state.rdx),
                ("rsi", 6, state.rsi),
                ("rdi", 7, state.rdi),
                ("r8", 8, state.r8),
            ];
            for (what, number, value) in registers {
                for byte in 0..8 {
                    let expected = value >> (byte * 8) & 0xff;
                    compare(what, machine.registers[number].part(byte, 1).map(u128::from), expected.into());
                }
            }
            compare("xmm0", machine.vectors[0], state.xmm0);
            compare("xmm1", machine.vectors[1], state.xmm1);
            let flags = machine.flags;
            for (what, bit, found) in [
                ("carry", CARRY, flags.carry),
                ("zero", ZERO, flags.zero),
                ("sign", SIGN, flags.sign),
                ("overflow", OVERFLOW, flags.overflow),
            ] {
                compare(what, found.map(u128::from), u128::from(state.flags & bit != 0));
            }
            for (number, byte) in scratch.0.iter().enumerate() {
                let found = machine.load(middle - 32 + number as u64, 1).expect("it is readable");
                compare("memory", found, u128::from(*byte));
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong results: {}", wrong.len(), wrong.join("\n"));
    assert!(
        known * 100 >= all_results * 97,
        "only {known} of {all_results} results are known, {stopped} stopped"
    );
}
