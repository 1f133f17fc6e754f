//! The lines with code, in a C program and a Rust program.

use crate::program::Program;
use stackglass_profile::Recording;
use stackglass_profile::recording::Module;
use stackglass_symbols::{Options, code_lines};
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use std::sync::Arc;

/// The lines of a source with code in these files.
fn lines_of(source: &str, programs: &[&std::path::Path]) -> BTreeSet<u64> {
    let mut recording = Recording::default();
    for program in programs {
        recording.intern_module(Module { path: program.to_str().unwrap().into(), build_id: [].into() });
    }
    let files: [Arc<str>; 2] = [source.into(), "/no/such/file.rs".into()];
    let mut lines = code_lines(&recording, &Options::default(), &files);
    assert!(lines.len() <= 1);
    lines.remove(source).unwrap_or_default()
}

#[test]
fn statements_have_code_and_comments_have_not() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let source = root.join("a.c");
    fs::write(
        &source,
        "/* one */\nint f(int n) {\n\n  n += 2;\n  return n;\n}\nint main(void) {\n  return f(1);\n}\n",
    )
    .unwrap();
    for flags in [&["-gdwarf-4"][..], &["-gdwarf-5"], &["-g1"], &["-g", "-gsplit-dwarf"]] {
        let program = root.join("program");
        let built = Command::new("cc")
            .current_dir(&root)
            .args(["-O0", "-o", "program", "./a.c"])
            .args(flags)
            .status();
        assert!(built.is_ok_and(|status| status.success()));
        let lines = lines_of(source.to_str().unwrap(), &[&program, "/bin/true".as_ref(), "/none".as_ref()]);
        assert_eq!(lines, [2, 4, 5, 6, 7, 8, 9].into(), "{flags:?}");
    }
    assert!(lines_of(source.to_str().unwrap(), &["/bin/true".as_ref()]).is_empty());
}

#[test]
fn innermost_lines_have_code() {
    let program = Program::rust(&["-g"]);
    let lines = lines_of(program.source.to_str().unwrap(), &[&program.path]);
    for place in ["method", "closure"] {
        let innermost = program.says(place).lines[0];
        assert!(lines.contains(&(innermost as u64)), "{innermost} of {lines:?}");
    }
    let text = fs::read_to_string(&program.source).unwrap();
    for (line, text) in (1..).zip(text.lines()) {
        let is_comment = text.trim().is_empty() || text.trim().starts_with("//");
        assert!(!is_comment || !lines.contains(&line), "{line}: {text}");
    }
}
