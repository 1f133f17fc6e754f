//! The page as one file: no server, no network, no other file.
//!
//! The viewer in `page/dist/` is embedded unchanged. It comes before the columns, and draws [the first picture](Packed::first_picture) while
//! they are still read. They are gzip in base64, in elements that the page passes on to its worker one by one. A content security policy
//! allows these scripts only, by hash, and no request.

use crate::Packed;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};
use std::io::{self, Write};

const SCRIPT: &str = include_str!("../page/dist/page.js");
const STYLE: &str = include_str!("../page/dist/page.css");
/// Bytes in an element of columns.
const PART: usize = 3 << 16;

/// A page with a recording.
///
/// ```
/// use stackglass_profile::Recording;
/// use stackglass_view::{Packed, Page};
///
/// let packed = Packed::new(Recording::default(), "empty");
/// let mut page = Vec::new();
/// Page::new(&packed).write_to(&mut page)?;
/// assert!(page.starts_with(b"<!doctype html>"));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    packed: &'a Packed,
    /// The number of the page, if a server shows it.
    served: Option<u64>,
}

impl<'a> Page<'a> {
    /// A page with a packed recording.
    pub fn new(packed: &'a Packed) -> Page<'a> {
        Page { packed, served: None }
    }

    /// The page as a server shows it: it asks that server whether there is one with another number.
    pub fn served(self, number: u64) -> Page<'a> {
        Page { served: Some(number), ..self }
    }

    /// Writes the page.
    ///
    /// # Errors
    /// The errors of `out`.
    pub fn write_to(&self, out: &mut impl Write) -> io::Result<()> {
        let title = markup(self.packed.title());
        write!(
            out,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src {}; \
             style-src {}; worker-src blob:; {}base-uri 'none'; form-action 'none'\">\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <meta name=\"generator\" content=\"stackglass\">\n{}\
             <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
             <noscript>This page needs JavaScript. `stackglass print` shows the recording as text.</noscript>\n\
             <div id=\"app\"></div>\n",
            fingerprint(SCRIPT),
            fingerprint(STYLE),
            if self.served.is_some() { "connect-src 'self'; " } else { "" },
            self.served.map_or_else(String::new, |number| format!(
                "<meta name=\"served\" content=\"events\" data-page=\"{number}\">\n"
            )),
        )?;
        writeln!(
            out,
            "<script type=\"application/json\" id=\"head\">{}</script>",
            in_script(self.packed.head())
        )?;
        // A served page is read from this machine's memory, and made again as the recording grows.
        if self.served.is_none()
            && let Some(first) = self.packed.first_picture()
        {
            writeln!(out, "<script type=\"application/json\" id=\"first\">{}</script>", in_script(&first))?;
        }
        writeln!(out, "<script>{SCRIPT}</script>")?;
        for part in gzip_base64(self.packed.columns().bytes()) {
            writeln!(out, "<script type=\"text/plain\" class=\"columns\">{part}</script>")?;
        }
        write!(out, "</body>\n</html>\n")
    }
}

/// Bytes as gzip in base64. Each part is base64 of its own.
pub(crate) fn gzip_base64(bytes: &[u8]) -> Vec<String> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    let packed = gzip.write_all(bytes).and_then(|()| gzip.finish()).expect("memory can be written to");
    packed.chunks(PART).map(|part| BASE64.encode(part)).collect()
}

/// Text in markup.
fn markup(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// JSON in a script element: no tag or comment can begin in it.
fn in_script(json: &str) -> String {
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// The hash of a script or style sheet for a content security policy.
fn fingerprint(source: &str) -> String {
    format!("'sha256-{}'", BASE64.encode(Sha256::digest(source.as_bytes())))
}
