//! The tree of CPU time: which function called which, and for how long.
//!
//! Unlike the complete report, it merges by function instead of line and folds recursion. It omits the outermost frames
//! of the runtime, internal functions of the C library (its entry points stay: `memcpy` is an answer), and inlined
//! library code, whose time belongs to the calling line. Executors and thread pools are one node until the program's
//! code begins.
//!
//! Code without names is not folded as recursion, since nothing proves that it called itself. Consecutive frames of
//! such code in one module are one node.
//!
//! The tree is a partition: each nanosecond is the own time of exactly one node, and children never sum to more than
//! their parent.

use super::function_table::{FunctionNumber, FunctionTable, LineNumber, NO_LINE, TableFrame};
use super::unaccounted_cpu::unaccounted;
use super::waits::{Wait, Waits};
use crate::executors::Executors;
use crate::kinds::Class;
use crate::order;
use crate::queries::weight::Weight;
use foldhash::HashMap;
use stackglass_profile::frame::file_name;
use stackglass_profile::{Cut, Recording, StackId};
use std::collections::BTreeMap;

/// A node of the tree.
#[derive(Clone, Debug)]
pub(crate) struct CpuNode {
    pub parent: u32,
    pub what: NodeKind,
    pub own: Weight,
    pub total: Weight,
    /// It called itself, directly or through others; the recursion is folded into this node.
    pub recursive: bool,
    /// Lines of the function with the time spent in or below them.
    pub lines: HashMap<LineNumber, u64>,
    pub children: Vec<u32>,
    instance: u32,
}

/// What a node stands for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum NodeKind {
    Root,
    /// All processes of one program: index into [`Calls::programs`].
    Program(u32),
    Function(FunctionNumber),
    /// The frames of executors and thread pools that run the program's code.
    Executors(Executors),
    /// Samples whose stacks have no shown frame, or that have no stack for this reason.
    Nothing(Option<Cut>),
    /// CPU time that the kernel counted but no sample covers.
    Unaccounted,
}

/// All processes of one executable.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub name: String,
    pub processes: u64,
}

/// The tree and the tables it points to.
#[derive(Clone, Debug)]
pub(crate) struct CpuTree<'a> {
    pub recording: &'a Recording,
    /// Node 0 is the root; parents come before their children.
    pub nodes: Vec<CpuNode>,
    pub names: FunctionTable,
    pub programs: Vec<Program>,
    /// CPU time that the kernel counted but no sample covers; 0 if it is too little to mention.
    pub unaccounted: u64,
    /// Own time of tasks that wait, by where they wait. It is no own time of functions.
    pub waits: BTreeMap<Wait, Weight>,
    /// By node of executors: the smallest and the largest number of frames that it stands for.
    pub folded: HashMap<u32, (u32, u32)>,
    everything: bool,
    children: HashMap<(u32, NodeKind), u32>,
    /// Cache: the node that a frame leads to from another node.
    steps: HashMap<(u32, FunctionNumber, u32), u32>,
}

/// A stack, or the reason why a sample has none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct StackOrReason {
    stack: StackId,
    reason: Option<Cut>,
}

/// A stack with the weight of its samples.
struct WeightedStack {
    stack: StackOrReason,
    weight: Weight,
}

/// State of a walk along a stack.
#[derive(Clone, Copy, Debug)]
struct Position {
    node: u32,
    /// Line of the innermost function shown.
    line: LineNumber,
    /// Line of the innermost function outside of libraries.
    own_line: LineNumber,
    /// Only start-up code and executors so far.
    starting: bool,
    /// Number of their frames.
    started: u32,
    /// The innermost of their functions.
    starter: FunctionNumber,
    /// The last frame belonged to the C library.
    in_c: bool,
}

impl<'a> CpuTree<'a> {
    /// Builds the tree of all running samples. With `everything`, nothing is omitted or folded.
    pub(crate) fn build(recording: &'a Recording, everything: bool) -> CpuTree<'a> {
        let mut tree = CpuTree {
            recording,
            nodes: Vec::new(),
            names: FunctionTable::new(recording),
            programs: Vec::new(),
            unaccounted: 0,
            waits: BTreeMap::new(),
            folded: HashMap::default(),
            everything,
            children: HashMap::default(),
            steps: HashMap::default(),
        };
        if !everything {
            tree.names.leave_out_interpreter();
        }
        tree.add_node(0, NodeKind::Root);
        let stacks_of = tree.read_samples();
        for (index, stacks) in stacks_of.into_iter().enumerate() {
            if !stacks.is_empty() {
                tree.add_program(index as u32, stacks);
            }
        }
        for number in (1..tree.nodes.len()).rev() {
            let (total, parent) = (tree.nodes[number].total, tree.nodes[number].parent as usize);
            tree.nodes[parent].total += total;
        }
        tree.add_unaccounted();
        for number in 0..tree.nodes.len() {
            let mut children = std::mem::take(&mut tree.nodes[number].children);
            let time = |child: u32| tree.nodes[child as usize].total.time;
            children.sort_by(|a, b| order::longest_first(time(*a), time(*b)));
            tree.nodes[number].children = children;
        }
        tree
    }

    /// Adds a node for unaccounted CPU time, so that shares refer to all CPU time.
    fn add_unaccounted(&mut self) {
        if self.recording.is_walltime() {
            return;
        }
        self.unaccounted = unaccounted(&self.recording.info, self.cpu().time);
        if self.unaccounted > 0 {
            let missing = Weight { time: self.unaccounted, hits: 0 };
            let node = self.add_node(0, NodeKind::Unaccounted) as usize;
            (self.nodes[node].own, self.nodes[node].total) = (missing, missing);
            self.nodes[0].total += missing;
        }
    }

    /// All CPU time, sampled or not.
    pub(crate) fn cpu(&self) -> Weight {
        self.nodes[0].total
    }

    /// Finds the programs. Returns the running stacks of each program with their weights, in order of their ids.
    fn read_samples(&mut self) -> Vec<Vec<WeightedStack>> {
        let mut program_of = Vec::with_capacity(self.recording.processes.len());
        for process in &self.recording.processes {
            let name = file_name(&process.exe);
            let known = self.programs.iter().position(|program| program.name == name);
            let index = known.unwrap_or_else(|| {
                self.programs.push(Program { name: name.to_owned(), processes: 0 });
                self.programs.len() - 1
            });
            self.programs[index].processes += 1;
            program_of.push(index);
        }
        if self.programs.is_empty() {
            self.programs.push(Program { name: String::new(), processes: 0 });
        }
        let mut weights: Vec<HashMap<StackOrReason, Weight>> = vec![HashMap::default(); self.programs.len()];
        for sample in self.recording.samples.iter().filter(|sample| sample.state.uses_cpu()) {
            let process = self.recording.thread(sample.thread).map_or(0, |thread| thread.process.0 as usize);
            let program = program_of.get(process).copied().unwrap_or(0);
            let weight = Weight { time: sample.time.0, hits: u64::from(sample.hits) };
            // Without a stack, the reason is shown instead.
            let reason = if sample.stack == StackId(0) { sample.cut } else { None };
            *weights[program].entry(StackOrReason { stack: sample.stack, reason }).or_default() += weight;
        }
        let sorted = |weights: HashMap<StackOrReason, Weight>| {
            let weighted = weights.into_iter().map(|(stack, weight)| WeightedStack { stack, weight });
            let mut sorted: Vec<WeightedStack> = weighted.collect();
            sorted.sort_by_key(|weighted| weighted.stack);
            sorted
        };
        weights.into_iter().map(sorted).collect()
    }

    fn add_program(&mut self, program: u32, stacks: Vec<WeightedStack>) {
        let root = match self.programs.len() {
            1 => 0,
            _ => self.add_node(0, NodeKind::Program(program)),
        };
        let nodes = self.recording.stacks.nodes();
        // By node of the trie: the weight that ended in it or below it; 0 for nodes that are not on these stacks.
        let mut below = vec![Weight::default(); nodes.len() + 1];
        for WeightedStack { stack, weight } in &stacks {
            below[stack.stack.0 as usize] += *weight;
        }
        for index in (1..below.len()).rev() {
            let (weight, caller) = (below[index], nodes[index - 1].0.0 as usize);
            below[caller] += weight;
        }
        let start = Position {
            node: root,
            line: NO_LINE,
            own_line: NO_LINE,
            starting: true,
            started: 0,
            starter: 0,
            in_c: false,
        };
        let mut reached = vec![start; nodes.len() + 1];
        for (index, (caller, location)) in nodes.iter().enumerate() {
            let weight = below[index + 1];
            if weight == Weight::default() {
                continue;
            }
            let mut at = reached[caller.0 as usize];
            for frame in 0..self.names.frames(*location).len() {
                let shown = self.names.frames(*location)[frame];
                at = self.step(at, shown);
                if at.node != root {
                    *self.nodes[at.node as usize].lines.entry(at.line).or_default() += weight.time;
                }
            }
            reached[index + 1] = at;
        }
        let waits = Waits::new(self.recording).map(|waits| {
            let lines = self.names.lines.iter().enumerate();
            let lines = lines.map(|(number, line)| ((line.file.clone(), line.line), number as LineNumber));
            (waits, lines.collect::<HashMap<_, _>>())
        });
        for WeightedStack { stack: StackOrReason { stack, reason }, weight } in &stacks {
            let at = reached[stack.0 as usize];
            let node = match self.nodes[at.node as usize].what {
                _ if at.node == root => self.child(root, NodeKind::Nothing(*reason)),
                // An executor's own work has its function.
                NodeKind::Executors(_) => {
                    self.fold_executors(at);
                    let node = self.child(at.node, NodeKind::Function(at.starter));
                    *self.nodes[node as usize].lines.entry(at.line).or_default() += weight.time;
                    node
                }
                _ => at.node,
            };
            self.nodes[node as usize].own += *weight;
            self.nodes[node as usize].total += *weight;
            if let Some((waits, lines)) = &waits
                && let Some(wait) = waits.of(*stack)
            {
                let line = lines.get(&(wait.file.clone(), wait.line)).copied().unwrap_or(NO_LINE);
                self.names.lines[line as usize].own += *weight;
                *self.waits.entry(wait).or_default() += *weight;
            } else if let NodeKind::Function(function) = self.nodes[node as usize].what {
                self.names.functions[function as usize].own += *weight;
                self.names.lines[at.own_line as usize].own += *weight;
            }
        }
        self.add_totals(&below);
    }

    /// Moves one frame towards the leaf.
    fn step(&mut self, at: Position, frame: TableFrame) -> Position {
        let in_c = frame.class == Class::C;
        let under_executors = matches!(self.nodes[at.node as usize].what, NodeKind::Executors(_));
        let starting = at.starting
            && !self.everything
            && (frame.start || !frame.executor.is_none() || (frame.glue && under_executors));
        if starting {
            let own_line = if frame.executor.is_none() { at.own_line } else { frame.line };
            let node =
                if frame.executor.is_none() { at.node } else { self.executors(at.node, frame.executor) };
            let started = at.started + 1;
            let starter = frame.function;
            return Position { node, line: frame.line, own_line, starting, started, starter, in_c };
        }
        if at.starting && under_executors {
            self.fold_executors(at);
        }
        let hidden = !self.everything
            && ((in_c && at.in_c)
                || (frame.nameless
                    && self.nodes[at.node as usize].what == NodeKind::Function(frame.function))
                || (frame.inlined && frame.class == Class::Std && !at.starting));
        if hidden {
            return Position { starting, in_c, ..at };
        }
        let own_line = if frame.own { frame.line } else { at.own_line };
        let next = Position { line: frame.line, own_line, starting, in_c, ..at };
        if let Some(node) = self.steps.get(&(at.node, frame.function, frame.instance)) {
            return Position { node: *node, ..next };
        }
        let node = match self.caller_to_fold_into(at.node, frame) {
            Some(caller) => {
                self.nodes[caller as usize].recursive = true;
                caller
            }
            None => self.child(at.node, NodeKind::Function(frame.function)),
        };
        if self.nodes[node as usize].instance == u32::MAX {
            self.nodes[node as usize].instance = frame.instance;
        }
        self.steps.insert((at.node, frame.function, frame.instance), node);
        Position { node, ..next }
    }

    /// The node of executors below the same caller, with one more.
    fn executors(&mut self, node: u32, executor: Executors) -> u32 {
        match self.nodes[node as usize].what {
            NodeKind::Executors(known) if known.and(executor) == known => node,
            NodeKind::Executors(known) => {
                self.child(self.nodes[node as usize].parent, NodeKind::Executors(known.and(executor)))
            }
            _ => self.child(node, NodeKind::Executors(executor)),
        }
    }

    /// Notes how many frames a node of executors stands for.
    fn fold_executors(&mut self, at: Position) {
        let (least, most) = self.folded.entry(at.node).or_insert((at.started, at.started));
        (*least, *most) = ((*least).min(at.started), (*most).max(at.started));
    }

    /// The nearest ancestor of the same function. Library code is never folded, since a function such as `call_once`
    /// runs different things each time. Neither is code without names, which may be any function.
    fn caller_to_fold_into(&self, from: u32, frame: TableFrame) -> Option<u32> {
        if self.everything || frame.class != Class::Own || frame.nameless {
            return None;
        }
        let mut node = from;
        while node != 0 {
            let call = &self.nodes[node as usize];
            if call.what == NodeKind::Function(frame.function) && call.instance == frame.instance {
                return Some(node);
            }
            node = call.parent;
        }
        None
    }

    fn child(&mut self, parent: u32, what: NodeKind) -> u32 {
        match self.children.get(&(parent, what)) {
            Some(child) => *child,
            None => self.add_node(parent, what),
        }
    }

    fn add_node(&mut self, parent: u32, what: NodeKind) -> u32 {
        let number = self.nodes.len() as u32;
        self.nodes.push(CpuNode {
            parent,
            what,
            own: Weight::default(),
            total: Weight::default(),
            recursive: false,
            lines: HashMap::default(),
            children: Vec::new(),
            instance: u32::MAX,
        });
        if number > 0 {
            self.nodes[parent as usize].children.push(number);
            self.children.insert((parent, what), number);
        }
        number
    }

    /// Adds to each function the time it was on the stack. Recursion counts once.
    fn add_totals(&mut self, below: &[Weight]) {
        let nodes = self.recording.stacks.nodes();
        let mut callees: Vec<Vec<u32>> = vec![Vec::new(); below.len()];
        for (index, (caller, _)) in nodes.iter().enumerate() {
            if below[index + 1] != Weight::default() {
                callees[caller.0 as usize].push(index as u32 + 1);
            }
        }
        let mut on_stack = vec![0_u32; self.names.functions.len()];
        let mut open: Vec<(u32, bool)> = callees[0].iter().map(|node| (*node, true)).collect();
        while let Some((node, entering)) = open.pop() {
            if entering {
                open.push((node, false));
                open.extend(callees[node as usize].iter().map(|callee| (*callee, true)));
            }
            let location = nodes[node as usize - 1].1;
            for frame in 0..self.names.frames(location).len() {
                let function = self.names.frames(location)[frame].function as usize;
                if !entering {
                    on_stack[function] -= 1;
                    continue;
                }
                if on_stack[function] == 0 {
                    self.names.functions[function].total += below[node as usize];
                }
                on_stack[function] += 1;
            }
        }
    }
}
