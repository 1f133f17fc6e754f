//! The stacks that allocated blocks: V8's `trace_function_infos` and `trace_tree`, and their flat form in the metadata of part files.

use super::json::Scanner;
use super::json_text;
use crate::fault::Fault;
use foldhash::{HashMap, HashMapExt};
use stackglass_profile::heap_graph::{
    AllocatingFunction, AllocationStack, AllocationStacks, HeapGraph, NameId,
};
use std::io::Read;
use std::sync::Arc;

/// Keys in the metadata of part files.
pub(super) const FUNCTIONS: &str = "functions";
pub(super) const STACKS: &str = "stacks";

/// Number of the first stack with a function. 0 is an unknown one, 1 the root.
const FIRST: u32 = 2;
const ROOT: u32 = AllocationStack::ROOT.0;

/// Stacks, with names as indices of strings.
#[derive(Debug, Default)]
pub(super) struct Stacks {
    /// Name, file and line of each function.
    functions: Vec<[u32; 3]>,
    /// The caller's stack and the function of each stack from the first one on.
    stacks: Vec<(u32, u32)>,
    /// Numbers of stacks by their ids in a file.
    numbers: HashMap<u32, u32>,
}

impl Stacks {
    pub(super) fn from_allocation_stacks(
        stacks: &AllocationStacks,
        name: &mut dyn FnMut(&str) -> NameId,
    ) -> Stacks {
        let functions = stacks.functions.iter();
        let functions = functions.map(|one| [name(&one.name).0, name(&one.file).0, one.line]).collect();
        let stacks = stacks.stacks.iter().map(|(caller, function)| (caller.0, *function)).collect();
        Stacks { functions, stacks, numbers: HashMap::new() }
    }

    /// Whether there is a stack with this number.
    pub(super) fn has(&self, stack: u32) -> bool {
        stack == 0 || stack.saturating_sub(FIRST) < self.stacks.len() as u32
    }

    /// Whether all functions have names, and callers come before what they call.
    pub(super) fn is_sound(&self, strings: u64) -> bool {
        let named = |[name, file, _]: &[u32; 3]| u64::from(*name).max((*file).into()) < strings;
        let placed = |(index, (caller, function)): (usize, &(u32, u32))| {
            (ROOT..index as u32 + FIRST).contains(caller) && (*function as usize) < self.functions.len()
        };
        self.functions.iter().all(named) && self.stacks.iter().enumerate().all(placed)
    }

    /// Functions in the file: the root's is one more.
    pub(super) fn function_count(&self) -> u64 {
        if self.stacks.is_empty() { 0 } else { self.functions.len() as u64 + 1 }
    }

    /// The number of stacks, the unknown one and the root among them.
    pub(super) fn len(&self) -> usize {
        self.stacks.len() + FIRST as usize
    }

    /// Members of the metadata of part files.
    pub(super) fn write_flat(&self, out: &mut Vec<u8>) {
        if self.stacks.is_empty() {
            return;
        }
        let mut list = |key: &str, numbers: &mut dyn Iterator<Item = u32>| {
            out.extend_from_slice(format!(",\n\"{key}\":").as_bytes());
            let mut between = b'[';
            for number in numbers {
                out.push(between);
                json_text::number(out, number);
                between = b',';
            }
            out.push(b']');
        };
        list(FUNCTIONS, &mut self.functions.iter().flatten().copied());
        list(STACKS, &mut self.stacks.iter().flat_map(|(caller, function)| [*caller, *function]));
    }

    pub(super) fn read_functions<R: Read>(&mut self, json: &mut Scanner<R>) -> Result<(), Fault> {
        let (mut record, mut first) = ([0; 3], true);
        json.expect(b'[')?;
        while json.record(&mut record, &mut first)? {
            self.functions.push(record.map(narrow));
        }
        Ok(())
    }

    pub(super) fn read_flat<R: Read>(&mut self, json: &mut Scanner<R>) -> Result<(), Fault> {
        let (mut record, mut first) = ([0; 2], true);
        json.expect(b'[')?;
        while json.record(&mut record, &mut first)? {
            self.stacks.push((narrow(record[0]), narrow(record[1])));
        }
        Ok(())
    }

    /// V8's functions: id, name, name and id of the script, line, column. The first is the root's, which has an empty name.
    pub(super) fn write_functions(&self, out: &mut Vec<u8>) {
        if self.stacks.is_empty() {
            return;
        }
        out.extend_from_slice(b"0,0,0,0,0,0");
        for (index, [name, file, line]) in self.functions.iter().enumerate() {
            out.extend_from_slice(b",\n");
            let column = u32::from(*line > 0);
            for (place, number) in
                [index as u32 + 1, *name, *file, *file, *line, column].into_iter().enumerate()
            {
                if place > 0 {
                    out.push(b',');
                }
                json_text::number(out, number);
            }
        }
    }

    /// V8's tree: id, function, blocks, their bytes, and what is called. `alive` has blocks and bytes of each stack.
    pub(super) fn write_tree(&self, alive: &[(u32, u64)], out: &mut Vec<u8>) {
        if self.stacks.is_empty() {
            return;
        }
        // Of each stack: the first one that it calls, and the next one with the same caller.
        let (mut first, mut next) = (vec![0; self.len()], vec![0; self.len()]);
        for (index, (caller, _)) in self.stacks.iter().enumerate().rev() {
            let stack = index + FIRST as usize;
            next[stack] = std::mem::replace(&mut first[*caller as usize], stack);
        }
        let begin = |out: &mut Vec<u8>, stack: usize| {
            let function = stack.checked_sub(FIRST as usize).map_or(0, |index| self.stacks[index].1 + 1);
            let (count, size) = alive.get(stack).copied().unwrap_or_default();
            for number in [stack as u32, function, count, narrow(size)] {
                json_text::number(out, number);
                out.push(b',');
            }
            out.push(b'[');
        };
        let mut open = vec![ROOT as usize];
        begin(out, ROOT as usize);
        while let Some(stack) = open.last().copied() {
            match std::mem::take(&mut first[stack]) {
                0 => {
                    out.push(b']');
                    open.pop();
                    let Some(caller) = open.last() else { break };
                    first[*caller] = next[stack];
                    if next[stack] != 0 {
                        out.extend_from_slice(b",\n");
                    }
                }
                called => {
                    begin(out, called);
                    open.push(called);
                }
            }
        }
    }

    /// Reads functions with these fields.
    pub(super) fn read_function_infos<R: Read>(
        &mut self,
        json: &mut Scanner<R>,
        fields: &[String],
    ) -> Result<(), Fault> {
        let Some([name, file, line]) = places(fields, ["name", "script_name", "line"]) else {
            return json.skip();
        };
        let (mut record, mut first) = (vec![0; fields.len()], true);
        json.expect(b'[')?;
        while json.record(&mut record, &mut first)? {
            self.functions.push([narrow(record[name]), narrow(record[file]), narrow(record[line])]);
        }
        Ok(())
    }

    /// Reads a tree whose nodes have these fields. The nodes that one calls come last in it.
    pub(super) fn read_tree<R: Read>(
        &mut self,
        json: &mut Scanner<R>,
        fields: &[String],
    ) -> Result<(), Fault> {
        let Some([id, function, children]) = places(fields, ["id", "function_info_index", "children"]) else {
            return json.skip();
        };
        if children + 1 != fields.len() {
            return json.skip();
        }
        let mut record = vec![0; children];
        json.expect(b'[')?;
        // The stack that calls those of a list, and whether the list is at its begin.
        let mut lists = vec![(0, true)];
        while let Some((caller, first)) = lists.last_mut() {
            let caller = *caller;
            if !json.element(b']', first)? {
                lists.pop();
                continue;
            }
            for value in &mut record {
                *value = json.number()?;
                json.expect(b',')?;
            }
            json.expect(b'[')?;
            let stack = if caller == 0 {
                ROOT
            } else {
                self.stacks.push((caller, narrow(record[function])));
                self.stacks.len() as u32 - 1 + FIRST
            };
            self.numbers.insert(narrow(record[id]), stack);
            lists.push((stack, true));
        }
        Ok(())
    }

    /// Replaces ids of the tree by numbers.
    pub(super) fn number(&self, graph: &mut HeapGraph) {
        if self.numbers.iter().any(|(id, number)| id != number) {
            for stack in &mut graph.allocated_by {
                stack.0 = self.numbers.get(&stack.0).copied().unwrap_or(0);
            }
        }
    }

    /// The stacks with the texts of these strings.
    pub(super) fn named(&self, strings: &[Box<str>]) -> AllocationStacks {
        let mut texts: HashMap<u32, Arc<str>> = HashMap::new();
        let mut text = |index: u32| {
            let find = || Arc::from(strings.get(index as usize).map_or("", |text| text));
            texts.entry(index).or_insert_with(find).clone()
        };
        let functions = self.functions.iter();
        let functions = functions.map(|[name, file, line]| AllocatingFunction {
            name: text(*name),
            file: text(*file),
            line: *line,
        });
        let stacks = self.stacks.iter().map(|(caller, function)| (AllocationStack(*caller), *function));
        AllocationStacks::from_parts(functions.collect(), stacks.collect())
    }
}

/// The places of these fields, if all are there.
fn places<const N: usize>(fields: &[String], wanted: [&str; N]) -> Option<[usize; N]> {
    let found = wanted.map(|name| fields.iter().position(|field| field == name));
    found.iter().all(Option::is_some).then(|| found.map(Option::unwrap_or_default))
}

fn narrow(number: u64) -> u32 {
    number.min(u32::MAX.into()) as u32
}
