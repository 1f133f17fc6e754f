//! Texts that are compared with files in this folder.
//!
//! `STACKGLASS_BLESS=1` writes the files anew, to be reviewed by eye.

/// Panics unless the file of this name has this text.
pub fn check(name: &str, text: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens").join(name);
    if std::env::var_os("STACKGLASS_BLESS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(golden == text, "{} differs from what is written now:\n{text}", path.display());
}
