// What is selected. Each change is a step of the browser's history, and the address holds all of it.

import { signal } from "@preact/signals";
import { begin, push, replace, rewrite } from "./history.ts";
import { ALLOCATION_KEYS, type AllocationKey, type Measure, METRICS, type Selection, TIMES } from "./model.ts";
import { stepOf, stepText, type Step } from "./steps.ts";
import type { ThreadNames } from "./threads.ts";

export const TABS = ["flame", "functions", "tree", "order", "source", "allocations", "heap", "tasks", "facts"] as const;
export type Tab = (typeof TABS)[number];
export const ORDERS = ["name", "size"] as const;
export type Order = (typeof ORDERS)[number];
export const HEAP_LISTS = ["types", "holders", "tree", "leaks"] as const;
export type HeapList = (typeof HEAP_LISTS)[number];
export const TASK_LISTS = ["groups", "locks", "names", "lines"] as const;
export type TaskList = (typeof TASK_LISTS)[number];

export interface State {
  range: [number, number] | null;
  threads: number[] | null;
  // Threads of the address that are not here.
  gone: string[];
  measure: Measure;
  tab: Tab;
  icicle: boolean;
  // From callees to callers.
  inverted: boolean;
  order: Order;
  // Transforms, in the order in which they are applied.
  steps: Step[];
  // Names on the way to what fills the width of the flame graph.
  zoom: string[];
  // The selected function by name, and by crate if there are others of its name.
  func: string[];
  // The range with which the other one is compared.
  pinned: [number, number] | null;
  // Whether the recording is shown without the earlier one.
  alone: boolean;
  // The visible part of the time axis; null for all of it.
  view: [number, number] | null;
  // Processes whose threads are hidden, by index.
  folded: number[];
  // What of the heap is shown, and its chosen type.
  heap: HeapList;
  type: string;
  // What of the tasks is shown; the first id of the chosen group; the chosen name or line.
  tasks: TaskList;
  group: number;
  kind: string;
  // What rows of allocations are; the only allocated type that counts; the chosen row.
  by: AllocationKey;
  allocated: string;
  row: string;
  // The chosen source file, by its path.
  source: string;
}

export const INITIAL: State = {
  range: null, threads: null, gone: [], measure: "cpu", tab: "flame", icicle: false, inverted: false, order: "name", steps: [], zoom: [], func: [], pinned: null, alone: false,
  view: null, folded: [], heap: "types", type: "", tasks: "groups", group: 0, kind: "", by: "type", allocated: "", row: "", source: "",
};

export { redo, undo } from "./history.ts";

export const state = signal<State>(INITIAL);
// The names of threads, once they are known: addresses have numbers before.
export const naming: { threads: ThreadNames | null } = { threads: null };
// What is typed to search; it changes no count.
export const query = signal("");
// The function that is selected, by number.
export const chosen = signal<number | null>(null);
// While a range is dragged: not a step yet.
export const dragged = signal<[number, number] | null>(null);

export function selection(of: State): Selection {
  return { range: of.range, threads: of.threads, measure: of.measure, ...(of.allocated ? { type: of.allocated } : {}) };
}

// What is counted now: also while a range is dragged.
export function selected(): Selection {
  return { ...selection(state.value), range: dragged.value ?? state.value.range };
}

// Whether the whole recording is counted, and all of it is shown.
export function isWhole(of: State): boolean {
  const { tab, icicle, order, view, folded } = of;
  return toHash(of) === toHash({ ...INITIAL, tab, icicle, order, view, folded });
}

export function toHash(of: State): string {
  const parts = new URLSearchParams();
  if (of.range) parts.set("range", of.range.map(Math.round).join("-"));
  const names = naming.threads;
  if (of.threads && !names) parts.set("threads", of.threads.join(","));
  if (names) for (const thread of of.threads ?? []) parts.append("thread", names.name(thread));
  for (const name of of.gone) parts.append("thread", name);
  if (of.measure !== INITIAL.measure) parts.set("measure", of.measure);
  if (of.tab !== INITIAL.tab) parts.set("tab", of.tab);
  if (of.icicle) parts.set("icicle", "1");
  if (of.inverted) parts.set("inverted", "1");
  if (of.order !== INITIAL.order) parts.set("order", of.order);
  for (const step of of.steps) parts.append("do", stepText(step));
  for (const name of of.zoom) parts.append("zoom", name);
  for (const name of of.func) parts.append("func", name);
  if (of.pinned) parts.set("pinned", of.pinned.map(Math.round).join("-"));
  if (of.alone) parts.set("alone", "1");
  if (of.view) parts.set("view", of.view.map(Math.round).join("-"));
  if (of.folded.length && !names) parts.set("folded", of.folded.join(","));
  if (names) for (const index of of.folded) parts.append("folded", names.process(index));
  if (of.heap !== INITIAL.heap) parts.set("heap", of.heap);
  if (of.type) parts.set("type", of.type);
  if (of.tasks !== INITIAL.tasks) parts.set("tasks", of.tasks);
  if (of.group) parts.set("group", String(of.group));
  if (of.kind) parts.set("kind", of.kind);
  if (of.by !== INITIAL.by) parts.set("by", of.by);
  if (of.allocated) parts.set("allocated", of.allocated);
  if (of.row) parts.set("row", of.row);
  if (of.source) parts.set("source", of.source);
  return parts.toString();
}

export function fromHash(hash: string): State {
  const parts = new URLSearchParams(hash.replace(/^#/, ""));
  const range = rangeOf(parts.get("range"));
  const threads = parts.get("threads")?.split(",").map(Number).filter((thread) => thread > 0) ?? [];
  const gone: string[] = [];
  for (const name of parts.getAll("thread")) {
    const thread = naming.threads?.number(name) ?? null;
    if (thread === null) gone.push(name);
    else threads.push(thread);
  }
  const { threads: names } = naming;
  const folded = names
    ? parts.getAll("folded").flatMap((name) => names.processIndex(name) ?? [])
    : parts.get("folded")?.split(",").map(Number).filter((index) => Number.isInteger(index) && index >= 0) ?? [];
  const one = <T extends string>(all: readonly T[], name: string, otherwise: T): T => all.find((word) => word === parts.get(name)) ?? otherwise;
  return {
    range,
    threads: threads.length ? threads : null,
    gone,
    measure: one<Measure>([...TIMES, ...METRICS], "measure", INITIAL.measure),
    tab: one(TABS, "tab", INITIAL.tab),
    icicle: parts.get("icicle") === "1",
    inverted: parts.get("inverted") === "1",
    order: one(ORDERS, "order", INITIAL.order),
    steps: parts.getAll("do").flatMap((text) => stepOf(text) ?? []),
    zoom: parts.getAll("zoom"),
    func: parts.getAll("func").slice(0, 2),
    pinned: rangeOf(parts.get("pinned")),
    alone: parts.get("alone") === "1",
    view: rangeOf(parts.get("view")),
    folded: folded.sort((a, b) => a - b),
    heap: one(HEAP_LISTS, "heap", INITIAL.heap),
    type: parts.get("type") ?? "",
    tasks: one(TASK_LISTS, "tasks", INITIAL.tasks),
    group: Math.max(0, Number(parts.get("group")) || 0),
    kind: parts.get("kind") ?? "",
    by: one(ALLOCATION_KEYS, "by", INITIAL.by),
    allocated: parts.get("allocated") ?? "",
    row: parts.get("row") ?? "",
    source: parts.get("source") ?? "",
  };
}

function rangeOf(text: string | null): [number, number] | null {
  const [from, to, ...more] = text?.split("-").map(Number) ?? [];
  return from < to && to < Infinity && more.length === 0 ? [from, to] : null;
}

// How often another step was shown, by undoing, redoing or the browser.
export const shownAgain = signal(0);

// Changes the state, as a step that can be undone.
export function change(part: Partial<State>): void {
  const next = { ...state.value, ...part };
  const hash = toHash(next);
  if (hash === toHash(state.value)) return;
  state.value = next;
  push(hash);
}

// Changes the state without a step of its own: what is selected, and no count.
export function amend(part: Partial<State>): void {
  const next = { ...state.value, ...part };
  const hash = toHash(next);
  if (hash === toHash(state.value)) return;
  state.value = next;
  replace(hash);
}

export function addStep(added: Step): void {
  change({ steps: [...state.value.steps, added], zoom: [] });
}

// Threads have other names from now on. `thread`, `process`: where one is now, by index.
export function rename(names: ThreadNames, thread: (index: number) => number | null, process: (index: number) => number | null): void {
  const moved = (of: State): State => {
    const threads = of.threads?.flatMap((number) => { const to = thread(number - 1); return to === null ? [] : [to + 1]; }) ?? [];
    return { ...of, threads: threads.length ? threads : null, folded: of.folded.flatMap((index) => process(index) ?? []) };
  };
  const before = naming.threads;
  const renamed = (hash: string) => {
    naming.threads = before;
    const of = moved(fromHash(hash));
    naming.threads = names;
    return toHash(of);
  };
  // A thread that was not there may be.
  const now = renamed(toHash(state.value));
  rewrite(renamed);
  state.value = fromHash(now);
}

export function listen(): void {
  state.value = fromHash(location.hash);
  begin(toHash(state.value), (hash) => {
    state.value = fromHash(hash);
    shownAgain.value++;
  });
}
