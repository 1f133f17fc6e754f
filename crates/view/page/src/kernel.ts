// Counts a recording for a selection. Pure: no DOM, no clock, no messages.
//
// Stack nodes come in pre-order. Boxes merge the nodes of a function below the same callers, whatever their lines. Times are ns. A sample
// counts with the part of it that lies in the range (kernel/part.ts), so that the counts of adjacent ranges add up.

import { entries, numbers, signed } from "./decode.ts";
import { Allocations, type Chosen } from "./kernel/allocations.ts";
import { Lanes } from "./kernel/bins.ts";
import { boxesAt } from "./kernel/cuts.ts";
import type { Live } from "./kernel/live.ts";
import { Calls, type Order } from "./kernel/order.ts";
import { ownThreads } from "./kernel/own.ts";
import { within } from "./kernel/part.ts";
import { unchanged, type Shape } from "./kernel/transforms.ts";
import { type AllocationKey, type AllocationRows, type Bins, type Counts, type Cuts, type Func, type Head, isMetric, type LaneOf, type Largest, type Place, type Selection, type ThreadTimes, type Time, timeMeasure, type Tree } from "./model.ts";

// Numbers of states (crates/profile/src/recording.rs).
const AWAKE = 1, ASLEEP = 2, TASK = 3, READY = 4;

export const counts: Record<Time, (state: number) => boolean> = {
  cpu: (state) => state === AWAKE || state === TASK,
  asleep: (state) => state === ASLEEP,
  ready: (state) => state === READY,
  wall: () => true,
};

export class Kernel {
  readonly tree: Tree;
  readonly funcs: Func[];
  private readonly categories: number;
  private readonly threads: number;
  // The threads up to this number are those of the recording, others those of an earlier one.
  private readonly own: number;
  // The function of each frame, and the box of each node.
  readonly funcOf: Int32Array;
  readonly boxOf: Int32Array;
  // By sample.
  readonly clock: Float64Array;
  readonly time: Float64Array;
  readonly spread: Float64Array;
  readonly box: Int32Array;
  readonly thread: Int32Array;
  readonly state: Uint8Array;
  readonly hits: Float64Array;
  // The number of why its stack is incomplete; 0: it is not.
  private readonly cut: Uint8Array;
  // Made when they are first asked for.
  private made: Lanes | undefined;
  private allocated: Allocations | undefined;
  private readonly makeAllocations: () => Allocations;
  // The category of the innermost function, by box.
  private readonly category: Uint8Array;
  // The tree without any transform.
  readonly whole: Shape;
  private outermostOf: { tree: Tree; is: Uint8Array } | undefined;

  // `known`: functions of an earlier state of the recording. They keep their numbers.
  constructor(head: Head, columns: Map<string, Uint8Array>, known: readonly Func[] = []) {
    const column = (name: string, count: number) => {
      const bytes = columns.get(name);
      if (!bytes) throw new Error(`there is no column ${name}`);
      return numbers(bytes, count);
    };
    const strings: string[] = JSON.parse(new TextDecoder().decode(columns.get("strings")));
    const frameCount = entries(columns.get("frames.name")!);
    const name = column("frames.name", frameCount), full = column("frames.full", frameCount);
    const file = column("frames.file", frameCount), module = column("frames.module", frameCount);
    const line = column("frames.line", frameCount), category = column("frames.category", frameCount);

    const krate = columns.has("frames.crate") ? column("frames.crate", frameCount) : new Float64Array(frameCount);

    // Functions: frames of the same name and module.
    const funcs: Func[] = known.length ? known.slice() : [{ name: "all", full: "", file: "", line: 0, module: "", crate: "", category: 0 }];
    const knownAs = new Map(known.slice(1).map((func, i) => [keyOf(func), i + 1]));
    const numbersOf = new Map<string, number>();
    const funcOf = new Int32Array(frameCount);
    for (let i = 0; i < frameCount; i++) {
      const key = `${name[i]} ${module[i]}`;
      let func = numbersOf.get(key);
      if (func === undefined) {
        const of: Func = {
          name: strings[name[i]], full: strings[full[i]], file: strings[file[i]], line: signed(line[i]),
          module: strings[module[i]], crate: strings[krate[i]] || fileName(strings[module[i]]), category: category[i],
        };
        func = knownAs.get(keyOf(of)) ?? funcs.length;
        numbersOf.set(key, func);
        funcs[func] = of;
      }
      funcOf[i] = func;
    }

    this.funcOf = funcOf;
    addCrates(funcs);

    const nodes = head.nodes - 1;
    const left = column("nodes.left", nodes), frame = column("nodes.frame", nodes);
    const boxOf = this.boxOf = new Int32Array(head.nodes);
    const parent = [-1], func = [0], depth = [0];
    const boxes = new Map<number, number>();
    const path = [0];
    for (let i = 0; i < nodes; i++) {
      path.length -= left[i];
      const above = boxOf[path[path.length - 1]];
      const of = funcOf[frame[i]];
      const key = above * funcs.length + of;
      let box = boxes.get(key);
      if (box === undefined) {
        box = parent.length;
        boxes.set(key, box);
        parent.push(above);
        func.push(of);
        depth.push(depth[above] + 1);
      }
      boxOf[i + 1] = box;
      path.push(i + 1);
    }
    this.tree = { parent: Int32Array.from(parent), func: Int32Array.from(func), depth: Int32Array.from(depth) };
    this.funcs = funcs;
    this.category = Uint8Array.from(func, (of) => funcs[of].category);
    this.whole = unchanged(this.tree);
    this.categories = head.categories.length;
    this.threads = head.threads.length;
    this.own = ownThreads(head);

    this.makeAllocations = () => {
      if (!head.allocations) throw new Error("there are no allocations");
      return new Allocations(head.allocations, columns, boxOf);
    };

    const count = head.samples;
    this.clock = column("samples.clock", count);
    for (let i = 1; i < count; i++) this.clock[i] += this.clock[i - 1];
    this.box = Int32Array.from(column("samples.node", count), (node) => boxOf[node]);
    this.thread = Int32Array.from(column("samples.thread", count));
    this.state = Uint8Array.from(column("samples.state", count));
    this.hits = column("samples.hits", count);
    this.time = column("samples.time", count);
    this.cut = columns.has("samples.cut") ? Uint8Array.from(column("samples.cut", count)) : new Uint8Array(count);
    this.spread = columns.has("samples.spread") ? column("samples.spread", count) : new Float64Array(count);
  }

  // Own and total time of the boxes of a shape, and of functions.
  count(selection: Selection, shape: Shape = this.whole): Counts {
    const { map, tree: { parent, func } } = shape;
    const { measure } = selection;
    const folded = isMetric(measure) ? this.allocations.folded(this.chosenOf(selection), measure, map, parent.length) : this.folded(selection, measure, map, parent.length);
    const { own, hits } = folded;
    const total = own.slice(), totalHits = hits.slice();
    for (let box = parent.length - 1; box > 0; box--) {
      total[parent[box]] += total[box];
      totalHits[parent[box]] += totalHits[box];
    }
    const outermost = this.outermost(shape.tree);
    const [funcOwn, funcTotal, funcHits] = [0, 1, 2].map(() => new Float64Array(this.funcs.length));
    for (let box = 1; box < parent.length; box++) {
      funcOwn[func[box]] += own[box];
      if (outermost[box]) {
        funcTotal[func[box]] += total[box];
        funcHits[func[box]] += totalHits[box];
      }
    }
    return { measure, own, total, hits: totalHits, funcOwn, funcTotal, funcHits, samples: folded.samples ?? totalHits[0], why: folded.why ?? null };
  }

  // Time and samples by box of a shape that has so many boxes. `map`: for what `at` has of each sample, the box; -1: it does not count.
  folded(selection: Selection, measure: Time, map: Int32Array, boxes: number, at: Int32Array = this.box): { own: Float64Array; hits: Float64Array; samples?: number; why?: string | null } {
    const own = new Float64Array(boxes), hits = new Float64Array(boxes);
    const [from, to] = selection.range ?? [-Infinity, Infinity];
    const chosen = this.chosen(selection.threads);
    const is = counts[measure];
    const does = Uint8Array.from({ length: 256 }, (_, state) => (is(state) ? 1 : 0));
    for (let i = 0; i < this.clock.length; i++) {
      if (!does[this.state[i]] || !chosen[this.thread[i]]) continue;
      const box = map[at[i]];
      if (box < 0) continue;
      const clock = this.clock[i];
      own[box] += within(from, to, clock, this.time[i], this.spread[i]);
      if (from < clock && clock <= to) hits[box] += this.hits[i];
    }
    return { own, hits };
  }

  // The time at a place of a shape, and why stacks are incomplete there.
  cuts(selection: Selection, place: Place, { map, tree }: Shape = this.whole): Cuts {
    const is = boxesAt(tree, place), times = new Float64Array(256);
    const [from, to] = selection.range ?? [-Infinity, Infinity];
    const chosen = this.chosen(selection.threads), does = counts[timeMeasure(selection.measure)];
    let total = 0;
    for (let i = 0; i < this.clock.length; i++) {
      const box = map[this.box[i]];
      if (box < 0 || !is[box] || !does(this.state[i]) || !chosen[this.thread[i]]) continue;
      const time = within(from, to, this.clock[i], this.time[i], this.spread[i]);
      total += time;
      if (this.cut[i]) times[this.cut[i]] += time;
    }
    return { total, times };
  }

  // The calls of a thread in order of time.
  order(thread: number, measure: Time, [from, to]: [number, number], least: number, shape: Shape = this.whole): Order {
    const calls = new Calls(shape.tree, least);
    for (let i = 0; i < this.clock.length; i++) {
      if (this.thread[i] !== thread || !counts[measure](this.state[i])) continue;
      const box = shape.map[this.box[i]];
      const begin = Math.max(this.clock[i] - this.time[i] - this.spread[i], from), end = Math.min(this.clock[i], to);
      if (box > 0 && end > begin) calls.push(box, begin, end);
    }
    return calls.finish();
  }

  // The rows of allocations of a selection. Of transforms, those count that drop stacks.
  allocationRows(selection: Selection, by: AllocationKey, shape: Shape = this.whole): AllocationRows {
    return this.allocations.table(this.chosenOf(selection), by, shape.map);
  }

  // What is alive over time.
  live(): Live {
    return this.allocations.live();
  }

  private get allocations(): Allocations {
    return this.allocated ??= this.makeAllocations();
  }

  // Allocations of no known thread have the number 0, and above all threads those of an earlier recording.
  private chosenOf({ range, threads, type }: Selection): Chosen {
    const chosen = new Uint8Array(this.threads + 2);
    chosen.set(this.chosen(threads));
    if (threads && this.own < this.threads) chosen[this.threads + 1] = chosen.subarray(this.own + 1, this.threads + 1).includes(0) ? 0 : 1;
    return { range, threads: chosen, type };
  }

  private outermost(tree: Tree): Uint8Array {
    if (this.outermostOf?.tree !== tree) this.outermostOf = { tree, is: outermost(tree, this.funcs.length) };
    return this.outermostOf.is;
  }

  // What lanes did in equal parts of a range, and where a function was on the stack.
  bins(lanes: LaneOf[], range: [number, number], parts: number, lit: number | null): Bins {
    return this.lanes.bins(lanes.map((lane) => ({ ...lane, threads: this.named(lane.threads) })), range, parts, this.under(lit));
  }

  // The function in which a lane spent most of a range.
  largest(threads: number[] | null, range: [number, number]): Largest | null {
    return this.lanes.largest(this.named(threads), range);
  }

  private get lanes(): Lanes {
    const { threads, category, categories, tree, funcs } = this;
    return this.made ??= new Lanes(this, threads, category, categories, tree.func, tree.parent, funcs.map(({ name }) => name));
  }

  // The time of each thread in a range; number 0 is nobody.
  threadTimes(range: [number, number] | null): ThreadTimes {
    const [from, to] = range ?? [-Infinity, Infinity];
    const [cpu, asleep, ready] = [0, 1, 2].map(() => new Float64Array(this.threads + 1));
    for (let i = 0; i < this.clock.length; i++) {
      const of = this.state[i] === ASLEEP ? asleep : this.state[i] === READY ? ready : cpu;
      of[this.thread[i]] += within(from, to, this.clock[i], this.time[i], this.spread[i]);
    }
    return { cpu, asleep, ready };
  }

  // By box: whether it or one of its callers is the function.
  private under(wanted: number | null): Uint8Array {
    const { parent, func } = this.tree;
    const result = new Uint8Array(parent.length);
    if (wanted === null) return result;
    for (let box = 1; box < parent.length; box++) result[box] = func[box] === wanted ? 1 : result[parent[box]];
    return result;
  }

  // All threads stay null, unless there are those of an earlier recording.
  private named(threads: number[] | null): number[] | null {
    return threads ?? (this.own < this.threads ? Array.from({ length: this.own + 1 }, (_, number) => number) : null);
  }

  private chosen(threads: number[] | null): Uint8Array {
    const chosen = new Uint8Array(this.threads + 1);
    // An earlier recording is counted only where it is asked for.
    if (threads === null) chosen.fill(1, 0, this.own + 1);
    else for (const thread of threads) chosen[thread] = 1;
    return chosen;
  }
}

function fileName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

// What tells a function from others.
function keyOf({ name, module, whole }: Func): string {
  return `${whole ? 1 : 0}${name}\0${module}`;
}

// Adds a function for each crate that has none yet: what its functions are collapsed to.
function addCrates(funcs: Func[]): void {
  const crates = new Set(funcs.filter(({ whole }) => whole).map(({ crate }) => crate));
  for (const { crate, category } of funcs.slice()) {
    if (!crate || crates.has(crate)) continue;
    crates.add(crate);
    funcs.push({ name: `[${crate}]`, full: "", file: "", line: 0, module: "", crate, category, whole: true });
  }
}

// Parents come before their children, so the boxes above one are those whose branch is open.
function outermost({ parent, func }: Tree, funcs: number): Uint8Array {
  const result = new Uint8Array(parent.length);
  const first = new Int32Array(parent.length), next = new Int32Array(parent.length);
  for (let box = parent.length - 1; box > 0; box--) {
    next[box] = first[parent[box]];
    first[parent[box]] = box;
  }
  const open = new Int32Array(funcs);
  const stack = [first[0]];
  while (stack.length) {
    const box = stack[stack.length - 1];
    if (box === 0) {
      stack.pop();
      const above = stack.pop();
      if (above === undefined) break;
      open[func[above]]--;
      stack.push(next[above]);
      continue;
    }
    result[box] = open[func[box]]++ === 0 ? 1 : 0;
    stack.push(first[box]);
  }
  return result;
}
