//! The first part of a snapshot: what the numbers mean, and how many there are.

use super::json::Scanner;
use super::json_text;
use crate::fault::Fault;
use std::io::Read;

/// Kinds of nodes or edges in one snapshot. Julia has one kind for each type.
const MOST_KINDS: usize = 1 << 16;

/// Fields of a node, in our order, which is V8's.
const NODE_FIELDS: [&str; 7] =
    ["type", "name", "id", "self_size", "edge_count", "trace_node_id", "detachedness"];

/// Keys of our own arrays: rows of nodes with their unused bytes, and with the number of blocks that they stand for.
pub(super) const UNUSED: &str = "unused";
pub(super) const GROUPS: &str = "groups";

/// What `"snapshot"` of a file contains.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Meta {
    pub node_fields: Vec<String>,
    pub edge_fields: Vec<String>,
    /// Fields of a function in allocation stacks, and of a stack.
    pub function_fields: Vec<String>,
    pub stack_fields: Vec<String>,
    /// Names of the kinds of nodes.
    pub node_kinds: Vec<String>,
    /// Names of the kinds of edges.
    pub edge_kinds: Vec<String>,
    pub node_count: u64,
    pub edge_count: u64,
    pub root_index: u64,
    /// Functions in allocation stacks.
    pub function_count: u64,
    /// Whether [`assemble`](super::assemble()) wrote the file, which changes some names.
    pub assembled_here: bool,
}

/// The key that tells that, and its value.
const ASSEMBLER: &str = "assembled_by";
const US: &str = "stackglass";

impl Meta {
    /// The meta block of our own snapshots.
    pub(super) fn ours(node_count: u64, edge_count: u64) -> Self {
        use stackglass_profile::heap_graph::{EDGE_KINDS, NODE_KINDS};
        Self {
            node_kinds: NODE_KINDS.map(str::to_owned).to_vec(),
            edge_kinds: EDGE_KINDS.map(str::to_owned).to_vec(),
            node_count,
            edge_count,
            ..Self::default()
        }
    }

    /// Appends the object with the key "snapshot", without the last brace of the file.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let text = |out: &mut Vec<u8>, text: &str| out.extend_from_slice(text.as_bytes());
        text(out, "{\"snapshot\":{\"meta\":{\"node_fields\":");
        list(out, NODE_FIELDS);
        text(out, ",\"node_types\":[");
        list(out, self.node_kinds.iter().map(String::as_str));
        text(out, ",\"string\",\"number\",\"number\",\"number\",\"number\",\"number\"]");
        text(out, ",\"edge_fields\":[\"type\",\"name_or_index\",\"to_node\"],\"edge_types\":[");
        list(out, self.edge_kinds.iter().map(String::as_str));
        text(out, ",\"string_or_number\",\"node\"]");
        text(out, ",\"trace_function_info_fields\":");
        list(out, ["function_id", "name", "script_name", "script_id", "line", "column"]);
        text(out, ",\"trace_node_fields\":");
        list(out, ["id", "function_info_index", "count", "size", "children"]);
        text(out, ",\"sample_fields\":[\"timestamp_us\",\"last_assigned_id\"]");
        text(out, ",\"location_fields\":[\"object_index\",\"script_id\",\"line\",\"column\"]}");
        let (nodes, edges) = (self.node_count, self.edge_count);
        text(out, &format!(",\"node_count\":{nodes},\"edge_count\":{edges}"));
        text(out, &format!(",\"trace_function_count\":{}", self.function_count));
        if self.assembled_here {
            text(out, &format!(",\"{ASSEMBLER}\":\"{US}\""));
        }
        out.push(b'}');
    }

    /// Reads the value of the key "snapshot".
    pub(super) fn read<R: Read>(json: &mut Scanner<R>) -> Result<Self, Fault> {
        let mut meta = Self::default();
        let (mut first, mut counts) = (true, 0);
        json.expect(b'{')?;
        while let Some(key) = json.key(&mut first)? {
            match key.as_str() {
                "meta" => meta.read_fields(json)?,
                "node_count" => (meta.node_count, counts) = (json.number()?, counts | 1),
                "edge_count" => (meta.edge_count, counts) = (json.number()?, counts | 2),
                ASSEMBLER if json.peek()? == b'"' => meta.assembled_here = json.string()? == US,
                "trace_function_count" => meta.function_count = json.number()?,
                "root_index" => meta.root_index = json.number()?,
                _ => json.skip()?,
            }
        }
        if counts != 3 {
            return json.fault("\"snapshot\" has no node_count or no edge_count");
        }
        if meta.node_kinds.is_empty() || meta.edge_kinds.is_empty() {
            return json.fault("\"meta\" has no kinds of nodes or edges");
        }
        Ok(meta)
    }

    fn read_fields<R: Read>(&mut self, json: &mut Scanner<R>) -> Result<(), Fault> {
        let (mut node_types, mut edge_types) = (Vec::new(), Vec::new());
        let mut first = true;
        json.expect(b'{')?;
        while let Some(key) = json.key(&mut first)? {
            match key.as_str() {
                "node_fields" => self.node_fields = strings(json)?,
                "edge_fields" => self.edge_fields = strings(json)?,
                "trace_function_info_fields" => self.function_fields = strings(json)?,
                "trace_node_fields" => self.stack_fields = strings(json)?,
                "node_types" => node_types = types(json)?,
                "edge_types" => edge_types = types(json)?,
                _ => json.skip()?,
            }
        }
        let kinds = |fields: &[String], types: Vec<Vec<String>>| {
            let at = fields.iter().position(|field| field == "type")?;
            types.into_iter().nth(at)
        };
        self.node_kinds = kinds(&self.node_fields, node_types).unwrap_or_default();
        self.edge_kinds = kinds(&self.edge_fields, edge_types).unwrap_or_default();
        Ok(())
    }
}

fn list<'a>(out: &mut Vec<u8>, texts: impl IntoIterator<Item = &'a str>) {
    let mut between = b'[';
    for text in texts {
        out.push(between);
        json_text::string(out, text.as_bytes());
        between = b',';
    }
    out.push(b']');
}

fn strings<R: Read>(json: &mut Scanner<R>) -> Result<Vec<String>, Fault> {
    let (mut texts, mut first) = (Vec::new(), true);
    json.expect(b'[')?;
    while json.element(b']', &mut first)? {
        if texts.len() == MOST_KINDS {
            return json.fault("more than 65 536 kinds");
        }
        texts.push(json.string()?);
    }
    Ok(texts)
}

/// Kinds by field: a list for the field "type", none for the others.
fn types<R: Read>(json: &mut Scanner<R>) -> Result<Vec<Vec<String>>, Fault> {
    let (mut fields, mut first) = (Vec::new(), true);
    json.expect(b'[')?;
    while json.element(b']', &mut first)? {
        if fields.len() == 64 {
            return json.fault("more than 64 fields");
        }
        if json.peek()? == b'[' {
            fields.push(strings(json)?);
        } else {
            json.skip()?;
            fields.push(Vec::new());
        }
    }
    Ok(fields)
}
