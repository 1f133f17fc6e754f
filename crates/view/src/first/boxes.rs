//! Functions, and the boxes of the flame graph: nodes of a function below the same callers, whatever their lines.

use crate::columns::{Columns, zigzag};
use crate::frames::{FrameTable, Strings};
use crate::nodes::Nodes;
use foldhash::HashMap;
use stackglass_flame::Category;
use stackglass_profile::Sample;
use stackglass_profile::frame::file_name;

/// Functions: frames of the same name and module. They have the numbers of the page, from 1; number 0 is the root.
#[derive(Clone, Debug)]
pub(super) struct Functions {
    rows: Vec<Function>,
    of_frame: Vec<u32>,
}

#[derive(Clone, Debug, Default)]
struct Function {
    name: String,
    full: String,
    file: String,
    line: i64,
    module: String,
    krate: String,
    category: u64,
}

impl Functions {
    pub(super) fn of(frames: &FrameTable) -> Functions {
        let mut rows = vec![Function::default()];
        let mut numbers = HashMap::default();
        let of_frame = (0..frames.count()).map(|frame| {
            *numbers.entry((frames.names[frame], frames.modules[frame])).or_insert_with(|| {
                let text = |number: u64| frames.strings[number as usize].clone();
                let module = text(frames.modules[frame]);
                let krate = text(frames.crates[frame]);
                rows.push(Function {
                    name: text(frames.names[frame]),
                    full: text(frames.full[frame]),
                    file: text(frames.files[frame]),
                    line: frames.lines[frame],
                    krate: if krate.is_empty() { file_name(&module).to_owned() } else { krate },
                    module,
                    category: frames.categories[frame],
                });
                rows.len() as u32 - 1
            })
        });
        let of_frame = of_frame.collect();
        Functions { rows, of_frame }
    }

    /// How many there are, the root included.
    pub(super) fn count(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn name(&self, number: u32) -> &str {
        &self.rows[number as usize].name
    }

    pub(super) fn category(&self, number: u32) -> u64 {
        self.rows[number as usize].category
    }
}

/// Boxes with their CPU time. Callers have smaller numbers than callees.
#[derive(Clone, Debug)]
pub(super) struct Boxes {
    boxes: Vec<CallBox>,
    of_node: Vec<u32>,
    /// Own time by category.
    categories: Vec<u64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct CallBox {
    parent: u32,
    function: u32,
    own: u64,
    total: u64,
    hits: u64,
}

impl Boxes {
    pub(super) fn new(samples: &[&Sample], nodes: &Nodes, functions: &Functions) -> Boxes {
        let mut boxes = vec![CallBox::default()];
        let mut numbers = HashMap::default();
        let parents = nodes.parents();
        let mut of_node = vec![0; nodes.count()];
        for node in 1..nodes.count() {
            let parent = of_node[parents[node] as usize];
            let frame = nodes.frame(node as u32).expect("only the root has no frame");
            let function = functions.of_frame[frame as usize];
            of_node[node] = *numbers.entry((parent, function)).or_insert_with(|| {
                boxes.push(CallBox { parent, function, ..CallBox::default() });
                boxes.len() as u32 - 1
            });
        }
        for sample in samples.iter().filter(|sample| sample.state.uses_cpu()) {
            let at = &mut boxes[of_node[nodes.of_stack(sample.stack) as usize] as usize];
            at.own += sample.time.0;
            at.hits += u64::from(sample.hits);
        }
        let mut categories = vec![0; Category::ALL.len()];
        for at in (0..boxes.len()).rev() {
            boxes[at].total += boxes[at].own;
            let CallBox { parent, function, own, total, hits } = boxes[at];
            if at > 0 {
                boxes[parent as usize].total += total;
                boxes[parent as usize].hits += hits;
                categories[functions.category(function) as usize] += own;
            }
        }
        Boxes { boxes, of_node, categories }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.boxes.len()
    }

    /// Total and own time of all, and hits.
    pub(super) fn root(&self) -> [u64; 3] {
        let CallBox { total, own, hits, .. } = self.boxes[0];
        [total, own, hits]
    }

    /// The box of a node.
    pub(super) fn of_node(&self, node: u32) -> u32 {
        self.of_node[node as usize]
    }

    /// The function of a box.
    pub(super) fn function(&self, number: u32) -> u32 {
        self.boxes[number as usize].function
    }

    /// The functions from that of a box to the outermost one.
    pub(super) fn way_out(&self, number: u32) -> impl Iterator<Item = u32> {
        let above = |number: &u32| Some(self.boxes[*number as usize].parent).filter(|parent| *parent > 0);
        std::iter::successors(Some(number).filter(|number| *number > 0), above)
            .map(|number| self.boxes[number as usize].function)
    }

    /// Adds the columns of boxes of which not more than `narrowest` fit into the whole, and of their functions.
    pub(super) fn write(&self, narrowest: u64, functions: &Functions, columns: &mut Columns) {
        let whole = u128::from(self.boxes[0].total);
        let is_wide = |of: &CallBox| of.total > 0 && u128::from(of.total) * u128::from(narrowest) >= whole;
        // What is called has no more time than its callers, so that those are there as well.
        let mut place = vec![0_u64; self.boxes.len()];
        let mut kept: Vec<(u64, &CallBox)> = Vec::new();
        for (number, of) in self.boxes.iter().enumerate().skip(1).filter(|(_, of)| is_wide(of)) {
            place[number] = kept.len() as u64 + 1;
            kept.push((place[number] - place[of.parent as usize], of));
        }
        let mut used: Vec<u32> = kept.iter().map(|(_, of)| of.function).collect();
        used.sort_unstable();
        used.dedup();
        let index = |of: &CallBox| used.binary_search(&of.function).expect("it is used") as u64;
        columns.push("boxes.above", kept.iter().map(|(above, _)| *above));
        columns.push("boxes.function", kept.iter().map(|(_, of)| index(of)));
        columns.push("boxes.total", kept.iter().map(|(_, of)| of.total));
        columns.push("boxes.own", kept.iter().map(|(_, of)| of.own));
        columns.push("boxes.hits", kept.iter().map(|(_, of)| of.hits));
        columns.push("categories.own", self.categories.iter().copied());
        let mut strings = Strings::default();
        let rows: Vec<&Function> = used.iter().map(|number| &functions.rows[*number as usize]).collect();
        columns.push("functions.number", used.iter().map(|number| u64::from(*number)));
        let mut push = |name, text: fn(&Function) -> &String| {
            columns.push(name, rows.iter().map(|row| strings.intern(text(row))));
        };
        push("functions.name", |of| &of.name);
        push("functions.full", |of| &of.full);
        push("functions.file", |of| &of.file);
        push("functions.module", |of| &of.module);
        push("functions.crate", |of| &of.krate);
        columns.push("functions.line", rows.iter().map(|row| zigzag(row.line)));
        columns.push("functions.category", rows.iter().map(|row| row.category));
        columns.push_text("strings", &strings.json());
    }
}
