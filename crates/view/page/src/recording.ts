// The loaded recording and the counts of the current selection, as signals.

import { computed, effect, signal } from "@preact/signals";
import { Client, latest } from "./client.ts";
import type { Answers, Func, Head, Tree } from "./model.ts";
import type { Summed } from "./nodes.ts";
import { otherOf } from "./other.ts";
import { find, searchIn } from "./search.ts";
import { amend, chosen, dragged, query, selection, state } from "./state.ts";
import { Names, resolve, type Resolved, type Step } from "./steps.ts";

export const head: Head = JSON.parse(document.getElementById("head")!.textContent!);
export const client = new Client();

// `rank`: by function, its place in the order of names.
export interface Loaded { funcs: Func[]; names: Names; rank: Int32Array; times: Answers["threadTimes"] }
export const loaded = signal<Loaded | null>(null);
// `number`: by which the worker knows it.
export interface Counting extends Summed { number: number }
export const counted = signal<Counting | null>(null);
// The number of the shape that `counted` has.
export const shapeNumber = signal(0);
export const failure = signal<string | null>(null);

const categories = head.categories.map(({ name }) => name);

const stepsText = computed(() => JSON.stringify(state.value.steps));

// The steps, and what each does here. They are resolved again if there are others, or other names were found.
export const steps = computed<{ step: Step; resolved: Resolved }[]>(() => {
  const all = loaded.value;
  const of: Step[] = JSON.parse(stepsText.value);
  if (!all) return [];
  return of.map((step) => ({ step, resolved: resolve(step, all.names, categories, find) }));
});

// Functions that match what is searched, or why that is not known.
export const found = computed<Uint8Array | string | null>(() => (query.value === "" || !loaded.value ? null : find(query.value)));

export async function load(): Promise<void> {
  const element = document.getElementById("columns")!;
  const columns = element.textContent!;
  element.remove();
  const { tree, funcs } = await client.ask({ kind: "load", head, columns });
  const times = await client.ask({ kind: "threadTimes", range: null });
  searchIn(funcs.map(({ name, full }) => (full && full !== name ? `${name}\n${full}` : name)));
  loaded.value = { funcs, names: new Names(funcs), rank: ranks(funcs), times };
  keepChosen(loaded.value.names);

  let shape = { key: "[]", number: 0, tree };
  await client.ask({ kind: "shape", shape: 0, transforms: [] });
  let last = 0;
  const count = latest(async ({ asked, steps }: { asked: typeof state.value; steps: { step: Step; resolved: Resolved }[] }) => {
    try {
      const done = steps.filter(({ resolved }) => "transform" in resolved);
      const key = JSON.stringify(done.map(({ step }) => step));
      if (key !== shape.key) {
        const transforms = done.flatMap(({ resolved }) => ("transform" in resolved ? [resolved.transform] : []));
        const number = shape.number + 1;
        const { tree } = await client.ask({ kind: "shape", shape: number, transforms });
        shape = { key, number, tree };
      }
      const number = ++last;
      const { counts, other } = await client.ask({ kind: "counted", number, selection: selection(asked), other: otherOf(asked, head), shape: shape.number });
      shapeNumber.value = shape.number;
      counted.value = { ...counts, tree: shape.tree, other, number };
    } catch (error) {
      failure.value = `This cannot be counted: ${error instanceof Error ? error.message : error}`;
    }
  });
  // Of the state, only what changes counts: to select, zoom or search is not to count again.
  const what = computed(() => {
    const { range, threads, measure, pinned, alone, allocated } = state.value;
    return JSON.stringify([dragged.value ?? range, threads, measure, pinned, alone, allocated]);
  });
  effect(() => {
    void what.value;
    const all = steps.value;
    count({ asked: { ...state.peek(), range: dragged.peek() ?? state.peek().range }, steps: all });
  });
}

// The selected function by number and by name are the same.
function keepChosen(names: Names): void {
  effect(() => {
    const { func } = state.value;
    chosen.value = func.length ? names.numbers(func)[0] ?? null : null;
  });
  effect(() => {
    const func = chosen.value;
    const known = state.peek().func;
    const now = known.length ? names.numbers(known)[0] ?? null : null;
    if (func !== now) amend({ func: func === null ? [] : names.of(func) });
  });
}

function ranks(funcs: Func[]): Int32Array {
  const order = funcs.map((_, number) => number).sort((a, b) => (funcs[a].name < funcs[b].name ? -1 : funcs[a].name > funcs[b].name ? 1 : a - b));
  const rank = new Int32Array(funcs.length);
  order.forEach((number, place) => { rank[number] = place; });
  return rank;
}

export type { Tree };
