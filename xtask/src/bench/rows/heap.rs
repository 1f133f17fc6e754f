//! Heap snapshots of programs whose heap is known. All programs have full debug information.

mod program;
mod same_blocks;
mod slow_down;
mod snapshots;
mod table;

use crate::bench::builds;
use crate::bench::figure::Figure;
use crate::bench::setup::Setup;
use anyhow::Result;

/// Time, pause, memory, leaks; what the program loses; the blocks of unprepared programs; the table of live blocks.
pub fn measure(setup: &Setup) -> Result<Vec<Figure>> {
    let workloads = builds::workloads(&setup.scratch("allocs-plain"), None, false)?;
    let mut figures = snapshots::measure(setup, &workloads)?;
    figures.extend(slow_down::measure(setup, &workloads)?);
    figures.extend(same_blocks::measure()?);
    figures.extend(table::measure(setup, &workloads)?);
    Ok(figures)
}
