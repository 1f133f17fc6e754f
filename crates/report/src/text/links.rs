//! Source locations as terminal links (OSC 8), opened in the reader's editor if its URL scheme is known.

use std::fmt::Write;

/// The target of links.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Links {
    editor: Editor,
    /// Name of this machine, for `file://` URLs.
    host: String,
}

/// Editors with URL schemes.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Editor {
    /// `vscode://file/PATH:LINE`
    Code,
    /// `subl://open?url=file://PATH&line=LINE`
    Sublime,
    /// `atom://core/open/file?filename=PATH&line=LINE`
    Atom,
    /// `SCHEME://open?file=PATH&line=LINE`
    Open(&'static str),
    /// The system's default.
    None,
}

impl Links {
    /// Links for the editor named by the first of JULIA_EDITOR, VISUAL and EDITOR that is set. `file://` URLs if it is
    /// unknown.
    pub fn new(variable: impl Fn(&str) -> Option<String>, host: &str) -> Links {
        let named = ["JULIA_EDITOR", "VISUAL", "EDITOR"].iter().find_map(|name| variable(name));
        let editor = match named.as_deref().unwrap_or("") {
            "code" => Editor::Code,
            "subl" | "sublime_text" => Editor::Sublime,
            "pycharm" => Editor::Open("pycharm"),
            "emacs" | "emacsclient" => Editor::Open("emacs"),
            "vim" | "nvim" => Editor::Open("vim"),
            "atom" => Editor::Atom,
            name if name.contains("idea") => Editor::Open("idea"),
            _ => Editor::None,
        };
        Links { editor, host: host.to_owned() }
    }

    /// The URL of a line in a file; `None` if the path is not absolute or not of this machine.
    pub fn target(&self, path: &str, line: i64) -> Option<String> {
        if !path.starts_with('/') || path.starts_with("/rustc/") {
            return None;
        }
        let (path, line) = (encoded(path), line.max(0));
        Some(match self.editor {
            Editor::Code => format!("vscode://file/{path}:{line}"),
            Editor::Sublime => format!("subl://open?url=file://{path}&line={line}"),
            Editor::Atom => format!("atom://core/open/file?filename={path}&line={line}"),
            Editor::Open(scheme) => format!("{scheme}://open?file={path}&line={line}"),
            Editor::None => format!("file://{}{path}", self.host),
        })
    }
}

/// Percent-encodes all but unreserved characters and `/`.
fn encoded(path: &str) -> String {
    let mut encoded = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                encoded.push(char::from(byte))
            }
            byte => {
                let _ = write!(encoded, "%{byte:02X}");
            }
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(editor: &str) -> String {
        let variable = |name: &str| (name == "VISUAL").then(|| editor.to_owned());
        Links::new(variable, "here").target("/src/a b.rs", 7).unwrap()
    }

    #[test]
    fn editors_have_their_own_addresses() {
        assert_eq!(target("code"), "vscode://file//src/a%20b.rs:7");
        assert_eq!(target("subl"), "subl://open?url=file:///src/a%20b.rs&line=7");
        assert_eq!(target("nvim"), "vim://open?file=/src/a%20b.rs&line=7");
        assert_eq!(target("intellij-idea-ce"), "idea://open?file=/src/a%20b.rs&line=7");
        assert_eq!(target("atom"), "atom://core/open/file?filename=/src/a%20b.rs&line=7");
        assert_eq!(target("ed"), "file://here/src/a%20b.rs");
    }

    #[test]
    fn only_files_of_this_machine() {
        let links = Links::new(|_| None, "here");
        assert_eq!(links.target("src/a.rs", 7), None);
        assert_eq!(links.target("/rustc/0/library/core/src/a.rs", 7), None);
    }
}
