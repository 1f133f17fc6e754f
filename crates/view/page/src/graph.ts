// A tree of calls that grows where somebody looks: downwards from the root or from a function, or upwards from what ran, or from a function.
//
// Each node stands for boxes of the counted tree. Its children are made when they are asked for.

import type { Tree } from "./model.ts";
import { Nodes, type Direction, type Summed } from "./nodes.ts";

// A counted tree with the children of each box: `children[first[box]..first[box + 1]]`.
export interface Counted extends Summed { children: Int32Array; first: Int32Array }

// Time and samples of some boxes, and those of what is compared with.
interface Parts { time: Float64Array; hits: Float64Array; otherTime: Float64Array | null; otherHits: Float64Array | null }

export class Graph extends Nodes {
  private readonly boxes: ArrayLike<number>[] = [];
  // Upwards: what of each box counts here.
  private readonly parts: (Parts | null)[] = [];
  private readonly known: (number[] | undefined)[] = [];
  // By box: its place among those that are met while callers are made, and for which node.
  private readonly slot: Int32Array;
  private readonly met: Int32Array;

  // `start`: a function, or null for all.
  constructor(readonly counted: Counted, direction: Direction, start: number | null = null) {
    super(counted, direction, start);
    const { tree } = counted;
    const { total, hits, other } = counted;
    const boxes = tree.parent.length;
    this.slot = new Int32Array(direction === "up" ? boxes : 0);
    this.met = new Int32Array(direction === "up" ? boxes : 0).fill(-1);
    if (direction === "down") this.addDown(start === null ? [0] : outermostBoxes(tree, start).filter((box) => this.counts(box)));
    else if (start !== null) {
      const of = outermostBoxes(tree, start).filter((box) => this.counts(box));
      const pick = (column: Float64Array) => Float64Array.from(of, (box) => column[box]);
      this.addUp(of, { time: pick(total), hits: pick(hits), otherTime: other && pick(other.total), otherHits: other && pick(other.hits) });
    } else this.push([], null, [total[0], 0, hits[0], other?.total[0] ?? 0, 0, other?.hits[0] ?? 0]);
  }

  // Whether a box has any time.
  private counts(box: number): boolean {
    const { total, other } = this.counted;
    return total[box] > 0 || (other !== null && other.total[box] > 0);
  }

  // The children of a node, the largest first.
  children(node: number): number[] {
    let known = this.known[node];
    if (!known) {
      known = this.direction === "down" ? this.callees(node) : this.callers(node);
      const { total, func } = this;
      if (this.counted.other) known.sort((a, b) => this.value(b) - this.value(a) || func[a] - func[b]);
      else known.sort((a, b) => total[b] - total[a] || func[a] - func[b]);
      this.known[node] = known;
    }
    return known;
  }

  // Whether it has children, without making them.
  isInner(node: number): boolean {
    const known = this.known[node];
    if (known) return known.length > 0;
    const { tree, children, first } = this.counted;
    const boxes = this.boxes[node];
    if (this.direction === "up") {
      if (node === 0 && !this.parts[0]) return this.children(0).length > 0;
      for (let i = 0; i < boxes.length; i++) if (tree.parent[boxes[i]] > 0) return true;
      return false;
    }
    for (let k = 0; k < boxes.length; k++) {
      for (let i = first[boxes[k]]; i < first[boxes[k] + 1]; i++) if (this.counts(children[i])) return true;
    }
    return false;
  }

  private callees(node: number): number[] {
    const { tree: { func }, children, first } = this.counted;
    const boxes = this.boxes[node];
    const add = (func: number, boxes: number[]) => {
      this.add(node, func);
      return this.addDown(boxes);
    };
    // The callees of one box are different functions.
    if (boxes.length === 1) {
      const all: number[] = [];
      for (let i = first[boxes[0]]; i < first[boxes[0] + 1]; i++) if (this.counts(children[i])) all.push(add(func[children[i]], [children[i]]));
      return all;
    }
    const groups = new Map<number, number[]>();
    for (let k = 0; k < boxes.length; k++) {
      for (let i = first[boxes[k]]; i < first[boxes[k] + 1]; i++) {
        const child = children[i];
        if (!this.counts(child)) continue;
        const group = groups.get(func[child]);
        if (group) group.push(child);
        else groups.set(func[child], [child]);
      }
    }
    return [...groups].map(([func, boxes]) => add(func, boxes));
  }

  private callers(node: number): number[] {
    const { tree: { parent, func } } = this.counted;
    const innermost = node === 0 && this.parts[0] === null;
    const from = innermost ? this.ownParts() : { boxes: this.boxes[node], parts: this.parts[node]! };
    const most = from.boxes.length;
    // The boxes above, each once; where what each box of the node has goes; and the function of each, as a number of its own.
    const boxes = new Int32Array(most), place = new Int32Array(most).fill(-1), group = new Int32Array(most);
    const funcs: number[] = [], sizes: number[] = [];
    const groups = new Map<number, number>();
    let count = 0;
    for (let i = 0; i < most; i++) {
      const box = innermost ? from.boxes[i] : parent[from.boxes[i]];
      if (box <= 0) continue;
      if (this.met[box] !== node) {
        this.met[box] = node;
        let of = groups.get(func[box]);
        if (of === undefined) {
          of = funcs.length;
          groups.set(func[box], of);
          funcs.push(func[box]);
          sizes.push(0);
        }
        sizes[of]++;
        group[count] = of;
        boxes[count] = box;
        this.slot[box] = count++;
      }
      place[i] = this.slot[box];
    }
    // Boxes of a function side by side.
    const begins: number[] = [];
    sizes.reduce((begin, size) => (begins.push(begin), begin + size), 0);
    const next = begins.slice(), order = new Int32Array(count), sorted = new Int32Array(count);
    for (let i = 0; i < count; i++) {
      order[i] = next[group[i]]++;
      sorted[order[i]] = boxes[i];
    }
    const summed = (column: Float64Array) => {
      const sums = new Float64Array(count);
      for (let i = 0; i < most; i++) if (place[i] >= 0) sums[order[place[i]]] += column[i];
      return sums;
    };
    const { parts } = from;
    const time = summed(parts.time), hits = summed(parts.hits);
    const otherTime = parts.otherTime && summed(parts.otherTime), otherHits = parts.otherHits && summed(parts.otherHits);
    return funcs.map((func, of) => {
      this.add(node, func);
      const [begin, end] = [begins[of], begins[of] + sizes[of]];
      const number = this.addUp(sorted.subarray(begin, end), {
        time: time.subarray(begin, end), hits: hits.subarray(begin, end),
        otherTime: otherTime && otherTime.subarray(begin, end), otherHits: otherHits && otherHits.subarray(begin, end),
      });
      // What ran itself is the innermost function's.
      if (innermost) {
        this.own[number] = this.total[number];
        this.otherOwn[number] = this.otherTotal[number];
      }
      return number;
    });
  }

  // Boxes with time of their own.
  private ownParts(): { boxes: Int32Array; parts: Parts } {
    const { tree: { parent }, own, hits, other } = this.counted;
    const ownHits = (total: Float64Array) => {
      const rest = total.slice();
      for (let box = 1; box < parent.length; box++) rest[parent[box]] -= total[box];
      return rest;
    };
    const all = new Int32Array(parent.length);
    let count = 0;
    for (let box = 0; box < parent.length; box++) if (own[box] > 0 || (other !== null && other.own[box] > 0)) all[count++] = box;
    const boxes = all.subarray(0, count);
    const pick = (column: Float64Array) => {
      const picked = new Float64Array(count);
      for (let i = 0; i < count; i++) picked[i] = column[boxes[i]];
      return picked;
    };
    return {
      boxes,
      parts: { time: pick(own), hits: pick(ownHits(hits)), otherTime: other && pick(other.own), otherHits: other && pick(ownHits(other.hits)) },
    };
  }

  private add(above: number, func: number): void {
    this.func.push(func);
    this.parent.push(above);
    this.depth.push(this.depth[above] + 1);
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
    return this.push(boxes, null, sums);
  }

  private addUp(boxes: ArrayLike<number>, parts: Parts): number {
    const sum = (column: Float64Array | null) => {
      let sum = 0;
      if (column) for (let i = 0; i < column.length; i++) sum += column[i];
      return sum;
    };
    return this.push(boxes, parts, [sum(parts.time), 0, sum(parts.hits), sum(parts.otherTime), 0, sum(parts.otherHits)]);
  }

  private push(boxes: ArrayLike<number>, parts: Parts | null, [total, own, hits, otherTotal, otherOwn, otherHits]: number[]): number {
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
