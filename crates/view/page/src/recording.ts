// The loaded recording and the counts of the current selection, as signals.

import { effect, signal } from "@preact/signals";
import { Client, latest } from "./client.ts";
import type { Answers, Counts, Func, Head, Tree } from "./model.ts";
import { dragged, selection, state } from "./state.ts";

export const head: Head = JSON.parse(document.getElementById("head")!.textContent!);
export const client = new Client();

export interface Loaded { tree: Tree; funcs: Func[]; children: Int32Array; firstChild: Int32Array; times: Answers["threadTimes"] }
export const loaded = signal<Loaded | null>(null);
export const counted = signal<Counts | null>(null);
export const failure = signal<string | null>(null);

export async function load(): Promise<void> {
  const element = document.getElementById("columns")!;
  const columns = element.textContent!;
  element.remove();
  const { tree, funcs } = await client.ask({ kind: "load", head, columns });
  const times = await client.ask({ kind: "threadTimes", range: null });
  loaded.value = { tree, funcs, ...childrenByName(tree, funcs), times };
  const count = latest(async (asked: Parameters<typeof selection>[0]) => {
    counted.value = await client.ask({ kind: "count", selection: selection(asked) });
  });
  effect(() => count(dragged.value ? { ...state.value, range: dragged.value } : state.value));
}

// The children of each box in order of their names: box `b` has `children[firstChild[b]..firstChild[b + 1]]`.
function childrenByName({ parent, func }: Tree, funcs: Func[]): { children: Int32Array; firstChild: Int32Array } {
  const order = funcs.map((_, number) => number).sort((a, b) => (funcs[a].name < funcs[b].name ? -1 : funcs[a].name > funcs[b].name ? 1 : a - b));
  const rank = new Int32Array(funcs.length);
  order.forEach((number, place) => { rank[number] = place; });
  const firstChild = new Int32Array(parent.length + 1);
  for (let box = 1; box < parent.length; box++) firstChild[parent[box] + 1]++;
  for (let box = 0; box < parent.length; box++) firstChild[box + 1] += firstChild[box];
  const children = new Int32Array(Math.max(parent.length - 1, 0));
  const filled = firstChild.slice();
  for (let box = 1; box < parent.length; box++) children[filled[parent[box]]++] = box;
  for (let box = 0; box < parent.length; box++) {
    children.subarray(firstChild[box], firstChild[box + 1]).sort((a, b) => rank[func[a]] - rank[func[b]]);
  }
  return { children, firstChild };
}
