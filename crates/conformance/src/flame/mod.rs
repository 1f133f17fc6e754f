//! Cases of flame graphs: files with a kind, a list of cases, and shared data.

mod allocs;
mod colors;
mod graphs;
pub(crate) mod node;
mod pixels;
mod text;

use crate::Mode;
use crate::goldens::Goldens;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

/// A file of cases and one of them.
#[derive(Clone)]
pub(crate) struct FlameCase {
    pub file: Arc<Value>,
    pub index: usize,
    pub kind: String,
}

impl FlameCase {
    /// The case itself.
    pub(crate) fn case(&self) -> &Value {
        &self.file["cases"][self.index]
    }

    /// Its name within its kind.
    pub(crate) fn id(&self) -> &str {
        self.case()["id"].as_str().unwrap_or_default()
    }

    /// Whether users see something else than the record.
    pub(crate) fn has_quirks(&self) -> bool {
        matches!(&*self.kind, "flamegraph" | "allocs" | "pixels")
    }

    /// Compares it with the current result.
    pub(crate) fn judge(
        &self,
        path: &Path,
        mode: Mode,
        goldens: Option<&mut Goldens>,
        bless: bool,
    ) -> Result<(), String> {
        match &*self.kind {
            "flamegraph" | "allocs" => self.judge_graph(mode, goldens, bless),
            "pixels" => self.judge_pixels(path, mode, goldens, bless),
            "palettes" => colors::judge(self.case()),
            "text" => text::judge(self.case()),
            other => Err(format!("nothing here runs cases of kind `{other}`\n")),
        }
    }

    fn judge_pixels(
        &self,
        path: &Path,
        mode: Mode,
        goldens: Option<&mut Goldens>,
        bless: bool,
    ) -> Result<(), String> {
        let folder = path.parent().unwrap_or(Path::new(""));
        let judged = || pixels::judge(&self.file, self.case(), mode, folder);
        let text = || pixels::run(&self.file, self.case(), mode).map(|(_, pixels)| pixels::text(&pixels));
        self.judge_golden(goldens, bless, judged, text)
    }

    fn golden_name(&self) -> String {
        format!("{}/{}", self.kind, self.id()).replace('/', "-")
    }

    fn judge_graph(&self, mode: Mode, goldens: Option<&mut Goldens>, bless: bool) -> Result<(), String> {
        let case = self.case();
        let ours = match &*self.kind {
            "flamegraph" => graphs::run(&self.file["profile"], case, mode),
            _ => allocs::run(&self.file, case, mode),
        };
        let recorded = node::Outcome::recorded(case)?;
        let ties = case["ties"].as_bool() == Some(true);
        let goldens = goldens.filter(|_| mode == Mode::Ours);
        self.judge_golden(goldens, bless, || node::compare(&recorded, &ours, ties), || Ok(ours.text()))
    }

    /// Compares with the golden text, if there is one, else with the record. With `bless`, what differs from the record becomes the
    /// golden text.
    fn judge_golden(
        &self,
        goldens: Option<&mut Goldens>,
        bless: bool,
        judged: impl Fn() -> Result<(), String>,
        text: impl Fn() -> Result<String, String>,
    ) -> Result<(), String> {
        let Some(goldens) = goldens else { return judged() };
        let name = self.golden_name();
        if bless {
            let kept = if judged().is_ok() { None } else { Some(text()?) };
            return goldens.bless(&name, kept.as_deref(), false).map_err(|error| error.to_string());
        }
        match goldens.text(&name).map_err(|error| error.to_string())? {
            Some(golden) => crate::same::same_text(&golden, &text()?, false),
            None => judged(),
        }
    }
}
