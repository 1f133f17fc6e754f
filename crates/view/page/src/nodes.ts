// Nodes of a tree of calls by number, as columns: what all that draws or lists them reads. Pure.

import type { Counts, Tree } from "./model.ts";

// A counted tree, and what it is compared with.
export interface Summed extends Counts { tree: Tree; other: Counts | null }

// Downwards from callers to callees, or upwards.
export type Direction = "down" | "up";

// Paths of functions by number, each once. They outlive the trees.
class Paths {
  private readonly known = new Map<number, number>();
  private count = 1;

  below(path: number, func: number): number {
    const key = path * 0x2000000 + func;
    let number = this.known.get(key);
    if (number === undefined) {
      number = this.count++;
      this.known.set(key, number);
    }
    return number;
  }
}
const paths = new Paths();

export abstract class Nodes {
  readonly func = [0];
  readonly parent = [-1];
  readonly depth = [0];
  readonly total: number[] = [];
  readonly own: number[] = [];
  readonly hits: number[] = [];
  // The same of what is compared with.
  readonly otherTotal: number[] = [];
  readonly otherOwn: number[] = [];
  readonly otherHits: number[] = [];
  private readonly numbers: number[] = [];

  // `start`: a function, or null for all.
  constructor(readonly counted: Summed, readonly direction: Direction, start: number | null) {
    this.func[0] = start ?? 0;
    this.numbers[0] = start === null ? 0 : paths.below(0, start);
  }

  // The children of a node, the largest first.
  abstract children(node: number): number[];
  // Whether it has children.
  abstract isInner(node: number): boolean;

  get whole(): number { return this.counted.total[0]; }
  get otherWhole(): number { return this.counted.other?.total[0] ?? 0; }

  // What the width of a node stands for: its time, or where two are compared, its mean share.
  value(node: number): number {
    if (!this.counted.other) return this.total[node];
    return (this.whole > 0 ? this.total[node] / this.whole : 0) + (this.otherWhole > 0 ? this.otherTotal[node] / this.otherWhole : 0);
  }

  // The number of the path to a node, the same in all trees.
  path(node: number): number {
    return this.numbers[node] ??= paths.below(this.path(this.parent[node]), this.func[node]);
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
}
