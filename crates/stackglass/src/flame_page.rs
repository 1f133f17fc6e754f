//! A flame graph of the samples.

use stackglass_flame::{Flamegraph, Page};
use std::io::{self, Write};
use std::path::Path;

/// Writes a flame graph of the CPU time to an HTML page. Without samples it writes nothing and returns false.
///
/// [`flame`](crate::flame) draws pictures (PNG, SVG) and has more options.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("stackglass-doc-{}.html", std::process::id()));
/// stackglass::profile!(std::hint::black_box((0..1000).sum::<u32>()));
/// if stackglass::flamegraph(&path)? {
///     println!("open {}", path.display());
/// }
/// # let _ = std::fs::remove_file(&path);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// If the page cannot be written.
pub fn flamegraph(path: impl AsRef<Path>) -> io::Result<bool> {
    let recording = crate::recording();
    let awake = stackglass_report::call_tree::StateFilter::Awake;
    let drawn = Flamegraph::new().moments(awake).graph(&recording).map_err(io::Error::other)?;
    let Some(graph) = drawn.graph else { return Ok(false) };
    let page = Page::new("CPU time").unit("samples").view("CPU", &graph);
    let mut file = io::BufWriter::new(std::fs::File::create(path)?);
    page.write_to(&mut file)?;
    file.flush()?;
    Ok(true)
}
