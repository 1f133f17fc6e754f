//! Reports to a path: what is not a file keeps its place, links stay links, and nobody's files suffer.

use stackglass_profile::{Data, Dictionary};
use stackglass_report::Report;
use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::process::Command;

#[test]
fn pipes_and_links_stay() {
    let folder = std::env::temp_dir().join(format!("stackglass-paths-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let data = Data::new(vec![16, 1, 7, 100, 1, 0, 0]);
    let dictionary = Dictionary::new();
    let write = |name: &str| Report::new().c(true).write_to_path((&data, &dictionary), folder.join(name));

    let pipe = folder.join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let path = pipe.clone();
    let reader = std::thread::spawn(move || fs::read_to_string(path).unwrap());
    write("pipe").unwrap();
    let piped = reader.join().unwrap();
    assert!(piped.contains("Total snapshots: 1."), "{piped}");
    assert!(pipe.symlink_metadata().unwrap().file_type().is_fifo());

    std::os::unix::fs::symlink("target", folder.join("link")).unwrap();
    fs::write(folder.join("target"), "old").unwrap();
    write("link").unwrap();
    assert!(folder.join("link").is_symlink());
    assert_eq!(fs::read_to_string(folder.join("target")).unwrap(), piped);

    assert!(write(".").is_err(), "a folder is refused");
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn files_beside_it_are_left_alone_and_permissions_stay() {
    let folder = std::env::temp_dir().join(format!("stackglass-beside-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let write =
        || Report::new().write_to_path((&Data::default(), &Dictionary::new()), folder.join("tree.txt"));
    let process = std::process::id();
    let mine = ["tree.txt.unfinished".to_owned(), format!(".stackglass-{process}-0.part")];
    for name in &mine {
        fs::write(folder.join(name), "mine").unwrap();
    }
    write().unwrap();
    let mode = || folder.join("tree.txt").metadata().unwrap().permissions().mode() & 0o777;
    assert_ne!(mode() & 0o600, 0);
    for kept in [0o600, 0o664, 0o440] {
        fs::set_permissions(folder.join("tree.txt"), fs::Permissions::from_mode(kept)).unwrap();
        write().unwrap();
        assert_eq!(mode(), kept, "{kept:o}");
    }
    for name in &mine {
        assert_eq!(fs::read_to_string(folder.join(name)).unwrap(), "mine");
    }
    assert_eq!(folder.read_dir().unwrap().count(), mine.len() + 1);
    fs::remove_dir_all(&folder).unwrap();
}
