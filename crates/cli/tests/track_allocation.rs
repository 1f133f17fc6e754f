//! `record --track-allocation`: the bytes of each source line of programs with known allocations.

use crate::support::{Place, stackglass, text};
use stackglass_files::mem::sum_mem;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs a compiler, or says that it is missing.
fn compile(compiler: &str, folder: &Path, arguments: &[&str]) {
    let output = Command::new(compiler).current_dir(folder).args(arguments).output().expect("a compiler");
    assert!(output.status.success(), "{}", text(&output.stderr));
}

/// The folder of the test, without links.
fn folder(place: &Place) -> PathBuf {
    place.path().canonicalize().unwrap()
}

const C: &str = "#include <stdlib.h>
#include <string.h>
/* allocates */
static void *keep(size_t n) {
    return malloc(n);
}
int main(int argc, char **argv) {
    for (int i = 0; i < 1000; i++)
        free(malloc(24));
    char *grown = malloc(100);
    grown = realloc(grown, 5000);
    char *copy = strdup(\"four\");
    if (argc > 90)
        keep(1);
    keep(300);
    keep(7);
    return !(grown && copy);
}";

/// Bytes by line.
const C_BYTES: [(usize, u64); 5] = [(5, 307), (9, 24_000), (10, 100), (11, 5_000), (12, 5)];

fn c_program(place: &Place) -> PathBuf {
    fs::create_dir(place.file("src")).unwrap();
    let source = folder(place).join("src/known.c");
    fs::write(&source, C).unwrap();
    compile("cc", &folder(place), &["-g", "-O0", "-fno-builtin", "-o", "known", source.to_str().unwrap()]);
    source
}

/// The files below a folder that end with `.mem`.
fn mem_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in folder.read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(mem_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "mem") {
            found.push(path);
        }
    }
    found
}

fn record(place: &Place, flags: &[&str], program: &str) -> String {
    let mut arguments = vec!["record", "-o", "r.glass"];
    arguments.extend(flags);
    arguments.extend(["--", program]);
    let output = place.run(arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stderr)
}

#[test]
fn a_c_program_has_its_bytes_beside_its_lines() {
    let place = Place::new();
    let source = c_program(&place);
    let said = record(&place, &["--track-allocation", "--no-time"], "./known");
    let files = mem_files(&folder(&place));
    assert_eq!(files.len(), 1, "{said}");
    assert!(said.contains(&format!("bytes by line in {}", files[0].display())), "{said}");
    let pid = place.recording("r.glass").processes[0].pid;
    assert_eq!(files[0], source.with_file_name(format!("known.c.{pid}.mem")));
    let written = fs::read_to_string(&files[0]).unwrap();
    assert!(written.ends_with("        0 }\n"), "{written}");
    for ((number, line), source) in (1..).zip(written.lines()).zip(C.lines()) {
        assert_eq!(&line[10..], source);
        assert_eq!(&line[9..10], " ");
        let expected = C_BYTES.iter().find(|(line, _)| *line == number).map_or(0, |(_, bytes)| *bytes);
        let has_code = ![1, 2, 3].contains(&number);
        match &line[..9] {
            "        -" => assert!(!has_code, "{number}: {line}"),
            bytes => assert_eq!(bytes.trim().parse(), Ok(expected), "{number}: {line}"),
        }
    }
    // A second run adds up.
    record(&place, &["--track-allocation=user", "--no-time", "-q"], "./known");
    let sums = sum_mem(&source, None).unwrap();
    for (line, bytes) in C_BYTES {
        assert_eq!(sums[line - 1], Some(2 * bytes), "{line}");
    }
}

#[test]
fn a_folder_and_a_path_choose() {
    let place = Place::new();
    let source = c_program(&place);
    let top = folder(&place);
    for (which, tracked) in [
        ("--track-allocation=@src", true),
        ("--track-allocation=@src/known.c", true),
        ("--track-allocation=@sr", false),
        ("--track-allocation=@src/known", false),
        ("--track-allocation=all", true),
    ] {
        let said = record(&place, &[which, "--mem-dir", "mem", "--no-time"], "./known");
        let mirrored = top.join("mem").join(source.strip_prefix("/").unwrap());
        if tracked {
            let files = mem_files(&top);
            assert!(files.iter().all(|file| file.starts_with(top.join("mem"))), "{which}: {files:?}");
            assert!(files.iter().any(|file| file.parent() == mirrored.parent()), "{which}: {said}");
            assert_eq!(sum_mem(&source, Some(&top.join("mem"))).unwrap()[4], Some(307), "{which}");
            fs::remove_dir_all(top.join("mem")).unwrap();
        } else {
            assert!(said.contains("no .mem file was written"), "{which}: {said}");
            assert!(mem_files(&top).is_empty());
        }
    }
    // The working folder is not above the source.
    fs::create_dir(place.file("elsewhere")).unwrap();
    let mut command = place.stackglass(["record", "--track-allocation", "--no-time", "--", "../known"]);
    assert!(command.current_dir(place.file("elsewhere")).output().unwrap().status.success());
    assert!(mem_files(&top).is_empty());
    let refused = place.run(["record", "--track-allocation=most", "--", "true"]);
    assert!(!refused.status.success() && text(&refused.stderr).contains("user, all or @PATH"));
    assert!(!place.run(["record", "--mem-dir", "mem", "--", "true"]).status.success());
}

#[test]
fn a_rust_program_is_charged_where_it_calls_the_library() {
    let place = Place::new();
    let source = folder(&place).join("known.rs");
    let code = "use std::hint::black_box;

fn grow(n: usize) -> Vec<u64> {
    Vec::with_capacity(n)
}

fn main() {
    for _ in 0..100 {
        black_box(grow(16));
    }
    let boxed = Box::new([7u8; 1000]);
    black_box(&boxed);
    let text = String::from(black_box(\"twelve bytes\"));
    black_box(text);
}
";
    fs::write(&source, code).unwrap();
    compile("rustc", &folder(&place), &["--edition=2024", "-g", "-O", source.to_str().unwrap()]);
    record(&place, &["--track-allocation"], "./known");
    let sums = sum_mem(&source, None).unwrap();
    assert_eq!((sums[3], sums[10], sums[12]), (Some(12_800), Some(1000), Some(12)), "{sums:?}");
    assert_eq!((sums[1], sums[5]), (None, None), "empty lines");
    assert_eq!(sums.iter().flatten().sum::<u64>(), 13_812);
    // The same recording shows the bytes beside the times.
    let annotated = place.stdout_of(&["annotate", "--file", "known.rs", "r.glass", "--all"]);
    let row = annotated.lines().find(|line| line.contains("Vec::with_capacity"));
    assert!(row.is_some_and(|row| row.contains("12.8 kB")), "{annotated}");
}

/// What was allocated before a request to forget it is in no line. `clear` also forgets the stacks of processes that have ended.
#[test]
fn what_was_cleared_is_not_counted() {
    let place = Place::new();
    fs::create_dir(place.file("src")).unwrap();
    let source = folder(&place).join("src/cleared.c");
    let text = format!(
        "#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(void) {{
    char command[300];
    char *before = malloc(5000);
    sprintf(command, \"sh -c true; {} clear %d\", getpid());
    int status = system(command);
    char *after = malloc(77);
    free(malloc(33));
    return !(before && after && status == 0);
}}",
        stackglass()
    );
    fs::write(&source, text).unwrap();
    compile("cc", &folder(&place), &["-g", "-O0", "-fno-builtin", "-o", "cleared", source.to_str().unwrap()]);
    record(&place, &["--track-allocation"], "./cleared");
    let sums = sum_mem(&source, None).unwrap();
    let charged: Vec<(usize, u64)> =
        (1..).zip(sums).filter_map(|(line, bytes)| Some((line, bytes.filter(|bytes| *bytes > 0)?))).collect();
    assert_eq!(charged, [(9, 77), (10, 33)]);
}
