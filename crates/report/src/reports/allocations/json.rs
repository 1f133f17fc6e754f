//! The table for programs, as documented in `docs/json.md`.

use crate::AllocationTable;
use stackglass_profile::{AllocationCounts, harmless};
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

/// A string in JSON. Characters that would control a terminal are escaped as well.
fn string(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    let mut buffer = [0; 4];
    for c in text.chars() {
        match c {
            '"' => quoted += "\\\"",
            '\\' => quoted += "\\\\",
            ' '..='~' => quoted.push(c),
            _ => {
                let same = c.encode_utf8(&mut buffer);
                if harmless(same) == *same {
                    quoted.push(c);
                } else {
                    let mut units = [0; 2];
                    let escapes = c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}"));
                    quoted.extend(escapes);
                }
            }
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::string;

    #[test]
    fn strings_are_escaped() {
        assert_eq!(string("Vec<u8>"), "\"Vec<u8>\"");
        assert_eq!(
            string("a\"b\\c\n\u{7}\u{202e}\u{e0041}é漢"),
            r#""a\"b\\c\u000a\u0007\u202e\udb40\udc41é漢""#
        );
    }
}
