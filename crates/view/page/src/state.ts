// What is selected. Each change is a step of the browser's history, and the address holds all of it.

import { signal } from "@preact/signals";
import { MEASURES, type Measure, type Selection } from "./model.ts";

export const TABS = ["flame", "functions", "facts"] as const;
export type Tab = (typeof TABS)[number];

export interface State {
  range: [number, number] | null;
  threads: number[] | null;
  measure: Measure;
  tab: Tab;
  icicle: boolean;
  // The visible part of the time axis; null for all of it.
  view: [number, number] | null;
  // Processes whose threads are hidden, by index.
  folded: number[];
}

export const INITIAL: State = { range: null, threads: null, measure: "cpu", tab: "flame", icicle: false, view: null, folded: [] };

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
  if (of.view) parts.set("view", of.view.map(Math.round).join("-"));
  if (of.folded.length) parts.set("folded", of.folded.join(","));
  return parts.toString();
}

export function fromHash(hash: string): State {
  const parts = new URLSearchParams(hash.replace(/^#/, ""));
  const range = rangeOf(parts.get("range"));
  const threads = parts.get("threads")?.split(",").map(Number).filter((thread) => thread > 0);
  const one = <T extends string>(all: readonly T[], name: string, otherwise: T): T => all.find((word) => word === parts.get(name)) ?? otherwise;
  return {
    range,
    threads: threads?.length ? threads : null,
    measure: one(MEASURES, "measure", INITIAL.measure),
    tab: one(TABS, "tab", INITIAL.tab),
    icicle: parts.get("icicle") === "1",
    view: rangeOf(parts.get("view")),
    folded: parts.get("folded")?.split(",").map(Number).filter((index) => Number.isInteger(index) && index >= 0) ?? [],
  };
}

function rangeOf(text: string | null): [number, number] | null {
  const [from, to, ...more] = text?.split("-").map(Number) ?? [];
  return from < to && to < Infinity && more.length === 0 ? [from, to] : null;
}

// Changes the state, as a step that can be undone.
export function change(part: Partial<State>): void {
  const next = { ...state.value, ...part };
  if (toHash(next) === toHash(state.value)) return;
  state.value = next;
  history.pushState(null, "", `#${toHash(next)}`);
}

export function listen(): void {
  state.value = fromHash(location.hash);
  addEventListener("popstate", () => { state.value = fromHash(location.hash); });
}
