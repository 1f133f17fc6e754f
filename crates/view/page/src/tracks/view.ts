// What the tracks show: the visible part of the time, and what the pointer is at.

import { computed, effect, signal } from "@preact/signals";
import type { ThreadTimes } from "../model.ts";
import { head, loaded } from "../recording.ts";
import { change, shownAgain, state } from "../state.ts";
import { lanesOf } from "./lanes.ts";
import { inside, panned, type Range, zoomed } from "./zoom.ts";

// What a lane counts: a profile by wall time has no CPU time.
export const AT_ONCE = head.value.walltime ? "tasks" : "CPUs";

export const wall = computed(() => Math.max(head.value.wall, 1));

// While it is zoomed or moved: not a step yet.
const moving = signal<Range | null>(null);
export const visible = computed<Range>(() => moving.value ?? (state.value.view ? inside(state.value.view, wall.value) : [0, wall.value]));

// What is typed to find lanes.
export const wanted = signal("");
export const lanes = computed(() => (loaded.value ? lanesOf(head.value, loaded.value.times, state.value.measure, state.value.folded, wanted.value) : []));
// Times of threads in the range.
export const times = signal<ThreadTimes | null>(null);
// The lane and the moment below the pointer.
export const pointed = signal<{ lane: string; clock: number; x: number; y: number } | null>(null);

// A gesture is one step of the history: it has ended when nothing moves for a while.
const PAUSE = 400;
let timer = 0;

function move(to: Range): void {
  moving.value = to;
  clearTimeout(timer);
  timer = setTimeout(settle, PAUSE);
}

function settle(): void {
  clearTimeout(timer);
  if (!moving.value) return;
  const [from, to] = moving.value.map(Math.round);
  change({ view: to - from >= wall.value ? null : [from, to] });
  moving.value = null;
}

// Undoing a step ends a gesture without a trace.
effect(() => {
  if (shownAgain.value === 0) return;
  clearTimeout(timer);
  moving.value = null;
});

export function zoom(factor: number, around?: number): void {
  const [from, to] = visible.value;
  move(zoomed(visible.value, around ?? (from + to) / 2, factor, wall.value));
}

export function pan(share: number): void {
  move(panned(visible.value, share, wall.value));
}

export function show(range: Range | null): void {
  const view = range && inside(range, wall.value).map(Math.round) as Range;
  moving.value = null;
  change({ view: view && view[1] - view[0] < wall.value ? view : null });
}

export function foldAll(folded: boolean): void {
  change({ folded: folded ? head.value.processes.map((_, index) => index) : [] });
}

export function fold(process: number, folded: boolean): void {
  const others = state.value.folded.filter((other) => other !== process);
  change({ folded: folded ? [...others, process].sort((a, b) => a - b) : others });
}
