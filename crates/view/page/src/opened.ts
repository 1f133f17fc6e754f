// Which rows of the call tree are open, by the paths to them: they stay open whatever is counted.

import { signal } from "@preact/signals";
import type { Nodes } from "./nodes.ts";

export const opened = { down: signal<ReadonlySet<number>>(new Set()), up: signal<ReadonlySet<number>>(new Set()) };

export function setOpened(graph: Nodes, change: (paths: Set<number>) => void): void {
  const paths = new Set(opened[graph.direction].value);
  change(paths);
  opened[graph.direction].value = paths;
}

// The nodes in sight, from top to bottom.
export function openedRows(graph: Nodes): number[] {
  const paths = opened[graph.direction].value;
  const all: number[] = [];
  const left = graph.children(0).slice().reverse();
  while (left.length) {
    const node = left.pop()!;
    all.push(node);
    if (!paths.has(graph.path(node))) continue;
    const children = graph.children(node);
    for (let i = children.length - 1; i >= 0; i--) left.push(children[i]);
  }
  return all;
}
