//! Records the images anew, after a program has changed: needs compilers, and a kernel that lets processes be traced.
//!
//! An image is written only if what is read of it is what was read of the process.

use super::graph::Graph;
use super::programs::{ALL, Program, TASKS};
use super::tasks;
use stackglass_attach::frozen::{FrozenProcess, Options};
use stackglass_inspect::core_image;
use stackglass_process_view::core_image::CoreImage;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use stored_images::{Noted, Opened, StoredImage, without_code};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("stored")
}

/// A program that is killed at the end.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// All that must be equal in a process and in its image.
fn facts(program: &Program, image: &CoreImage) -> Vec<String> {
    match program.image == TASKS.image {
        true => tasks::facts(image),
        false => Graph::read(image).expect("the heap is read").facts(),
    }
}

fn record(program: &Program) -> StoredImage {
    let folder = tempfile::tempdir().unwrap();
    let executable = program.build(&folder.path().canonicalize().unwrap());
    let mut command = Command::new(&executable);
    command.env_clear().stdout(Stdio::null());
    // C++ has buffers that are easily kept from the heap, Rust's standard error has none.
    let is_cpp = program.source.ends_with(".cpp");
    let child = match is_cpp {
        true => command.stdout(Stdio::piped()).spawn(),
        false => command.stderr(Stdio::piped()).spawn(),
    };
    let mut running = Running(child.unwrap());
    let output: Box<dyn std::io::Read> = match is_cpp {
        true => Box::new(running.0.stdout.take().unwrap()),
        false => Box::new(running.0.stderr.take().unwrap()),
    };
    let lines = BufReader::new(output).lines().map(Result::unwrap).take_while(|line| line != "ready");
    let said: String = lines.map(|line| line + "\n").collect();
    // It goes to sleep.
    std::thread::sleep(Duration::from_millis(500));
    let process = FrozenProcess::copy(running.0.id(), &Options::default()).expect("it can be copied");
    let noted = Noted::default();
    let image = noted.note(core_image::from_frozen(&process));
    let found = facts(program, &image);
    assert!(process.is_alive() && !found.is_empty());
    let stored = StoredImage {
        program: image.executable.clone(),
        mappings: image.mappings.clone(),
        threads: image.threads.clone(),
        pages: noted.pages(&image),
        file: without_code(std::fs::read(&executable).unwrap()),
        source: std::fs::read_to_string(program.path()).unwrap(),
        said,
    };
    let opened = Opened::new(stored.clone());
    let again = facts(program, &opened.image());
    let (found, again) = (found.into_iter().collect::<BTreeSet<_>>(), again.into_iter().collect());
    let differences: Vec<_> = found.symmetric_difference(&again).collect();
    assert!(differences.is_empty(), "{}: {differences:#?}", program.image);
    stored
}

#[test]
#[ignore = "long: records the images anew"]
fn record_all() {
    for program in &ALL {
        let stored = record(program);
        let bytes = stored.encode();
        eprintln!(
            "{}: {} bytes; {} pages, a file of {} bytes",
            program.image,
            bytes.len(),
            stored.pages.len(),
            stored.file.len()
        );
        // Without a request, it only checks that it could.
        if std::env::var_os("RECORD_IMAGES").is_some() {
            std::fs::write(folder().join(program.image), bytes).unwrap();
        }
    }
}

/// An image of another program proves nothing of this one. Else: see CONTRIBUTING.md.
#[test]
fn images_are_small_and_of_these_programs() {
    for program in &ALL {
        let stored = StoredImage::read(program.image);
        let source = std::fs::read_to_string(program.path()).unwrap();
        assert!(stored.source == source, "{} is the image of another {}", program.image, program.source);
        let bytes = folder().join(program.image).metadata().unwrap().len();
        assert!(bytes <= program.most_bytes, "{}: {bytes} bytes", program.image);
    }
}
