//! A frame of a stack in JSON reports.

use serde::Serialize;
use stackglass_profile::Frame;

/// Where code is, as far as it is known.
#[derive(Serialize)]
pub(crate) struct JsonFrame<'a> {
    pub function: &'a str,
    pub file: Option<&'a str>,
    pub line: Option<u64>,
    pub module: &'a str,
}

impl<'a> From<&'a Frame> for JsonFrame<'a> {
    fn from(frame: &'a Frame) -> JsonFrame<'a> {
        JsonFrame {
            function: &frame.func,
            file: Some(&*frame.file).filter(|file| !file.is_empty()),
            line: u64::try_from(frame.line).ok().filter(|line| *line > 0),
            module: &frame.module,
        }
    }
}
