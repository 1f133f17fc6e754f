// The loaded recording and the counts of the current selection, as signals.

import { batch, computed, effect, signal } from "@preact/signals";
import { Client, latest } from "./client.ts";
import { eachPart } from "./columns.ts";
import type { First } from "./first.ts";
import type { Answers, Func, Head, Selection, Tree } from "./model.ts";
import type { Summed } from "./nodes.ts";
import { otherOf } from "./other.ts";
import { find, SEARCHING, searchIn } from "./search.ts";
import { amend, chosen, dragged, query, selection, state } from "./state.ts";
import { Names, resolve, type Resolved, type Step } from "./steps.ts";

export const head = signal<Head>(JSON.parse(document.getElementById("head")!.textContent!));
export const client = new Client();

// `rank`: by function, its place in the order of names. `reading`: the how manieth of the recording, which may grow. `first`: only this is
// known, the columns are still read.
export interface Loaded { funcs: Func[]; names: Names; rank: Int32Array; times: Answers["threadTimes"]; tree: Tree; reading: number; first: First | null }
export const loaded = signal<Loaded | null>(null);
// `number`: by which the worker knows it. `reading`: of which it was counted.
export interface Counting extends Summed { number: number; reading: number; first: First | null }
export const counted = signal<Counting | null>(null);
// Whether all that is counted is known; before, only the first picture is.
export const isRead = computed(() => counted.value !== null && counted.value.first === null);
// The number of the shape that `counted` has.
export const shapeNumber = signal(0);
export const failure = signal<string | null>(null);

const stepsText = computed(() => JSON.stringify(state.value.steps));

// The steps, and what each does here. They are resolved again if there are others, or other names were found.
export const steps = computed<{ step: Step; resolved: Resolved }[]>(() => {
  const all = loaded.value;
  const of: Step[] = JSON.parse(stepsText.value);
  if (!all) return [];
  const categories = head.value.categories.map(({ name }) => name);
  return of.map((step) => ({ step, resolved: resolve(step, all.names, categories, find) }));
});

// Functions that match what is searched, or why that is not known.
export const found = computed<Uint8Array | string | null>(() => {
  if (query.value === "" || !loaded.value) return null;
  return loaded.value.first ? SEARCHING : find(query.value);
});

let readings = 0;

// Has the worker read a recording. If it has read one before, functions keep their numbers.
async function loading(of: Head, each: (call: (columns: string) => void) => unknown): Promise<Loaded> {
  // What is wrong with a part shows when all are read.
  await each((columns) => { client.ask({ kind: "part", columns }, true).catch(() => {}); });
  const { tree, funcs, times } = await client.ask({ kind: "load", head: of }, true);
  return { funcs, names: new Names(funcs), rank: ranks(funcs), times, tree, reading: ++readings, first: null };
}

const searched = ({ funcs }: Loaded) => funcs.map(({ name, full }) => (full && full !== name ? `${name}\n${full}` : name));

// The texts whose matches are shown or counted.
const wanted = () => [query.value, ...state.value.steps.flatMap(({ kind, of }) => (kind === "with" ? of : []))].filter((text) => text !== "");

function begin(first: Loaded): void {
  loaded.value = first;
  keepChosen();
  follow(first);
}

// Reads what is in the page. Until all of it is read, the first picture is there, if there is one: its answers are known, and other
// questions wait.
export async function load(first: First | null): Promise<void> {
  const release = client.hold(first?.answer);
  if (first) {
    const { funcs, tree, times } = first;
    begin({ funcs, names: new Names(funcs, true), rank: ranks(funcs), times, tree, reading: ++readings, first });
  }
  const all = await loading(head.value, eachPart);
  await searchIn(searched(all), first ? wanted() : []);
  release();
  if (first) loaded.value = all;
  else begin(all);
}

// Shows a recording that has grown, with all that is selected. `adapt`: changes what is known from its head.
export async function grow(next: Head, columns: string[], adapt: () => void): Promise<void> {
  const answer = loading(next, (call) => columns.forEach(call));
  // What is asked from now on is meant for what is shown then.
  const release = client.hold();
  try {
    const grown = await answer;
    await searchIn(searched(grown), wanted());
    batch(() => {
      head.value = next;
      adapt();
      loaded.value = grown;
    });
  } finally {
    release();
  }
}

// Counts what is selected, from now on.
function follow(first: Loaded): void {
  let shape = { key: "[]", number: 0, tree: first.tree, reading: first.reading };
  let last = 0;
  const count = latest(async ({ of, steps, selection, other }: { of: Loaded; steps: { step: Step; resolved: Resolved }[]; selection: Selection; other: Selection | null }) => {
    try {
      const done = steps.filter(({ resolved }) => "transform" in resolved);
      const key = JSON.stringify(done.map(({ step }) => step));
      if (key !== shape.key || of.reading !== shape.reading) {
        const transforms = done.flatMap(({ resolved }) => ("transform" in resolved ? [resolved.transform] : []));
        const number = shape.number + 1;
        const { tree } = await client.ask({ kind: "shape", shape: number, transforms });
        shape = { key, number, tree, reading: of.reading };
      }
      const number = ++last;
      const { counts, other: otherCounts } = await client.ask({ kind: "counted", number, selection, other, shape: shape.number });
      if (of !== loaded.peek()) return;
      batch(() => {
        shapeNumber.value = shape.number;
        counted.value = { ...counts, tree: shape.tree, other: otherCounts, number, reading: of.reading, first: of.first };
      });
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
    const asked = { ...state.peek(), range: dragged.peek() ?? state.peek().range };
    count({ of: loaded.value!, steps: steps.value, selection: selection(asked), other: otherOf(asked, head.value) });
  });
}

// The selected function by number and by name are the same.
function keepChosen(): void {
  const names = () => loaded.peek()!.names;
  effect(() => {
    const { func } = state.value, { names } = loaded.value!;
    chosen.value = func.length ? names.numbers(func)[0] ?? null : null;
  });
  effect(() => {
    const func = chosen.value;
    const known = state.peek().func;
    const now = known.length ? names().numbers(known)[0] ?? null : null;
    if (func !== now) amend({ func: func === null ? [] : names().of(func) });
  });
}

function ranks(funcs: Func[]): Int32Array {
  const order = funcs.map((_, number) => number).sort((a, b) => (funcs[a].name < funcs[b].name ? -1 : funcs[a].name > funcs[b].name ? 1 : a - b));
  const rank = new Int32Array(funcs.length);
  order.forEach((number, place) => { rank[number] = place; });
  return rank;
}

export type { Tree };
