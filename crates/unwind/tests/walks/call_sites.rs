//! The backward decoder of call instructions compared with a forward one (iced-x86), for every call of whole programs.

use crate::support::FileImage;
use gimli::{BaseAddresses, EhFrame, LittleEndian, UnwindSection};
use iced_x86::{Decoder, DecoderOptions, Mnemonic, OpKind, Register};
use stackglass_unwind::ModuleMemory;
use stackglass_unwind::call_site::{Call, LONGEST, before};
use std::path::Path;

/// Calls, calls decoded differently, and instruction boundaries that look like a call without being one.
#[derive(Default, Debug)]
struct Count {
    calls: usize,
    different: Vec<String>,
    other: usize,
    mistaken: usize,
}

fn compare(path: &Path) -> Count {
    let image = FileImage::open(path);
    let eh_frame = EhFrame::new(&image.eh_frame.1, LittleEndian);
    let bases = BaseAddresses::default().set_eh_frame(image.eh_frame.0);
    let mut count = Count::default();
    let mut entries = eh_frame.entries(&bases);
    while let Some(entry) = entries.next().unwrap() {
        let gimli::CieOrFde::Fde(partial) = entry else { continue };
        let fde = partial.parse(|section, bases, offset| section.cie_from_offset(bases, offset)).unwrap();
        let mut code = vec![0; fde.len() as usize];
        let len = image.read(&image.module, fde.initial_address(), &mut code);
        code.truncate(len);
        let mut decoder = Decoder::with_ip(64, &code, fde.initial_address(), DecoderOptions::NONE);
        while decoder.can_decode() {
            let instruction = decoder.decode();
            let end = (instruction.next_ip() - fde.initial_address()) as usize;
            let found = before(&code[end.saturating_sub(LONGEST)..end], instruction.next_ip(), |to| {
                image.module.is_executable(to)
            });
            if instruction.mnemonic() != Mnemonic::Call {
                count.other += 1;
                count.mistaken += usize::from(found.is_some());
                continue;
            }
            count.calls += 1;
            let truth = match instruction.op0_kind() {
                OpKind::NearBranch64 => Call::Direct(instruction.near_branch_target()),
                OpKind::Register => Call::Register,
                _ if instruction.memory_base() == Register::RIP => {
                    Call::Slot(instruction.memory_displacement64())
                }
                _ => Call::Memory,
            };
            if found != Some(truth) {
                count.different.push(format!("{:#x}: {found:?}, truly {truth:?}", instruction.next_ip()));
            }
        }
    }
    println!(
        "{}: {} calls, {} seen differently; {} of {} other places look like a call",
        path.display(),
        count.calls,
        count.different.len(),
        count.mistaken,
        count.other
    );
    count
}

#[test]
fn calls_of_this_program_and_the_c_library() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let libc = maps.lines().find(|l| l.contains("/libc.so")).expect("a C library");
    for path in [std::env::current_exe().unwrap().as_path(), Path::new(&libc[libc.find('/').unwrap()..])] {
        let count = compare(path);
        assert!(count.calls > 3000);
        // A longer instruction may end like a shorter call by chance: one in tens of thousands.
        assert!(count.different.len() * 20_000 <= count.calls, "{:?}", count.different);
        assert!(count.mistaken * 1000 <= count.other, "{} of {}", count.mistaken, count.other);
    }
}
