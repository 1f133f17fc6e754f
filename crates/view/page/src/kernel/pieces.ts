// A graph in pieces: the worker has all of it, the page has what is in sight. Pure.

import type { Graph } from "../graph.ts";

// Nodes from number `from` on, as columns, and the children of the nodes in `grown`: `counts` of them each, side by side in `lists`.
export interface Piece {
  from: number;
  func: Int32Array; parent: Int32Array; inner: Uint8Array;
  total: Float64Array; own: Float64Array; hits: Float64Array;
  otherTotal: Float64Array; otherOwn: Float64Array; otherHits: Float64Array;
  grown: Int32Array; counts: Int32Array; lists: Int32Array;
}

// Where a graph is to grow: below these nodes, where the share of the whole is at least `least`, and at most so many nodes.
export interface Growth { below: number[]; least: number; most: number }

// Cuts pieces off a graph. Nodes have the same numbers in the pieces.
export class Cutter {
  private sent = 0;
  private readonly known = new Set<number>();

  constructor(private readonly graph: Graph) {}

  // The nodes that growing makes. The children of the nodes themselves are always among them.
  grow({ below, least, most }: Growth): Piece {
    const { graph } = this;
    const enough = least * (graph.counted.other ? 2 : graph.whole);
    const grown: number[] = [], lists: number[] = [], counts: number[] = [];
    const left = [...below];
    const asked = new Set(below);
    for (let count = 0; left.length && count < most; count++) {
      const node = left.pop()!;
      const children = graph.children(node);
      if (!this.known.has(node)) {
        this.known.add(node);
        grown.push(node);
        counts.push(children.length);
        for (const child of children) lists.push(child);
      }
      for (const child of children) if (!asked.has(child) && graph.value(child) >= enough && graph.isInner(child)) left.push(child);
    }
    const from = this.sent, to = this.sent = graph.total.length;
    const cut = (column: number[]) => Float64Array.from({ length: to - from }, (_, i) => column[from + i]);
    return {
      from, func: Int32Array.from(cut(graph.func)), parent: Int32Array.from(cut(graph.parent)),
      inner: Uint8Array.from({ length: to - from }, (_, i) => (graph.isInner(from + i) ? 1 : 0)),
      total: cut(graph.total), own: cut(graph.own), hits: cut(graph.hits),
      otherTotal: cut(graph.otherTotal), otherOwn: cut(graph.otherOwn), otherHits: cut(graph.otherHits),
      grown: Int32Array.from(grown), counts: Int32Array.from(counts), lists: Int32Array.from(lists),
    };
  }
}
