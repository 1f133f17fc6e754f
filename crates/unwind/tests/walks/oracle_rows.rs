//! Every row of real unwind tables compared with gimli: CFA, `rbp` and return address.
//!
//! gimli is an independent reader of the same format, used by most Rust tools. The short rule is compared too; for that,
//! gimli evaluates the linker's PLT expression.

use crate::support::FileImage;
use gimli::{
    BaseAddresses, CfaRule, EhFrame, LittleEndian, RegisterRule, UnwindContext, UnwindSection, X86_64,
};
use stackglass_unwind::Scratch;
use stackglass_unwind::rules::{Cfa, Rule, Saved};
use std::path::{Path, PathBuf};

#[derive(Default, Debug)]
struct Count {
    rows: usize,
    different: Vec<String>,
    complex: usize,
}

/// Known differences, as (file name, row's address), with the reason. None.
const LISTED: &[(&str, u64)] = &[];

fn compare(path: &Path) -> Count {
    let image = FileImage::open(path);
    let eh_frame = EhFrame::new(&image.eh_frame.1, LittleEndian);
    let bases = BaseAddresses::default().set_eh_frame(image.eh_frame.0);
    let name = path.file_name().unwrap().to_str().unwrap();
    let mut scratch = Scratch::new();
    let mut context = UnwindContext::new();
    let mut count = Count::default();
    let mut entries = eh_frame.entries(&bases);
    while let Some(entry) = entries.next().unwrap() {
        let gimli::CieOrFde::Fde(partial) = entry else { continue };
        let fde = partial.parse(|section, bases, offset| section.cie_from_offset(bases, offset)).unwrap();
        if fde.len() == 0 {
            continue;
        }
        let mut table = fde.rows(&eh_frame, &bases, &mut context).unwrap();
        while let Some(row) = table.next_row().unwrap() {
            let (start, end) = (row.start_address(), row.end_address().min(fde.end_address()));
            if start >= end {
                continue;
            }
            count.rows += 1;
            for address in [start, end - 1] {
                let Some(ours) = scratch.row_at(&image.module, &image, address) else {
                    count.different.push(format!("{name} {address:#x}: no row"));
                    continue;
                };
                let expression = |e: &gimli::UnwindExpression<usize>| {
                    let start = image.eh_frame.0 + e.offset as u64;
                    start..start + e.length as u64
                };
                let cfa_equal = match (row.cfa(), ours.cfa) {
                    (CfaRule::RegisterAndOffset { register, offset }, Cfa::Offset(r, o)) => {
                        register.0 == u16::from(r) && *offset == i64::from(o)
                    }
                    (CfaRule::Expression(e), Cfa::Expression(o)) => expression(e) == o.range(&image.module),
                    _ => false,
                };
                let same = |theirs: Option<&RegisterRule<usize>>, ours: Saved| match (theirs, ours) {
                    (None | Some(RegisterRule::SameValue), Saved::Same) => true,
                    (Some(RegisterRule::Undefined), Saved::Undefined) => true,
                    (Some(RegisterRule::Offset(t)), Saved::At(o)) => *t == i64::from(o),
                    (Some(RegisterRule::ValOffset(t)), Saved::Value(o)) => *t == i64::from(o),
                    (Some(RegisterRule::Register(t)), Saved::Register(o)) => t.0 == u16::from(o),
                    (Some(RegisterRule::Expression(t)), Saved::AtExpression(o)) => {
                        expression(t) == o.range(&image.module)
                    }
                    (Some(RegisterRule::ValExpression(t)), Saved::ValueExpression(o)) => {
                        expression(t) == o.range(&image.module)
                    }
                    _ => false,
                };
                let theirs = |register| row.registers().find(|(r, _)| *r == register).map(|(_, rule)| rule);
                let equal = cfa_equal
                    && same(theirs(X86_64::RBP), ours.rbp())
                    && same(theirs(X86_64::RA), ours.return_address())
                    && ours.is_signal_frame == fde.is_signal_trampoline()
                    && ours.function == fde.initial_address();
                let listed = LISTED.contains(&(name, start));
                if !equal && !listed {
                    count.different.push(format!("{name} {address:#x}: {row:?} against {ours:?}"));
                }
                match scratch.rule_at(&image.module, &image, address) {
                    Rule::Frame { from_rbp, cfa, rbp } => {
                        let cfa_equal = match row.cfa() {
                            CfaRule::RegisterAndOffset { register, offset } => {
                                *register == if from_rbp { X86_64::RBP } else { X86_64::RSP }
                                    && *offset == i64::from(cfa) * 8
                            }
                            CfaRule::Expression(e) => {
                                !from_rbp && plt_distance(e, &eh_frame, address) == u64::from(cfa) * 8
                            }
                        };
                        let rbp_equal = match theirs(X86_64::RBP) {
                            None | Some(RegisterRule::SameValue) => rbp == 0,
                            Some(RegisterRule::Offset(o)) => rbp != 0 && *o == -8 * i64::from(rbp),
                            _ => false,
                        };
                        if !cfa_equal || !rbp_equal || theirs(X86_64::RA) != Some(&RegisterRule::Offset(-8)) {
                            count.different.push(format!("{name} {address:#x}: short rule against {row:?}"));
                        }
                    }
                    Rule::Outermost => {
                        if theirs(X86_64::RA) != Some(&RegisterRule::Undefined) {
                            count.different.push(format!("{name} {address:#x}: not the outermost: {row:?}"));
                        }
                    }
                    Rule::Missing => count.different.push(format!("{name} {address:#x}: no short rule")),
                    Rule::Complex => count.complex += 1,
                }
            }
        }
    }
    println!(
        "{}: {} rows, {} different, {} answers only by the complete row",
        path.display(),
        count.rows,
        count.different.len(),
        count.complex
    );
    count
}

/// CFA - rsp, evaluated by gimli.
fn plt_distance(
    expression: &gimli::UnwindExpression<usize>,
    eh_frame: &EhFrame<gimli::EndianSlice<'_, LittleEndian>>,
    pc: u64,
) -> u64 {
    const SP: u64 = 0x7000_0000_1000;
    let encoding = gimli::Encoding { address_size: 8, format: gimli::Format::Dwarf32, version: 3 };
    let mut evaluation = expression.get(eh_frame).unwrap().evaluation(encoding);
    let mut state = evaluation.evaluate().unwrap();
    loop {
        state = match state {
            gimli::EvaluationResult::Complete => break,
            gimli::EvaluationResult::RequiresRegister { register, .. } => {
                let value = if register == X86_64::RSP { SP } else { pc };
                evaluation.resume_with_register(gimli::Value::Generic(value)).unwrap()
            }
            other => panic!("an expression that needs {other:?} has no short rule"),
        };
    }
    match evaluation.result()[0].location {
        gimli::Location::Address { address } => address - SP,
        ref other => panic!("{other:?}"),
    }
}

fn check(path: &Path, at_least: usize) {
    let count = compare(path);
    assert!(
        count.different.is_empty(),
        "{} differences, first: {}",
        count.different.len(),
        count.different[0]
    );
    assert!(count.rows >= at_least, "{}: only {} rows", path.display(), count.rows);
}

/// The loaded file of this name.
fn loaded(part: &str) -> PathBuf {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let line = maps.lines().find(|l| l.contains(part)).unwrap_or_else(|| panic!("no {part} is loaded"));
    PathBuf::from(&line[line.find('/').unwrap()..])
}

#[test]
fn rows_of_the_c_library() {
    check(&loaded("/libc.so"), 10_000);
}

#[test]
fn rows_of_the_dynamic_linker() {
    check(&loaded("/ld-linux"), 1_000);
}

#[test]
fn rows_of_this_program() {
    check(&std::env::current_exe().unwrap(), 5_000);
}

#[test]
#[ignore = "long: every row of a large program; $STACKGLASS_RG or rg in PATH, else a C++ or Rust program at hand"]
fn rows_of_ripgrep() {
    let in_path = || {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path).map(|folder| folder.join("rg")).find(|file| file.is_file())
    };
    let other = || {
        let cargo = std::env::var_os("CARGO")?;
        Some(PathBuf::from(cargo))
    };
    let program = std::env::var_os("STACKGLASS_RG").map(PathBuf::from).or_else(in_path).or_else(other);
    check(&program.expect("rg, or cargo itself"), 20_000);
}
