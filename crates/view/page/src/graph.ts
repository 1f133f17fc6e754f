// A tree of calls that grows where somebody looks: downwards from the root or from a function, or upwards from what ran, or from a function.
//
// Each node stands for boxes of the counted tree. Its children are made when they are asked for.

import type { Counts, Tree } from "./model.ts";

// A counted tree with the children of each box: `children[first[box]..first[box + 1]]`.
export interface Counted extends Counts { tree: Tree; children: Int32Array; first: Int32Array; other: Counts | null }

// Paths of functions by number, each once. They outlive the graphs.
class Paths {
  private readonly known = new Map<number, number>();
  private readonly steps: [number, number][] = [[-1, 0]];

  below(path: number, func: number): number {
    const key = path * 0x2000000 + func;
    let number = this.known.get(key);
    if (number === undefined) {
      number = this.steps.length;
      this.known.set(key, number);
      this.steps.push([path, func]);
    }
    return number;
  }

  // The functions of a path, outermost node first.
  funcs(path: number): number[] {
    const funcs: number[] = [];
    for (let at = path; at > 0; at = this.steps[at][0]) funcs.push(this.steps[at][1]);
    return funcs.reverse();
  }
}
export const paths = new Paths();

export type Direction = "down" | "up";

export class Graph {
  readonly func = [0];
  readonly parent = [-1];
  readonly depth = [0];
  readonly path = [0];
  readonly total: number[] = [];
  readonly own: number[] = [];
  readonly hits: number[] = [];
  // The same of what is compared with.
  readonly otherTotal: number[] = [];
  readonly otherOwn: number[] = [];
  readonly otherHits: number[] = [];
  private readonly boxes: number[][] = [];
  // Upwards: what of each box counts here.
  private readonly parts: number[][] = [];
  private readonly known: (number[] | undefined)[] = [];

  // `start`: a function, or null for all.
  constructor(readonly counted: Counted, readonly direction: Direction, start: number | null = null) {
    const { tree } = counted;
    if (start !== null) {
      this.func[0] = start;
      this.path[0] = paths.below(0, start);
    }
    const counts = (box: number) => counted.total[box] > 0 || (counted.other?.total[box] ?? 0) > 0;
    const boxes = start === null ? [0] : outermostBoxes(tree, start).filter(counts);
    if (direction === "down") this.addDown(boxes);
    else this.addUp(boxes, start === null ? [] : boxes.flatMap((box) => this.weights(box, true)));
    if (direction === "up" && start === null) {
      this.boxes[0] = [];
      for (let box = 0; box < tree.parent.length; box++) if (counted.own[box] > 0 || (counted.other?.own[box] ?? 0) > 0) this.boxes[0].push(box);
      this.total[0] = counted.total[0];
      this.hits[0] = counted.hits[0];
      this.otherTotal[0] = counted.other?.total[0] ?? 0;
      this.otherHits[0] = counted.other?.hits[0] ?? 0;
    }
  }

  get whole(): number { return this.counted.total[0]; }
  get otherWhole(): number { return this.counted.other?.total[0] ?? 0; }

  // What the width of a node stands for: its time, or where two are compared, its mean share.
  value(node: number): number {
    if (!this.counted.other) return this.total[node];
    return (this.whole > 0 ? this.total[node] / this.whole : 0) + (this.otherWhole > 0 ? this.otherTotal[node] / this.otherWhole : 0);
  }

  // The children of a node, the largest first.
  children(node: number): number[] {
    let known = this.known[node];
    if (!known) {
      known = this.direction === "down" ? this.callees(node) : this.callers(node);
      known.sort((a, b) => this.value(b) - this.value(a) || this.func[a] - this.func[b]);
      this.known[node] = known;
    }
    return known;
  }

  // Whether it has children, without making them.
  isInner(node: number): boolean {
    const known = this.known[node];
    if (known) return known.length > 0;
    const { tree, children, first, total, other } = this.counted;
    if (this.direction === "up") return node === 0 ? this.boxes[0].length > 0 : this.boxes[node].some((box) => tree.parent[box] > 0);
    for (const box of this.boxes[node]) {
      for (let i = first[box]; i < first[box + 1]; i++) if (total[children[i]] > 0 || (other && other.total[children[i]] > 0)) return true;
    }
    return false;
  }

  // The last node on a path below the root that is there. `path`: which functions may be at each depth.
  reach(path: number[][]): number {
    let node = 0;
    for (const funcs of path) {
      const next = this.children(node).find((child) => funcs.includes(this.func[child]));
      if (next === undefined) break;
      node = next;
    }
    return node;
  }

  // The node at the end of a path, or -1.
  find(path: number[][]): number {
    const node = this.reach(path);
    return this.depth[node] === path.length ? node : -1;
  }

  // The functions on the way from below the root to a node.
  way(node: number): number[] {
    const funcs: number[] = [];
    for (let at = node; at > 0; at = this.parent[at]) funcs.push(this.func[at]);
    return funcs.reverse();
  }

  private callees(node: number): number[] {
    const { tree, children, first, total, other } = this.counted;
    const groups = new Map<number, number[]>();
    for (const box of this.boxes[node]) {
      for (let i = first[box]; i < first[box + 1]; i++) {
        const child = children[i];
        if (total[child] <= 0 && !(other && other.total[child] > 0)) continue;
        const group = groups.get(tree.func[child]);
        if (group) group.push(child);
        else groups.set(tree.func[child], [child]);
      }
    }
    return [...groups].map(([func, boxes]) => {
      this.add(node, func);
      return this.addDown(boxes);
    });
  }

  private callers(node: number): number[] {
    const { tree } = this.counted;
    const boxes = this.boxes[node], parts = this.parts[node];
    // By function: the boxes, and what of each counts.
    const groups = new Map<number, Map<number, number[]>>();
    for (let i = 0; i < boxes.length; i++) {
      const box = node === 0 && parts.length === 0 ? boxes[i] : tree.parent[boxes[i]];
      if (box <= 0) continue;
      const part = parts.length === 0 ? this.weights(box, false) : parts.slice(4 * i, 4 * i + 4);
      let group = groups.get(tree.func[box]);
      if (!group) groups.set(tree.func[box], (group = new Map()));
      const sum = group.get(box);
      if (sum) for (let k = 0; k < 4; k++) sum[k] += part[k];
      else group.set(box, part);
    }
    return [...groups].map(([func, group]) => {
      this.add(node, func);
      const number = this.addUp([...group.keys()], [...group.values()].flat());
      // What ran itself is the innermost function's.
      if (node === 0 && parts.length === 0) {
        this.own[number] = this.total[number];
        this.otherOwn[number] = this.otherTotal[number];
      }
      return number;
    });
  }

  // Time and samples of a box, then those of what is compared with.
  private weights(box: number, all: boolean): number[] {
    const of = (counts: Counts | null) => {
      if (!counts) return [0, 0];
      if (all) return [counts.total[box], counts.hits[box]];
      const { children, first } = this.counted;
      let hits = counts.hits[box];
      for (let i = first[box]; i < first[box + 1]; i++) hits -= counts.hits[children[i]];
      return [counts.own[box], hits];
    };
    return [...of(this.counted), ...of(this.counted.other)];
  }

  private add(above: number, func: number): void {
    this.func.push(func);
    this.parent.push(above);
    this.depth.push(this.depth[above] + 1);
    this.path.push(paths.below(this.path[above], func));
  }

  private addDown(boxes: number[]): number {
    const { counted: { own, total, hits, other } } = this;
    const sums = [0, 0, 0, 0, 0, 0];
    for (const box of boxes) {
      sums[0] += total[box];
      sums[1] += own[box];
      sums[2] += hits[box];
      if (!other) continue;
      sums[3] += other.total[box];
      sums[4] += other.own[box];
      sums[5] += other.hits[box];
    }
    return this.push(boxes, [], sums);
  }

  private addUp(boxes: number[], parts: number[]): number {
    const sums = [0, 0, 0, 0];
    for (let i = 0; i < parts.length; i++) sums[i % 4] += parts[i];
    return this.push(boxes, parts, [sums[0], 0, sums[1], sums[2], 0, sums[3]]);
  }

  private push(boxes: number[], parts: number[], [total, own, hits, otherTotal, otherOwn, otherHits]: number[]): number {
    this.boxes.push(boxes);
    this.parts.push(parts);
    this.total.push(total);
    this.own.push(own);
    this.hits.push(hits);
    this.otherTotal.push(otherTotal);
    this.otherOwn.push(otherOwn);
    this.otherHits.push(otherHits);
    return this.total.length - 1;
  }
}

// The children of each box, in the order of their numbers.
export function childrenOf({ parent }: Tree): { children: Int32Array; first: Int32Array } {
  const first = new Int32Array(parent.length + 1);
  for (let box = 1; box < parent.length; box++) first[parent[box] + 1]++;
  for (let box = 0; box < parent.length; box++) first[box + 1] += first[box];
  const children = new Int32Array(Math.max(parent.length - 1, 0));
  const filled = first.slice();
  for (let box = 1; box < parent.length; box++) children[filled[parent[box]]++] = box;
  return { children, first };
}

// The boxes of a function that no other box of it is above.
export function outermostBoxes({ parent, func }: Tree, wanted: number): number[] {
  const inside = new Uint8Array(parent.length);
  const boxes: number[] = [];
  for (let box = 1; box < parent.length; box++) {
    inside[box] = inside[parent[box]];
    if (func[box] === wanted && !inside[box]) {
      inside[box] = 1;
      boxes.push(box);
    }
  }
  return boxes;
}
