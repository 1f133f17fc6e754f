//! Where recordings go: rights, what is replaced and what is left alone, which is the latest.

use crate::support::*;
use stackglass_files::{GlassWriter, ReadError, WriteError, latest, read, write};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime};

#[test]
fn only_its_owner_may_read_a_recording() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.glass");
    let recording = beginning("prog");
    let writer = GlassWriter::create(&path, &recording.info).unwrap();
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    drop(writer);
    // An older one that others may read is replaced, not filled.
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    write(&path, &recording).unwrap();
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(folder.path().read_dir().unwrap().count(), 1, "nothing is left behind");
}

#[test]
fn other_files_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("main.rs");
    fs::write(&path, "fn main() {}").unwrap();
    let recording = beginning("prog");
    let error = GlassWriter::create(&path, &recording.info).err().unwrap();
    assert!(matches!(error, WriteError::NotOurs { .. }), "{error}");
    assert!(matches!(write(&path, &recording), Err(WriteError::NotOurs { .. })));
    assert_eq!(fs::read_to_string(&path).unwrap(), "fn main() {}");
    let missing = folder.path().join("no/such/folder/x.glass");
    assert!(matches!(GlassWriter::create(missing, &recording.info), Err(WriteError::Create { .. })));
    assert!(matches!(GlassWriter::create(folder.path(), &recording.info), Err(WriteError::Create { .. })));
    assert_eq!(folder.path().read_dir().unwrap().count(), 1, "nothing is left behind");
}

#[test]
fn a_link_leads_to_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let (link, target) = (folder.path().join("link.glass"), folder.path().join("target.glass"));
    let recording = beginning("prog");
    write(&target, &beginning("older")).unwrap();
    symlink(&target, &link).unwrap();
    write(&link, &recording).unwrap();
    assert!(link.symlink_metadata().unwrap().is_symlink());
    assert_eq!(read(&target).unwrap().0.info, recording.info);
}

#[test]
fn an_old_recording_stays_until_the_new_one_has_begun() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.glass");
    write(&path, &beginning("older")).unwrap();
    let still_open = fs::File::open(&path).unwrap();
    let _writer = GlassWriter::create(&path, &beginning("newer").info).unwrap();
    assert_eq!(read(&path).unwrap().0.info.command[0], "newer");
    // Whoever reads the old one is not disturbed.
    let (old, completeness) = stackglass_files::read_from(still_open).unwrap();
    assert!(completeness.is_complete());
    assert_eq!(old.info.command[0], "older");
}

#[test]
fn a_device_is_written_to_and_a_full_one_says_so() {
    GlassWriter::create("/dev/null", &beginning("prog").info).unwrap().finish(&beginning("prog")).unwrap();
    let error = GlassWriter::create("/dev/full", &beginning("prog").info).err().unwrap().to_string();
    assert!(error.contains("free some space"), "{error}");
}

#[test]
fn errors_name_the_file_and_what_is_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.glass");
    let say = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        read(&path).unwrap_err().to_string()
    };
    assert!(
        say(b"\x7fELF\x02\x01\x01\0 and more")
            .contains(r#"x.glass is not a recording: at byte 0 it says "\x7fELF"#)
    );
    assert!(say(b"\x8eGLASS\r\n\x02\0\0\0\0\0\0\0").contains("version 2 (at byte 8)"));
    assert!(say(b"").contains("is empty"));
    assert!(matches!(read(folder.path()), Err(ReadError::Open { .. })));
    assert!(matches!(read(folder.path().join("none")), Err(ReadError::Open { .. })));
}

#[test]
fn the_latest_is_the_one_written_to_last() {
    let folder = tempfile::tempdir().unwrap();
    let of = |folder: &Path| latest(folder, |why| panic!("{why} passed over"));
    assert_eq!(of(folder.path()).unwrap(), None);
    write(folder.path().join("b.glass"), &beginning("prog")).unwrap();
    for name in ["a.glass", "c.glass", "newer.txt"] {
        fs::copy(folder.path().join("b.glass"), folder.path().join(name)).unwrap();
    }
    let age = |name: &str, age: u64| {
        let path = folder.path().join(name);
        let time = SystemTime::now() - Duration::from_secs(age * 60);
        fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    };
    for (name, minutes) in [("b.glass", 5), ("a.glass", 3), ("c.glass", 4), ("newer.txt", 0)] {
        age(name, minutes);
    }
    fs::create_dir(folder.path().join("folder.glass")).unwrap();
    assert_eq!(of(folder.path()).unwrap(), Some(folder.path().join("a.glass")));
    assert!(of(&folder.path().join("none")).is_err());
    // What is no recording hides none.
    for (name, bytes, minutes) in
        [("empty.glass", &b""[..], 1), ("odd.glass", b"x", 2), ("z.glass", b"old", 9)]
    {
        fs::write(folder.path().join(name), bytes).unwrap();
        age(name, minutes);
    }
    let mut said = Vec::new();
    let found = latest(folder.path(), |why| said.push(why.to_string())).unwrap();
    assert_eq!(found, Some(folder.path().join("a.glass")));
    assert!(said.len() == 2 && said[0].contains("is empty") && said[1].contains("odd.glass"), "{said:?}");
}
