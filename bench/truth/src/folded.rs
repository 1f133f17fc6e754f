//! Output of peers as named stacks: folded text, `perf script`, samply's JSON.

use crate::{NamedStacks, Seen};
use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;

impl NamedStacks {
    fn push(&mut self, stack: Vec<Arc<str>>, thread: &str, hits: u64) {
        self.stacks.push(stack);
        let stack = self.stacks.len() - 1;
        self.seen.push(Seen {
            stack,
            tid: 0,
            thread: thread.into(),
            asleep: false,
            hits,
            time: 0,
            cut: false,
        });
    }

    /// Folded text: one stack `root;…;leaf count` in each line.
    ///
    /// # Errors
    /// If a line does not end in a number.
    pub fn of_folded(text: &str) -> Result<NamedStacks> {
        let mut named = NamedStacks::default();
        for line in text.lines().filter(|line| !line.is_empty()) {
            let (stack, count) = line.rsplit_once(' ').with_context(|| format!("no count: {line}"))?;
            let count = count.parse().with_context(|| format!("no count: {line}"))?;
            named.push(stack.split(';').map(Arc::from).collect(), "", count);
        }
        Ok(named)
    }

    /// The output of `perf script -F comm,tid,ip,sym`: a head line, frames leaf first, an empty line.
    pub fn of_perf_script(text: &str) -> NamedStacks {
        let mut named = NamedStacks::default();
        let mut names: HashMap<&str, Arc<str>> = HashMap::new();
        for block in text.split("\n\n") {
            let mut lines = block.trim_matches('\n').lines();
            let Some(head) = lines.next() else { continue };
            let thread = head.split_whitespace().next().unwrap_or_default();
            let mut stack: Vec<Arc<str>> = lines
                .filter_map(|line| line.trim().split_once(' '))
                .map(|(_, symbol)| names.entry(symbol).or_insert_with(|| symbol.into()).clone())
                .collect();
            stack.reverse();
            if !stack.is_empty() {
                named.push(stack, thread, 1);
            }
        }
        named
    }

    /// samply's profile (`--unstable-presymbolicate` writes the names to a second file).
    ///
    /// # Errors
    /// If the JSON is not in the format of the Firefox profiler.
    pub fn of_samply(profile: &Value, symbols: &Value) -> Result<NamedStacks> {
        let names = SamplyNames::new(symbols);
        let mut named = NamedStacks::default();
        for thread in profile["threads"].as_array().context("no threads")? {
            let column = |table: &str, field: &str| -> Vec<Option<usize>> {
                let values = thread[table][field].as_array();
                values.map_or(Vec::new(), |v| v.iter().map(|n| n.as_u64().map(|n| n as usize)).collect())
            };
            let (prefixes, frames) = (column("stackTable", "prefix"), column("stackTable", "frame"));
            let (functions, addresses) = (column("frameTable", "func"), column("frameTable", "address"));
            let resources = column("funcTable", "resource");
            let libraries = column("resourceTable", "lib");
            let frame_name = |frame: usize| {
                let function = functions.get(frame).copied().flatten()?;
                let resource = resources.get(function).copied().flatten()?;
                let library = libraries.get(resource).copied().flatten()?;
                let debug_name = profile["libs"][library]["debugName"].as_str()?;
                names.find(debug_name, addresses.get(frame).copied().flatten()? as u64)
            };
            let thread_name = thread["name"].as_str().unwrap_or_default();
            let unknown: Arc<str> = "?".into();
            for sample in column("samples", "stack") {
                let mut stack = Vec::new();
                let mut at = sample;
                while let Some(node) = at {
                    let frame = frames.get(node).copied().flatten();
                    stack.push(frame.and_then(frame_name).unwrap_or_else(|| unknown.clone()));
                    at = prefixes.get(node).copied().flatten();
                }
                stack.reverse();
                if !stack.is_empty() {
                    named.push(stack, thread_name, 1);
                }
            }
        }
        Ok(named)
    }
}

/// Function names by library and sorted start address.
struct SamplyNames(HashMap<String, Vec<(u64, u64, Arc<str>)>>);

impl SamplyNames {
    fn new(symbols: &Value) -> SamplyNames {
        let text = |index: &Value| symbols["string_table"][index.as_u64().unwrap_or(0) as usize].as_str();
        let mut tables = HashMap::new();
        for library in symbols["data"].as_array().map_or(&[][..], |data| data) {
            let mut table: Vec<(u64, u64, Arc<str>)> = Vec::new();
            for symbol in library["symbol_table"].as_array().map_or(&[][..], |table| table) {
                let (Some(start), Some(size)) = (symbol["rva"].as_u64(), symbol["size"].as_u64()) else {
                    continue;
                };
                table.push((start, size, text(&symbol["symbol"]).unwrap_or("?").into()));
            }
            table.sort();
            if let Some(name) = library["debug_name"].as_str() {
                tables.insert(name.to_owned(), table);
            }
        }
        SamplyNames(tables)
    }

    fn find(&self, library: &str, address: u64) -> Option<Arc<str>> {
        let table = self.0.get(library)?;
        let after = table.partition_point(|(start, ..)| *start <= address);
        let (start, size, name) = &table[after.checked_sub(1)?];
        (address < start + size).then(|| name.clone())
    }
}
