//! Full disks: the program does not notice, and one line reports what is missing.

use std::process::Command;
use whole_programs::{Record, workloads};

/// Writes a recording that is larger than its room.
const MUCH: [&str; 5] = ["hostile", "--seconds", "2", "--seed", "7"];

#[test]
fn the_file_may_not_grow() {
    // 16 blocks of 512 or 1024 bytes, depending on the shell.
    let outcome =
        Record::new(workloads()).args(MUCH).before(&["sh", "-c", "ulimit -f 16; exec \"$@\"", "sh"]).run();
    assert!(outcome.stdout.contains("\"wrong\": 0"), "{}\n{}", outcome.stdout, outcome.stderr);
    assert_eq!(outcome.code(), 0, "{}", outcome.stderr);
    one_line_says_so(&outcome.stderr);
}

#[test]
fn the_file_is_a_full_device() {
    let outcome = Record::new(workloads()).args(["chain", "--seconds", "0.3"]).output("/dev/full").run();
    // Either refused before the program starts, or reported at the end.
    assert!(outcome.stdout.contains("\"workload\"") && outcome.code() == 0 || outcome.code() == 125);
    one_line_says_so(&outcome.stderr);
}

/// The flags of unshare(1) with which the words of a shell script that mounts something succeed, if any do.
fn mount_flags(script: &[&str]) -> Option<&'static str> {
    ["-m", "-Urm"].into_iter().find(|flags| {
        let probe = Command::new("unshare").args([flags, "sh", "-c"]).args(script).output();
        probe.is_ok_and(|output| output.status.success())
    })
}

/// A small disk if mounting is allowed, else a limit on file sizes.
#[test]
fn a_small_disk_is_full() {
    let mount = "mount -t tmpfs -o size=32k tmpfs \"$1\" && shift && exec \"$@\"";
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().display().to_string();
    let flags = mount_flags(&[mount, "sh", &place, "true"]);
    let record = Record::new(workloads()).args(MUCH);
    let outcome = match flags {
        Some(flags) => record
            .before(&["unshare", flags, "sh", "-c", mount, "sh", &place])
            .output(folder.path().join("host.glass"))
            .run(),
        None => record.before(&["sh", "-c", "ulimit -f 32; exec \"$@\"", "sh"]).run(),
    };
    assert!(outcome.stdout.contains("\"wrong\": 0"), "{}\n{}", outcome.stdout, outcome.stderr);
    assert_eq!(outcome.code(), 0, "{}", outcome.stderr);
    one_line_says_so(&outcome.stderr);
}

/// The disk with the session folder is full from the start.
#[test]
fn shared_memory_is_full() {
    let script = "mount -t tmpfs -o size=16k tmpfs /dev/shm && exec \"$@\"";
    let flags = mount_flags(&[script, "sh", "true"]);
    let record = Record::new(workloads()).args(["chain", "--seconds", "0.5"]);
    let outcome = match flags {
        Some(flags) => record.before(&["unshare", flags, "sh", "-c", script, "sh"]).run(),
        // Files of at most a few blocks: the stream cannot be created.
        None => record.before(&["sh", "-c", "ulimit -f 8; exec \"$@\"", "sh"]).run(),
    };
    assert!(outcome.stdout.contains("\"workload\": \"chain\""), "{}\n{}", outcome.stdout, outcome.stderr);
    assert_eq!(outcome.code(), 0, "{}", outcome.stderr);
    // Another disk is used, or one line reports that there is none.
    let whole =
        stackglass_files::read(&outcome.file).is_ok_and(|(recording, _)| recording.samples.len() > 10);
    assert!(whole || !outcome.lines_about("stackglass").is_empty(), "{}", outcome.stderr);
}

/// The lines of the command about it: one when it happens, and at most one with the report at the end.
#[track_caller]
fn one_line_says_so(stderr: &str) {
    let words = ["limit", "space", "full", "large", "write", "refused", "grow", "not a regular"];
    let info = |line: &&str| line.starts_with("stackglass: ") && words.iter().any(|word| line.contains(word));
    let lines: Vec<&str> = stderr.lines().filter(info).collect();
    assert!((1..=2).contains(&lines.len()), "one line says what happened:\n{stderr}");
}

/// What a program was run from is given back: its file system can be unmounted, and the space of a deleted executable is free.
#[test]
fn executables_do_not_stay_open() {
    const SCRIPT: &str = r#"
        mount -t tmpfs -o size=6m tmpfs "$1" || exit 3
        gzip=$(command -v gzip)
        for round in 1 2 3 4 5 6; do
            # Some megabytes that no other file has.
            { cat "$gzip"; head -c 2000000 /dev/zero; echo $round; } > "$1/program" || echo "no space in round $round"
            chmod +x "$1/program"
            head -c 20000000 /dev/zero | "$1/program" -c > /dev/null || echo "round $round failed"
            rm "$1/program"
            # A copy may be made at this moment.
            for wait in 1 2 3 4 5 6 7 8 9 10; do
                [ "$(df -k "$1" | awk 'END {print $3}')" -lt 100 ] && break
                sleep 0.1
            done
        done
        cp "$gzip" "$1/program" && head -c 20000000 /dev/zero | "$1/program" -c > /dev/null
        for wait in 1 2 3 4 5 6 7 8 9 10; do
            umount "$1" 2> /dev/null && echo unmounted && break
            sleep 0.1
        done
        sleep 0.1
    "#;
    let Some(flags) = mount_flags(&["mount -t tmpfs tmpfs /mnt"]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().display().to_string();
    let outcome = Record::new("sh").args(["-c", SCRIPT, "sh", &place]).before(&["unshare", flags]).run();
    assert_eq!((outcome.stdout.trim(), outcome.code()), ("unmounted", 0), "{}", outcome.stderr);
}
