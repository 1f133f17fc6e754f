//! The table for programs, as documented in `docs/json.md`.

use crate::AllocationTable;
use crate::text::json::string;
use stackglass_profile::AllocationCounts;
use std::io::{self, Write};

/// Writes a table as one JSON object, with all rows. Equal recordings give equal bytes.
///
/// ```
/// use stackglass_profile::Recording;
/// use stackglass_report::{AllocationKey, AllocationTable, Metric, allocations};
///
/// let table = AllocationTable::new(&Recording::default(), AllocationKey::Type, Metric::Bytes);
/// let mut json = Vec::new();
/// allocations::write_json(&table, &mut json)?;
/// assert!(json.starts_with(br#"{"total":{"count":0,"bytes":0,"#));
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// When writing fails.
pub fn write_json(table: &AllocationTable, out: &mut dyn Write) -> io::Result<()> {
    let AllocationTable { mappings, .. } = table;
    writeln!(out, "{{\"total\":{{{}}},", numbers(&table.total))?;
    writeln!(
        out,
        "\"mappings\":{{\"count\":{},\"bytes\":{},\"live_bytes\":{}}},",
        mappings.count,
        mappings.bytes,
        mappings.live_bytes()
    )?;
    writeln!(out, "\"typed_share\":{},", (table.typed_share() * 1e6).floor() / 1e6)?;
    write!(out, "\"rows\":[")?;
    for (index, row) in table.rows.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        let (key, name) = (table.key.word(), string(&row.name));
        write!(out, "{comma}\n{{\"{key}\":{name},{},\"sites\":{}}}", numbers(&row.counts), row.sites)?;
    }
    writeln!(out, "\n]}}")
}

fn numbers(counts: &AllocationCounts) -> String {
    format!(
        "\"count\":{},\"bytes\":{},\"live_count\":{},\"live_bytes\":{},\"peak_bytes\":{},\"temporary_count\":{}",
        counts.count,
        counts.bytes,
        counts.live_count(),
        counts.live_bytes(),
        counts.peak_bytes,
        counts.temporary_count
    )
}
