//! Reads a snapshot in one file of JSON.

use super::super::ReadOptions;
use super::super::addresses::{ADDRESSES, REGIONS, StoredAddresses};
use super::super::allocation_stacks::Stacks;
use super::super::json::Scanner;
use super::super::json_text::gets_space;
use super::super::meta::{GROUPS, Meta, UNUSED};
use super::{continued, groups};
use crate::fault::Fault;
use stackglass_profile::heap_graph::{AllocationStack, HeapGraph, NameId, NodeIndex};
use std::io::Read;

/// Without the size of the input, arrays grow as they are read.
const RESERVED: usize = 1 << 20;

/// Sums of sizes stay below, so that whoever adds them needs no check.
const MOST_BYTES: u64 = 1 << 63;

/// Reads a snapshot from at most `size` bytes.
pub(in crate::heapsnapshot) fn read(
    input: impl Read,
    size: u64,
    options: ReadOptions,
) -> Result<HeapGraph, Fault> {
    let mut reader = Reader {
        json: Scanner::new(input),
        size,
        meta: None,
        graph: HeapGraph::default(),
        stacks: Stacks::default(),
        options,
        addresses: StoredAddresses::default(),
        largest_name: None,
    };
    reader.read()?;
    reader.finish()
}

struct Reader<R> {
    json: Scanner<R>,
    size: u64,
    meta: Option<Meta>,
    graph: HeapGraph,
    stacks: Stacks,
    options: ReadOptions,
    /// Empty if they are not wanted.
    addresses: StoredAddresses,
    /// The largest index of a string that a node or edge has, and its offset.
    largest_name: Option<(u64, u64)>,
}

/// Where the fields of a node or edge are.
fn place(fields: &[String], wanted: &str) -> Result<usize, Fault> {
    fields
        .iter()
        .position(|field| field == wanted)
        .ok_or_else(|| Fault::Whole(format!("its nodes or edges have no field {wanted:?}")))
}

impl<R: Read> Reader<R> {
    fn read(&mut self) -> Result<(), Fault> {
        let mut first = true;
        if self.json.peek()? != b'{' {
            return Err(Fault::Whole("no heap snapshot: it does not begin with \"{\"".into()));
        }
        self.json.expect(b'{')?;
        let (mut nodes, mut edges, mut strings) = (false, false, false);
        while let Some(key) = self.json.key(&mut first)? {
            match key.as_str() {
                "snapshot" if self.meta.is_none() => self.meta = Some(Meta::read(&mut self.json)?),
                "nodes" if !nodes => (nodes, _) = (true, self.nodes()?),
                "edges" if !edges => {
                    if !nodes {
                        return self.json.fault("\"edges\" is before \"nodes\"");
                    }
                    (edges, _) = (true, self.edges()?);
                }
                "strings" if !strings => (strings, _) = (true, self.strings()?),
                "trace_function_infos" if self.is_ours() => {
                    let meta = self.meta("trace_function_infos")?;
                    let fields = meta.function_fields.clone();
                    self.stacks.read_function_infos(&mut self.json, &fields)?;
                }
                "trace_tree" if self.is_ours() => {
                    let fields = self.meta("trace_tree")?.stack_fields.clone();
                    self.stacks.read_tree(&mut self.json, &fields)?;
                }
                UNUSED if nodes && self.is_ours() => self.graph.unused = self.rows(UNUSED, 0)?,
                GROUPS if nodes && self.is_ours() => self.graph.members = self.rows(GROUPS, 1)?,
                REGIONS if self.has_addresses() => self.addresses.regions = self.records()?,
                ADDRESSES if self.has_addresses() => self.addresses.others = self.records()?,
                "snapshot" | "nodes" | "edges" | "strings" => {
                    return self.json.fault(format!("{key:?} occurs twice"));
                }
                _ => self.json.skip()?,
            }
        }
        self.json.finish()?;
        for (key, found) in
            [("snapshot", self.meta.is_some()), ("nodes", nodes), ("edges", edges), ("strings", strings)]
        {
            if !found {
                return Err(Fault::Whole(format!("no heap snapshot, or truncated: there is no {key:?}")));
            }
        }
        Ok(())
    }

    /// The number of records of an array, which must have room in the rest of the file: each number takes two bytes.
    fn reserved(&self, what: &str, count: u64, fields: usize) -> Result<usize, Fault> {
        if count >= u64::from(u32::MAX) {
            return self.json.fault(format!("{count} {what}: too many"));
        }
        if self.size == u64::MAX {
            return Ok((count as usize).min(RESERVED));
        }
        let left = self.size.saturating_sub(self.json.offset());
        if count.saturating_mul(2 * fields as u64) > left.saturating_add(1) {
            return self.json.fault(format!("{count} {what} are announced, but only {left} bytes follow"));
        }
        Ok(count as usize)
    }

    fn meta(&self, key: &str) -> Result<&Meta, Fault> {
        match &self.meta {
            Some(meta) => Ok(meta),
            None => self.json.fault(format!("{key:?} is before \"snapshot\"")),
        }
    }

    /// Whether stacks and unused bytes have the form that Stackglass writes. Those of V8 contain negative numbers.
    fn is_ours(&self) -> bool {
        self.meta.as_ref().is_some_and(|meta| meta.assembled_here)
    }

    /// Whether addresses are wanted, and may be there.
    fn has_addresses(&self) -> bool {
        self.options.addresses && self.is_ours()
    }

    fn nodes(&mut self) -> Result<(), Fault> {
        let meta = self.meta("nodes")?;
        let fields = meta.node_fields.as_slice();
        let at = |field| place(fields, field);
        let [kind, name, size, edges] = [at("type")?, at("name")?, at("self_size")?, at("edge_count")?];
        let stack =
            place(fields, "trace_node_id").ok().filter(|_| meta.assembled_here && meta.function_count > 0);
        let id = place(fields, "id").ok().filter(|_| self.has_addresses());
        let (count, width, kinds) = (meta.node_count, fields.len(), meta.node_kinds.len() as u64);
        let edge_count = meta.edge_count;
        let room = self.reserved("nodes", count, width)?;
        let graph = &mut self.graph;
        graph.kinds.reserve_exact(room);
        graph.names.reserve_exact(room);
        graph.self_sizes.reserve_exact(room);
        graph.first_edges.reserve_exact(room + 1);
        let (mut begun, mut sizes) = (0_u64, 0_u64);
        each_row(&mut self.json, "nodes", count, width, |row, offset, record| {
            if record[kind] >= kinds {
                return Err(Fault::at(offset, format!("node {row} has an unknown kind, {}", record[kind])));
            }
            raise(&mut self.largest_name, record[name], offset);
            if let Some(stack) = stack {
                graph.push_stack(AllocationStack(record[stack].min(u32::MAX.into()) as u32));
            }
            graph.kinds.push(record[kind] as u16);
            graph.names.push(NameId(record[name].min(u32::MAX.into()) as u32));
            graph.self_sizes.push(record[size]);
            if let Some(id) = id {
                self.addresses.ids.push(record[id].min(u32::MAX.into()) as u32);
            }
            graph.first_edges.push(begun as u32);
            begun = begun.saturating_add(record[edges]);
            sizes = sizes.saturating_add(record[size]);
            if sizes > MOST_BYTES {
                return Err(Fault::at(offset, "the sizes add up to more than 2^63 bytes"));
            }
            if begun > edge_count {
                let what = format!("the nodes up to {row} have {begun} edges of {edge_count}");
                return Err(Fault::at(offset, what));
            }
            Ok(())
        })?;
        if begun != edge_count {
            return self.json.fault(format!("the nodes have {begun} edges, but {edge_count} are announced"));
        }
        graph.first_edges.push(begun as u32);
        Ok(())
    }

    /// All records of an array.
    fn records<const N: usize>(&mut self) -> Result<Vec<[u64; N]>, Fault> {
        let (mut records, mut record, mut first) = (Vec::new(), [0; N], true);
        self.json.expect(b'[')?;
        while self.json.record(&mut record, &mut first)? {
            records.push(record);
        }
        Ok(records)
    }

    /// A number of each node: that of its row, or else `other`.
    fn rows(&mut self, key: &str, other: u32) -> Result<Vec<u32>, Fault> {
        let json = &mut self.json;
        let mut numbers = vec![other; self.graph.len()];
        let (mut record, mut first) = ([0; 2], true);
        json.expect(b'[')?;
        loop {
            let offset = json.offset();
            if !json.record(&mut record, &mut first)? {
                return Ok(numbers);
            }
            let Some(number) = usize::try_from(record[0]).ok().and_then(|row| numbers.get_mut(row)) else {
                return Err(Fault::at(offset, format!("node {} of {key:?} does not exist", record[0])));
            };
            *number = record[1].min(u32::MAX.into()) as u32;
        }
    }

    fn edges(&mut self) -> Result<(), Fault> {
        let meta = self.meta("edges")?;
        let fields = meta.edge_fields.as_slice();
        let at = |field| place(fields, field);
        let [kind, label, to] = [at("type")?, at("name_or_index")?, at("to_node")?];
        let (count, width, node_width) = (meta.edge_count, fields.len(), meta.node_fields.len() as u64);
        let nodes = meta.node_count;
        if meta.edge_kinds.len() > 256 {
            return self.json.fault("more than 256 kinds of edges");
        }
        let numbered: Vec<bool> =
            meta.edge_kinds.iter().map(|kind| matches!(&**kind, "element" | "hidden")).collect();
        let room = self.reserved("edges", count, width)?;
        let graph = &mut self.graph;
        graph.kinds_of_edges.reserve_exact(room);
        graph.names_of_edges.reserve_exact(room);
        graph.targets.reserve_exact(room);
        each_row(&mut self.json, "edges", count, width, |row, offset, record| {
            let Some(numbered) = usize::try_from(record[kind]).ok().and_then(|kind| numbered.get(kind))
            else {
                return Err(Fault::at(offset, format!("edge {row} has an unknown kind, {}", record[kind])));
            };
            let target = record[to] / node_width;
            if record[to] % node_width != 0 || target >= nodes {
                let what = format!("edge {row} ends at {}, where no node begins", record[to]);
                return Err(Fault::at(offset, what));
            }
            if !numbered {
                raise(&mut self.largest_name, record[label], offset);
            }
            graph.kinds_of_edges.push(record[kind] as u8);
            graph.names_of_edges.push(record[label].min(u32::MAX.into()) as u32);
            graph.targets.push(NodeIndex(target as u32));
            Ok(())
        })
    }

    fn strings(&mut self) -> Result<(), Fault> {
        let json = &mut self.json;
        let mut first = true;
        json.expect(b'[')?;
        while json.element(b']', &mut first)? {
            let text = json.string()?;
            self.graph.strings.push(text.into());
        }
        Ok(())
    }

    fn finish(mut self) -> Result<HeapGraph, Fault> {
        let Some(meta) = self.meta.take() else {
            return Err(Fault::Whole("no heap snapshot".into()));
        };
        let strings = self.graph.strings.len() as u64;
        if let Some((index, offset)) = self.largest_name
            && index >= strings
        {
            return Err(Fault::at(offset, format!("string {index} is named here, but there are {strings}")));
        }
        let (root, rest) = (
            meta.root_index / meta.node_fields.len() as u64,
            meta.root_index % meta.node_fields.len() as u64,
        );
        if rest != 0 || root >= self.graph.len() as u64 {
            return Err(Fault::Whole(format!("root_index is {}, where no node begins", meta.root_index)));
        }
        if meta.assembled_here {
            for text in &mut self.graph.strings {
                if let Some(original) = text.strip_prefix(' ').filter(|text| gets_space(text.as_bytes())) {
                    *text = original.into();
                }
            }
        }
        self.stacks.number(&mut self.graph);
        self.graph.stacks = self.stacks.named(&self.graph.strings);
        self.graph.node_kinds = meta.node_kinds;
        self.graph.edge_kinds = meta.edge_kinds;
        self.graph.addresses = self.addresses.addresses()?;
        if meta.assembled_here {
            continued::join(&mut self.graph);
            groups::name_by_type(&mut self.graph);
        }
        Ok(match root {
            0 => self.graph,
            root => with_root(&self.graph, root as u32),
        })
    }
}

/// Calls `visit` for each row of an array of records with `width` numbers, which must have `count` rows: with the row's number,
/// its offset and its record.
fn each_row<R: Read>(
    json: &mut Scanner<R>,
    what: &str,
    count: u64,
    width: usize,
    mut visit: impl FnMut(u64, u64, &[u64]) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut record = vec![0; width];
    json.expect(b'[')?;
    let mut first = true;
    for row in 0..count {
        let offset = json.offset();
        if !json.record(&mut record, &mut first)? {
            return json.fault(format!("{what:?} ends after {row} {what} of {count}"));
        }
        visit(row, offset, &record)?;
    }
    if json.record(&mut record, &mut first)? {
        return json.fault(format!("{what:?} has more than the {count} {what} that are announced"));
    }
    Ok(())
}

#[inline]
fn raise(largest: &mut Option<(u64, u64)>, index: u64, offset: u64) {
    if largest.is_none_or(|(known, _)| index > known) {
        *largest = Some((index, offset));
    }
}

/// The graph with this node in the place of node 0, and the other way round.
fn with_root(graph: &HeapGraph, root: u32) -> HeapGraph {
    let moved = |node: u32| match node {
        0 => root,
        node if node == root => 0,
        node => node,
    };
    let mut new = HeapGraph { first_edges: Vec::with_capacity(graph.len() + 1), ..graph.clone() };
    new.kinds_of_edges.clear();
    new.names_of_edges.clear();
    new.targets.clear();
    new.kinds.swap(0, root as usize);
    new.names.swap(0, root as usize);
    new.self_sizes.swap(0, root as usize);
    if !new.unused.is_empty() {
        new.unused.swap(0, root as usize);
    }
    if !new.members.is_empty() {
        new.members.swap(0, root as usize);
    }
    if !new.addresses.is_empty() {
        new.addresses.swap(0, root as usize);
    }
    if !new.allocated_by.is_empty() {
        new.allocated_by.swap(0, root as usize);
    }
    for node in 0..graph.len() as u32 {
        new.first_edges.push(new.targets.len() as u32);
        for edge in graph.edges(NodeIndex(moved(node))) {
            new.kinds_of_edges.push(edge.kind);
            new.names_of_edges.push(edge.name_or_index);
            new.targets.push(NodeIndex(moved(edge.to.0)));
        }
    }
    new.first_edges.push(new.targets.len() as u32);
    new
}
