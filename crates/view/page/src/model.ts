// What the page knows of a recording, and what it asks the worker.

import type { Heap, HeapHead } from "./kernel/heap.ts";
import type { Sampling } from "./kernel/sampling.ts";
import type { Live } from "./kernel/live.ts";
import type { Code } from "./kernel/code.ts";
import type { Source, SourceFile } from "./kernel/lines.ts";
import type { Order } from "./kernel/order.ts";
import type { TaskDump } from "./kernel/taskdump.ts";
import type { TaskNames, TaskTimes } from "./kernel/tasks.ts";
import type { Growth, Piece } from "./kernel/pieces.ts";
import type { Transform } from "./kernel/transforms.ts";

export interface Category { name: string; color: string }
export interface ProcessLane { pid: number; name: string; start: number; end: number | null }
export interface ThreadLane { process: number; tid: number; name: string; start: number; end: number | null }

// The head of a recording: all but its columns. Times are ns since the start.
export interface Head {
  title: string;
  // The file of the recording, as a command names it; null for a stream.
  file: string | null;
  command: string; machine: string; writer: string; remarks: string[];
  wall: number; delay: number;
  // A profile by wall time of tasks: it has no CPU time.
  walltime: boolean;
  // Its samples have counts, and no times: what counts is hits.
  untimed: boolean;
  categories: Category[]; processes: ProcessLane[]; threads: ThreadLane[];
  nodes: number; samples: number;
  // Why stacks are incomplete, in the words of the reports: the meaning follows a percentage, the remedy may be empty.
  cuts?: { number: number; meaning: string; remedy: string }[];
  allocations?: AllocationsHead | null;
  heap: HeapHead | null;
  // Labels and texts of `stackglass info`.
  facts: [string, string][];
  // Tasks that the recording names, those with samples, and where await stacks of one moment come from.
  tasks: { named: number; sampled: number; dump: string | null } | null;
  // Files of source lines, those whose text is in the page, and whether texts were asked for.
  sources: { files: number; texts: number; asked: boolean };
  // Disassembled functions, if they were asked for.
  code: { functions: number; instructions: number } | null;
  // An earlier recording to compare with: its threads and processes come after those of the recording. `allocations`: both have them.
  before?: { name: string; threadsAfter: number; processesAfter: number; wall: number; allocations?: boolean } | null;
  columns: [string, number][];
}

// Without samples, allocations are what there is.
export function startsWithBytes({ samples, allocations }: Pick<Head, "samples" | "allocations">): boolean {
  return samples === 0 && Boolean(allocations);
}

export type Range = [number, number];

// What is known of allocations. `exact`: every one was recorded. `kept`: a snapshot tells what something holds at the end. `processes`: by
// index, how they were recorded. `notes`: what limits the numbers; `leakNotes`: what limits those of leaks, too.
export interface AllocationsHead { exact: boolean; kept: boolean; slices: number; processes: [number, Sampling][]; notes: string[]; leakNotes: string[] }

// What counts: time on a CPU, asleep, ready (waiting for a CPU), or all of it; or what was allocated, in the words of `--metric`.
export const TIMES = ["cpu", "asleep", "ready", "wall"] as const;
export type Time = (typeof TIMES)[number];
export const METRICS = ["bytes", "count", "live-bytes", "live-count", "peak-bytes", "leaked-bytes", "temporary"] as const;
export type Metric = (typeof METRICS)[number];
export type Measure = Time | Metric;

export function isMetric(measure: Measure): measure is Metric {
  return (METRICS as readonly Measure[]).includes(measure);
}

// What is shown where only time can be.
export function timeMeasure(measure: Measure): Time {
  return isMetric(measure) ? "cpu" : measure;
}

// What rows of allocations are, in the words and the order of `allocs --by`.
export const ALLOCATION_KEYS = ["type", "site", "line", "function", "crate", "thread", "process", "size"] as const;
export type AllocationKey = (typeof ALLOCATION_KEYS)[number];

// Rows of allocations: names, as they are short, functions of sites, a thread and a process of each. Columns of numbers have the sum of all
// rows last. `slices`: which were counted, if it is not the whole time. `why`: nothing is known.
export interface AllocationRows {
  by: AllocationKey; names: string[]; short: string[]; functions: string[]; thread: Int32Array; process: Int32Array;
  count: Float64Array; bytes: Float64Array; liveCount: Float64Array; liveBytes: Float64Array; leakedCount: Float64Array; leakedBytes: Float64Array;
  peakBytes: Float64Array; temporary: Float64Array; error: Float64Array; sites: Float64Array;
  typed: number; mappings: { count: number; bytes: number; liveBytes: number };
  slices: { range: Range; count: number } | null; why: string | null;
}

// Which samples count. `threads`: numbers from 1; null for all. `type`: of allocations, only those of this type.
export interface Selection { range: Range | null; threads: number[] | null; measure: Measure; type?: string }

// The tree of calls, merged by function. Box 0 is the root. Parents come before their children.
export interface Tree {
  parent: Int32Array; func: Int32Array; depth: Int32Array;
}
// A function: name, full name, file, module, crate (or the file name of the module), category. `whole`: it stands for all functions of its
// crate.
export interface Func { name: string; full: string; file: string; line: number; module: string; crate: string; category: number; whole?: boolean }

// Own and total time of each box and each function, ns, and samples with each on the stack; or values of allocations, and how many those are
// of. `samples`: on how many samples shares are based, infinite if nothing was sampled. `why`: nothing is known.
export interface Counts {
  measure: Measure; own: Float64Array; total: Float64Array; hits: Float64Array; funcOwn: Float64Array; funcTotal: Float64Array; funcHits: Float64Array; samples: number;
  why: string | null;
}

// A lane of the time axis: its threads (null for all), and whether the times in which they do not run are asked for.
export interface LaneOf { threads: number[] | null; waits: boolean }

// For each lane, `parts` rows of equal parts of a range, ns. What is in a row: `columnsOf` in kernel/bins.ts.
export interface Bins { parts: number; rows: Float32Array }

// The function and state in which a lane spent most of a range.
export interface Largest { func: number; state: "running" | "asleep" | "ready"; time: number }

// By number of thread, ns.
export interface ThreadTimes { cpu: Float64Array; asleep: Float64Array; ready: Float64Array }

// A function, or where it is in the tree: functions from below the root to it, which is at the bottom of stacks or at their top.
export interface Place { func: number; way: number[] | null; direction: "down" | "up" }

// The time at a place, and of it that of incomplete stacks by the number of the reason, ns.
export interface Cuts { total: number; times: Float64Array }

// Graphs that the worker keeps: what flame graph and call tree show, and both sides of a function.
export type GraphSlot = "shown" | "callers" | "callees";

export type Question =
  // A part of the columns of a recording, or of what it has become. Then they are read.
  | { kind: "part"; columns: string }
  | { kind: "load"; head: Head }
  // Transforms for the questions with this number. The two last ones are kept.
  | { kind: "shape"; shape: number; transforms: Transform[] }
  | { kind: "count"; selection: Selection; shape?: number }
  // Counts that the worker keeps for graphs, by number. The two last ones are kept.
  | { kind: "counted"; number: number; selection: Selection; other: Selection | null; shape: number }
  | { kind: "graph"; slot: GraphSlot; graph: number; counted: number; direction: "down" | "up"; start: number | null; growth: Growth }
  | { kind: "grow"; slot: GraphSlot; graph: number; growth: Growth }
  | { kind: "order"; thread: number; measure: Time; range: [number, number]; least: number; shape: number }
  | { kind: "bins"; lanes: LaneOf[]; range: [number, number]; parts: number; lit: number | null }
  | { kind: "largest"; threads: number[] | null; range: [number, number] }
  | { kind: "threadTimes"; range: [number, number] | null }
  | { kind: "cuts"; selection: Selection; shape: number; place: Place }
  | { kind: "allocations"; selection: Selection; by: AllocationKey; shape: number }
  | { kind: "live" }
  | { kind: "heap" }
  | { kind: "facts" }
  | { kind: "sourceFiles" }
  | { kind: "sourceText"; file: number }
  // The lines of a file by number, else of that of a function, else of the one with most time.
  | { kind: "source"; selection: Selection; shape: number; func: number | null; file: number | null }
  // The disassembled functions of a line, or of a function, and the instructions of one of them.
  | { kind: "code"; selection: Selection; shape: number; place: { file: number; line: number } | null; func: number | null; number: number | null }
  | { kind: "taskNames" }
  | { kind: "taskTimes"; selection: Selection }
  // Names are searched by a worker of its own, which can be stopped.
  | { kind: "names"; names: string[] }
  | { kind: "search"; text: string };

export interface Answers {
  part: Record<string, never>;
  load: { tree: Tree; funcs: Func[]; times: ThreadTimes };
  shape: { tree: Tree };
  count: Counts;
  counted: { counts: Counts; other: Counts | null };
  graph: { piece: Piece } | null;
  grow: { piece: Piece } | null;
  order: Order;
  bins: Bins;
  largest: Largest | null;
  threadTimes: ThreadTimes;
  cuts: Cuts;
  allocations: AllocationRows;
  live: Live;
  heap: { heap: Heap };
  facts: { parts: string };
  sourceFiles: { files: SourceFile[] };
  sourceText: { text: string | null };
  source: Source;
  code: Code;
  taskNames: { names: TaskNames; dump: TaskDump | null };
  taskTimes: TaskTimes;
  names: object;
  search: { mask: Uint8Array };
}
