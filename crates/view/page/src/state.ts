// What is selected. Each change is a step of the browser's history, and the address holds all of it.

import { signal } from "@preact/signals";
import { MEASURES, type Measure, type Selection } from "./model.ts";
import { stepOf, stepText, type Step } from "./steps.ts";

export const TABS = ["flame", "functions", "tree", "order", "facts"] as const;
export type Tab = (typeof TABS)[number];
export const ORDERS = ["name", "size"] as const;
export type Order = (typeof ORDERS)[number];

export interface State {
  range: [number, number] | null;
  threads: number[] | null;
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
}

export const INITIAL: State = {
  range: null, threads: null, measure: "cpu", tab: "flame", icicle: false, inverted: false, order: "name", steps: [], zoom: [], func: [], pinned: null,
};

export const state = signal<State>(INITIAL);
// What is typed to search; it changes no count.
export const query = signal("");
// The function that is selected, by number.
export const chosen = signal<number | null>(null);
// While a range is dragged: not a step yet.
export const dragged = signal<[number, number] | null>(null);

export function selection(of: State): Selection {
  return { range: of.range, threads: of.threads, measure: of.measure };
}

export function toHash(of: State): string {
  const parts = new URLSearchParams();
  if (of.range) parts.set("range", of.range.map(Math.round).join("-"));
  if (of.threads) parts.set("threads", of.threads.join(","));
  if (of.measure !== INITIAL.measure) parts.set("measure", of.measure);
  if (of.tab !== INITIAL.tab) parts.set("tab", of.tab);
  if (of.icicle) parts.set("icicle", "1");
  if (of.inverted) parts.set("inverted", "1");
  if (of.order !== INITIAL.order) parts.set("order", of.order);
  for (const step of of.steps) parts.append("do", stepText(step));
  for (const name of of.zoom) parts.append("zoom", name);
  for (const name of of.func) parts.append("func", name);
  if (of.pinned) parts.set("pinned", of.pinned.map(Math.round).join("-"));
  return parts.toString();
}

export function fromHash(hash: string): State {
  const parts = new URLSearchParams(hash.replace(/^#/, ""));
  const rangeOf = (name: string): [number, number] | null => {
    const [from, to] = parts.get(name)?.split("-").map(Number) ?? [];
    return from < to ? [from, to] : null;
  };
  const range = rangeOf("range");
  const threads = parts.get("threads")?.split(",").map(Number).filter((thread) => thread > 0);
  const one = <T extends string>(all: readonly T[], name: string, otherwise: T): T => all.find((word) => word === parts.get(name)) ?? otherwise;
  return {
    range,
    threads: threads?.length ? threads : null,
    // Only CPU time is known for parts of the time.
    measure: range ? "cpu" : one(MEASURES, "measure", INITIAL.measure),
    tab: one(TABS, "tab", INITIAL.tab),
    icicle: parts.get("icicle") === "1",
    inverted: parts.get("inverted") === "1",
    order: one(ORDERS, "order", INITIAL.order),
    steps: parts.getAll("do").flatMap((text) => stepOf(text) ?? []),
    zoom: parts.getAll("zoom"),
    func: parts.getAll("func").slice(0, 2),
    pinned: rangeOf("pinned"),
  };
}

// The number of the step that is shown, of the last one, and of the one that is to be shown.
let step = 0, lastStep = 0, wanted = 0;
// Whether the browser is on its way to another step.
let moving = false;

// Changes the state, as a step that can be undone.
export function change(part: Partial<State>): void {
  const next = { ...state.value, ...part };
  if (toHash(next) === toHash(state.value)) return;
  state.value = next;
  lastStep = wanted = step = (history.state?.step ?? 0) + 1;
  moving = false;
  history.pushState({ step }, "", `#${toHash(next)}`);
}

// Changes the state without a step of its own: what is selected, and no count.
export function amend(part: Partial<State>): void {
  const next = { ...state.value, ...part };
  if (toHash(next) === toHash(state.value)) return;
  state.value = next;
  history.replaceState({ step: history.state?.step ?? 0 }, "", `#${toHash(next)}`);
}

// Neither leaves the page.
export function undo(): void {
  if (wanted > 0) move(wanted - 1);
}
export function redo(): void {
  if (wanted < lastStep) move(wanted + 1);
}

// The browser goes one way at a time.
function move(to: number): void {
  wanted = to;
  if (moving || wanted === step) return;
  moving = true;
  history.go(wanted - step);
}

export function addStep(added: Step): void {
  change({ steps: [...state.value.steps, added], zoom: [] });
}

export function listen(): void {
  state.value = fromHash(location.hash);
  step = lastStep = wanted = history.state?.step ?? 0;
  addEventListener("popstate", () => {
    step = history.state?.step ?? 0;
    lastStep = Math.max(step, lastStep);
    state.value = fromHash(location.hash);
    const is = moving;
    moving = false;
    if (is) move(wanted);
    else wanted = step;
  });
}
