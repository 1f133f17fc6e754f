// The worker: expands the columns and counts, so that the page never waits.

import { Expanding, split } from "./decode.ts";
import { childrenOf, Graph, type Counted } from "./graph.ts";
import { counts, Kernel } from "./kernel.ts";
import { readHeap } from "./kernel/heap.ts";
import { Disassembly } from "./kernel/code.ts";
import { Lines } from "./kernel/lines.ts";
import { Names } from "./kernel/names.ts";
import { Cutter } from "./kernel/pieces.ts";
import { taskNames, TaskSamples } from "./kernel/tasks.ts";
import { transformed, type Shape, type Transform } from "./kernel/transforms.ts";
import { type Counts, type Head, type Question, timeMeasure, type Tree } from "./model.ts";

let expanding: Expanding | undefined;
let kernel: Kernel | undefined;
let head: Head | undefined;
let columns: Map<string, Uint8Array>;
let lines: Lines | undefined;
let code: Disassembly | undefined;
let tasks: TaskSamples | undefined;
let sampled = 0;
let names: Names | undefined;
const shapes = new Map<number, { transforms: Transform[]; made: Shape | undefined }>();
const held = new Map<number, Counted>();
const graphs = new Map<string, { number: number; cutter: Cutter }>();
let branches: { tree: Tree; children: Int32Array; first: Int32Array } | undefined;

self.onmessage = async ({ data }: MessageEvent<{ id: number; question: Question }>) => {
  try {
    const answer = await answerTo(data.question);
    self.postMessage({ id: data.id, answer }, { transfer: buffersOf(answer) });
  } catch (error) {
    self.postMessage({ id: data.id, error: String(error) });
  }
};

// The columns of an answer, and of the objects in it.
function buffersOf(answer: unknown, deeper = true): ArrayBuffer[] {
  return Object.values(answer ?? {}).flatMap((value) => {
    if (ArrayBuffer.isView(value)) return [value.buffer as ArrayBuffer];
    return deeper && value && typeof value === "object" && !Array.isArray(value) ? buffersOf(value, false) : [];
  });
}

function copied<T extends object>(columns: T): T {
  return Object.fromEntries(Object.entries(columns).map(([name, column]) => [name, ArrayBuffer.isView(column) ? (column as Float64Array).slice() : column])) as T;
}

// Keeps what is counted, and answers with a copy.
function keep(number: number, counts: Counts, other: Counts | null, tree: Tree) {
  if (branches?.tree !== tree) branches = { tree, ...childrenOf(tree) };
  held.set(number, { ...counts, ...branches, other });
  for (const old of [...held.keys()].slice(0, -2)) held.delete(old);
  return { counts: copied(counts), other: other && copied(other) };
}

async function answerTo(question: Question): Promise<unknown> {
  if (question.kind === "part") {
    (expanding ??= new Expanding()).add(question.columns);
    return {};
  }
  if (question.kind === "load") {
    const bytes = (expanding ?? new Expanding()).end();
    expanding = undefined;
    const expanded = split(question.head, await bytes);
    // The recording may have grown: what has a number keeps it.
    const made = new Kernel(question.head, expanded, kernel?.funcs);
    [head, columns, kernel] = [question.head, expanded, made];
    sampled = head.tasks?.sampled ?? 0;
    lines = code = tasks = undefined;
    for (const shape of shapes.values()) shape.made = undefined;
    const { parent, func, depth } = kernel.tree;
    // The worker needs its own.
    return { tree: { parent: parent.slice(), func: func.slice(), depth: depth.slice() }, funcs: kernel.funcs, times: kernel.threadTimes(null) };
  }
  if (question.kind === "names") {
    names = new Names(question.names);
    return {};
  }
  if (question.kind === "search") return { mask: names!.search(question.text) };
  if (!kernel) throw new Error("nothing is loaded");
  // Made when sources are first asked for.
  const sources = () => (lines ??= new Lines(kernel!, head!, columns));
  const shapeOf = (number: number | undefined) => {
    const of = shapes.get(number ?? -1);
    return of ? (of.made ??= transformed(kernel!.tree, of.transforms)) : kernel!.whole;
  };
  switch (question.kind) {
    case "shape": {
      const shape = transformed(kernel.tree, question.transforms);
      shapes.set(question.shape, { transforms: question.transforms, made: shape });
      for (const old of [...shapes.keys()].slice(0, -2)) shapes.delete(old);
      const { parent, func, depth } = shape.tree;
      return { tree: { parent: parent.slice(), func: func.slice(), depth: depth.slice() } };
    }
    case "count": return kernel.count(question.selection, shapeOf(question.shape));
    case "counted": {
      const shape = shapeOf(question.shape);
      const other = question.other ? kernel.count(question.other, shape) : null;
      return keep(question.number, kernel.count(question.selection, shape), other, shape.tree);
    }
    case "graph": {
      const counted = held.get(question.counted);
      if (!counted) return null;
      const cutter = new Cutter(new Graph(counted, question.direction, question.start));
      graphs.set(question.slot, { number: question.graph, cutter });
      return { piece: cutter.grow(question.growth) };
    }
    case "grow": {
      const graph = graphs.get(question.slot);
      return graph?.number === question.graph ? { piece: graph.cutter.grow(question.growth) } : null;
    }
    case "order": return kernel.order(question.thread, question.measure, question.range, question.least, shapeOf(question.shape));
    case "bins": return kernel.bins(question.lanes, question.range, question.parts, question.lit);
    case "largest": return kernel.largest(question.threads, question.range);
    case "cuts": return kernel.cuts(question.selection, question.place, shapeOf(question.shape));
    case "allocations": return kernel.allocationRows(question.selection, question.by, shapeOf(question.shape));
    case "live": return kernel.live();
    case "heap": return { heap: readHeap(columns) };
    case "sourceFiles": return { files: sources().files };
    case "sourceText": return { text: sources().text(question.file) };
    case "source": return sources().source(question.selection, shapeOf(question.shape), question.func, question.file);
    case "code": {
      code ??= new Disassembly(kernel, head!, columns);
      return code.code(question.selection, shapeOf(question.shape), question.place, question.func, question.number);
    }
    case "facts": return { parts: new TextDecoder().decode(columns.get("facts.parts")) };
    case "taskNames": {
      const dump = columns.get("tasks.dump");
      return { names: taskNames(columns), dump: dump ? JSON.parse(new TextDecoder().decode(dump)) : null };
    }
    case "taskTimes": return (tasks ??= new TaskSamples(kernel, columns, sampled)).count(question.selection, counts[timeMeasure(question.selection.measure)]);
    case "threadTimes": return kernel.threadTimes(question.range);
  }
}
