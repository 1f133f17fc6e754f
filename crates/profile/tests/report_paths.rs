//! Reports to a path: what is not a file keeps its place, and links stay links.

use stackglass_profile::{Data, Dictionary, Report};
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::process::Command;

#[test]
fn pipes_and_links_stay() {
    let folder = std::env::temp_dir().join(format!("stackglass-paths-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let data = Data::new(vec![16, 1, 7, 100, 1, 0, 0]);
    let dictionary = Dictionary::new();
    let write = |name: &str| Report::new().c(true).write_to_path((&data, &dictionary), &folder.join(name));

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
