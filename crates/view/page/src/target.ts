// What is selected: a function, or a function at a place in a tree. Commands act on it.

import { batch, computed, signal } from "@preact/signals";
import { layout } from "./layout.ts";
import type { Mirror } from "./mirror.ts";
import { mirrored } from "./mirrors.ts";
import type { Direction, Nodes } from "./nodes.ts";
import { openedRows } from "./opened.ts";
import { counted, loaded } from "./recording.ts";
import { change, chosen, state } from "./state.ts";
import { shownTab } from "./tabs.ts";

// `way`: functions from below the root to here; null if no place is selected.
export interface Target { func: number; way: number[] | null; direction: Direction }

const place = signal<Target | null>(null);

export function select(target: Target | null): void {
  batch(() => {
    place.value = target;
    chosen.value = target && target.func > 0 ? target.func : null;
  });
}

export const target = computed<Target | null>(() => {
  if (chosen.value === null) return null;
  return place.value?.func === chosen.value ? place.value : { func: chosen.value, way: null, direction: "down" };
});

// The tree that flame graph and call tree show. It is made again only if it is another one.
const inverted = computed(() => state.value.inverted);
const trees = mirrored("shown", () => (counted.value && loaded.value ? { counted: counted.value, direction: inverted.value ? "up" : "down", start: null } : null), (graph) => {
  if (shownTab.peek() === "tree") openedRows(graph);
  else if (state.peek().zoom.length) {
    const width = Math.max(innerWidth, 300), node = wayTo(graph);
    graph.least = leastOf(graph, node, width);
    layout(graph, node, width, null);
  }
});
export const graph = trees.shown;
export const graphComes = trees.comes;

// The node of the selected place in the tree that is shown, or -1.
export function nodeOf(graph: Nodes): number {
  const at = target.value;
  return at?.way && at.direction === graph.direction ? graph.find(at.way.map((func) => [func])) : -1;
}

// The node that fills the width: the last one of the names on the way that is there.
export const zoomed = computed<number>(() => {
  return graph.value && loaded.value ? wayTo(graph.value) : 0;
});

function wayTo(graph: Mirror): number {
  return graph.reach(state.value.zoom.map((name) => loaded.value!.names.numbers([name])));
}

// Half a pixel, as a share of the whole, where a node fills the width.
export function leastOf(graph: Mirror, node: number, width: number): number {
  const whole = graph.counted.other ? 2 : graph.whole;
  return whole > 0 ? (0.5 / Math.max(width, 1)) * (graph.value(node) / whole) : graph.least;
}

export function zoomTo(graph: Nodes, node: number): void {
  const { funcs } = loaded.value!;
  change({ zoom: graph.way(node).map((func) => funcs[func].name) });
}
