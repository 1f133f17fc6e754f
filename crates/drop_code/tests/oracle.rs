//! The processor is the oracle: random instructions are executed by it and by the interpreter, and the results compared.
#![allow(unsafe_code)]

use iced_x86::code_asm::*;
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

/// Executable memory with one function.
struct Function(*mut libc::c_void);

const PAGE: usize = 4096;

impl Function {
    fn new(code: &[u8]) -> Function {
        assert!(code.len() <= PAGE);
        let protection = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping, which nothing else uses; its size is checked above.
        unsafe {
            let at = libc::mmap(std::ptr::null_mut(), PAGE, protection, flags, -1, 0);
            assert_ne!(at, libc::MAP_FAILED);
            std::ptr::copy_nonoverlapping(code.as_ptr(), at.cast(), code.len());
            Function(at)
        }
    }

    fn call(&self, state: &mut State) {
        // SAFETY: the mapping holds a function of this type, made by `function`: it keeps the registers that it must keep, and
        // touches only the state and the scratch memory to which `rdi` points.
        unsafe {
            let function: extern "C" fn(*mut State) = std::mem::transmute(self.0);
            function(state);
        }
    }
}

impl Drop for Function {
    fn drop(&mut self) {
        // SAFETY: the mapping of `new`, of the same size.
        unsafe { libc::munmap(self.0, PAGE) };
    }
}

/// A function that loads the state, executes one instruction, and stores the state. Also where the instruction is in it.
fn function(instruction: &dyn Fn(&mut CodeAssembler)) -> (Vec<u8>, usize, usize) {
    let build = |parts: u8| {
        let mut code = CodeAssembler::new(64).expect("64 bits are supported");
        let mut all = || -> Result<(), iced_x86::IcedError> {
            code.push(rbx)?;
            code.mov(rbx, rdi)?;
            code.movups(xmm0, xmmword_ptr(rbx + std::mem::offset_of!(State, xmm0)))?;
            code.movups(xmm1, xmmword_ptr(rbx + std::mem::offset_of!(State, xmm1)))?;
            code.push(qword_ptr(rbx + std::mem::offset_of!(State, flags)))?;
            code.popfq()?;
            code.mov(rax, qword_ptr(rbx))?;
            code.mov(rcx, qword_ptr(rbx + 8))?;
            code.mov(rdx, qword_ptr(rbx + 16))?;
            code.mov(rsi, qword_ptr(rbx + 24))?;
            code.mov(rdi, qword_ptr(rbx + 32))?;
            code.mov(r8, qword_ptr(rbx + 40))?;
            if parts >= 1 {
                instruction(&mut code);
            }
            if parts >= 2 {
                code.mov(qword_ptr(rbx), rax)?;
                code.mov(qword_ptr(rbx + 8), rcx)?;
                code.mov(qword_ptr(rbx + 16), rdx)?;
                code.mov(qword_ptr(rbx + 24), rsi)?;
                code.mov(qword_ptr(rbx + 32), rdi)?;
                code.mov(qword_ptr(rbx + 40), r8)?;
                code.pushfq()?;
                code.pop(qword_ptr(rbx + std::mem::offset_of!(State, flags)))?;
                code.movups(xmmword_ptr(rbx + std::mem::offset_of!(State, xmm0)), xmm0)?;
                code.movups(xmmword_ptr(rbx + std::mem::offset_of!(State, xmm1)), xmm1)?;
                code.pop(rbx)?;
                code.ret()?;
            }
            Ok(())
        };
        all().expect("the instructions exist");
        code.assemble(0x1000).expect("it can be encoded")
    };
    (build(2), build(0).len(), build(1).len())
}

type Instruction = (&'static str, Box<dyn Fn(&mut CodeAssembler)>);

macro_rules! instructions {
    ($($name:ident($($operand:expr),*);)*) => {
        vec![$((
            concat!(stringify!($name), " ", stringify!($($operand),*)),
            Box::new(|code: &mut CodeAssembler| code.$name($($operand),*).expect("it exists")) as Box<dyn Fn(&mut CodeAssembler)>,
        )),*]
    };
}

fn all() -> Vec<Instruction> {
    instructions! {
        add(rax, rcx); add(eax, ecx); add(ax, cx); add(al, cl); add(ah, cl); add(al, dh);
        add(rax, -5i32); add(eax, -5i32); add(ax, 0x7fff); add(al, 0x7f);
        add(rax, qword_ptr(rdi)); add(eax, dword_ptr(rdi + 3)); add(word_ptr(rdi), cx); add(byte_ptr(rdi + 1), cl);
        add(qword_ptr(rdi - 8), 1); add(qword_ptr(rdi + r8 * 2), rcx);
        sub(rax, rcx); sub(eax, ecx); sub(ax, cx); sub(al, cl); sub(rax, rax); sub(eax, 1); sub(qword_ptr(rdi), 0x40);
        sub(dword_ptr(rdi + 4), ecx); sub(rax, qword_ptr(rdi + 5));
        cmp(rax, rcx); cmp(eax, ecx); cmp(ax, cx); cmp(al, cl); cmp(rax, -1); cmp(byte_ptr(rdi), 3); cmp(qword_ptr(rdi), 0);
        cmp(dword_ptr(rdi), ecx); cmp(eax, 0x8000_0000u32);
        inc(rax); inc(eax); inc(al); inc(dword_ptr(rdi)); dec(rcx); dec(cx); dec(qword_ptr(rdi + 8));
        neg(rax); neg(eax); neg(cl); not(rdx); not(edx); not(byte_ptr(rdi));
        and(rax, rcx); and(eax, 7); and(al, cl); and(rax, -64); and(dword_ptr(rdi), ecx); and(rcx, qword_ptr(rdi));
        or(rax, rcx); or(ecx, 1); or(cl, dl); or(qword_ptr(rdi), 2); or(byte_ptr(rdi), cl);
        xor(rax, rcx); xor(eax, eax); xor(ecx, edx); xor(al, 1); xor(qword_ptr(rdi), rax); xor(rdx, qword_ptr(rdi));
        test(rax, rax); test(eax, ecx); test(al, 1); test(cl, cl); test(byte_ptr(rdi), 4); test(dword_ptr(rdi), 0x8000_0000u32);
        shl(rax, 3); shl(eax, 31); shl(cl, 1); shl(rax, cl); shl(edx, cl); shr(rax, 7); shr(eax, 1); shr(ax, 3); shr(rdx, cl);
        shr(al, cl); sar(rax, 63); sar(eax, 4); sar(dx, cl); sar(al, 1); shl(qword_ptr(rdi), 1); shr(dword_ptr(rdi), cl);
        imul_2(rax, rcx); imul_2(eax, ecx); imul_2(ax, cx); imul_3(rax, rcx, -3); imul_3(edx, dword_ptr(rdi), 1000);
        mov(rax, rcx); mov(eax, ecx); mov(ax, cx); mov(al, ch); mov(ah, cl); mov(rax, -7i64); mov(ecx, 5); mov(cl, 0x90);
        mov(rax, qword_ptr(rdi)); mov(eax, dword_ptr(rdi + 1)); mov(byte_ptr(rdi), dl); mov(qword_ptr(rdi + 8), -2);
        mov(word_ptr(rdi), 7); mov(dword_ptr(rdi + 2), ecx);
        movzx(eax, cl); movzx(rax, cx); movzx(eax, byte_ptr(rdi)); movzx(rcx, word_ptr(rdi)); movzx(ax, cl); movzx(eax, ch);
        movsx(eax, cl); movsx(rax, cx); movsx(rax, byte_ptr(rdi)); movsx(ax, cl); movsxd(rax, ecx); movsxd(rdx, dword_ptr(rdi));
        lea(rax, qword_ptr(rcx + rdx * 4 + 9)); lea(eax, qword_ptr(rcx - 1)); lea(ax, qword_ptr(rcx + rdx)); lea(rax, dword_ptr(ecx + edx));
        xchg(rax, rcx); xchg(eax, edx); xchg(qword_ptr(rdi), rcx); xchg(byte_ptr(rdi), cl); xchg(al, ah);
        xadd(qword_ptr(rdi), rcx); xadd(dword_ptr(rdi), edx); xadd(rax, rcx); xadd(rax, rax);
        cmpxchg(qword_ptr(rdi), rcx); cmpxchg(dword_ptr(rdi), edx); cmpxchg(byte_ptr(rdi), cl); cmpxchg(rdx, rcx);
        bt(rax, rcx); bt(eax, 5); bt(ecx, edx); bt(qword_ptr(rdi), 5); bt(ax, cx);
        tzcnt(rax, rcx); tzcnt(eax, ecx); bsf(rax, rcx);
        cdqe(); cmove(rax, rcx); cmovne(eax, ecx); cmovb(rax, qword_ptr(rdi)); cmovg(ecx, edx); cmovle(rdx, rcx); cmovs(eax, edx);
        cmova(ax, cx); cmovo(eax, edx); cmovae(rcx, rax); cmovbe(ecx, eax); cmovl(rcx, rdx); cmovge(rdx, rcx); cmovns(rdx, rcx);
        sete(al); setne(cl); setb(byte_ptr(rdi)); setg(ah); setbe(dl); setl(al); setae(al); seta(cl); setge(cl); setle(cl); sets(dl);
        setns(dl); seto(al); setno(al);
        movups(xmm0, xmmword_ptr(rdi)); movups(xmmword_ptr(rdi), xmm1); movaps(xmm0, xmm1); movdqu(xmm1, xmmword_ptr(rdi - 16));
        movq(xmm0, rax); movq(rcx, xmm1); movq(qword_ptr(rdi), xmm0); movq(xmm1, qword_ptr(rdi)); movd(xmm0, ecx); movd(eax, xmm1);
        movd(dword_ptr(rdi), xmm1); movd(xmm0, dword_ptr(rdi)); xorps(xmm0, xmm0); pxor(xmm1, xmm1); xorps(xmm0, xmm1);
        pcmpeqb(xmm0, xmm1); pcmpeqb(xmm0, xmmword_ptr(rdi)); pcmpeqb(xmm1, xmm1); pmovmskb(eax, xmm0);
        // Not interpreted: their results must be unknown, not wrong.
        adc(rax, rcx); sbb(rax, rcx); sbb(eax, eax); rol(rax, 5); ror(ecx, cl); bswap(rax); mul(rcx); div(cl); cqo(); cdq(); cwde();
        bsr(rax, rcx); popcnt(rax, rcx); lzcnt(eax, ecx); shld(rax, rcx, 5); shrd(eax, edx, cl); btc(eax, ecx); bts(qword_ptr(rdi), 3);
        btr(rax, 7); paddq(xmm0, xmm1); pshufd(xmm0, xmm1, 0x4e); punpcklqdq(xmm0, xmm1); movhlps(xmm0, xmm1); movss(xmm0, xmm1);
        movsd_2(xmm0, xmm1); movlps(xmm0, qword_ptr(rdi)); movhps(qword_ptr(rdi), xmm1); por(xmm0, xmm1); pand(xmm0, xmm1);
        cmpxchg16b(xmmword_ptr(rdi - 16)); lahf(); sahf(); stc(); clc(); cmc(); movnti(qword_ptr(rdi), rcx); crc32(eax, ecx);
        xchg(ax, cx); movbe(rax, qword_ptr(rdi)); imul(rcx); cwd(); movsb(); nop(); endbr64(); mfence();
    }
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
    for (name, instruction) in all() {
        let is_division = name.starts_with("div");
        let is_string = name.starts_with("movsb");
        let (code, begin, end) = function(&*instruction);
        let native = Function::new(&code);
        let mut decoder =
            Decoder::with_ip(64, &code[begin..end], 0x1000 + begin as u64, DecoderOptions::NONE);
        let decoded = decoder.decode();
        assert!(!decoded.is_invalid() && decoded.len() == end - begin, "{name}");
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
