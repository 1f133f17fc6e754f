// The lanes: the whole program, then each process with its threads, those with most time first. Pure.

import { type Head, type Measure, type ThreadTimes, timeMeasure } from "../model.ts";

export const AXIS = 20;
const FIRST = 64, ROW = 26;

export interface Lane {
  key: string; kind: "all" | "process" | "thread";
  label: string; id: string;
  // Numbers of threads; null for all.
  threads: number[] | null;
  // The index of a process that can be folded.
  process: number | null;
  folded: boolean;
  // When it began and ended.
  alive: [number, number];
  top: number; height: number;
}

// The time of a measure of a thread.
export function timeOf(times: ThreadTimes, measure: Measure, thread: number): number {
  const { cpu, asleep, ready } = times, of = timeMeasure(measure);
  return of === "wall" ? (cpu[thread] ?? 0) + (asleep[thread] ?? 0) + (ready[thread] ?? 0) : times[of][thread] ?? 0;
}

// `own`: how many threads the recording has; others are of an earlier one.
export function sum(times: ThreadTimes, measure: Measure, threads: number[] | null, own = times.cpu.length - 1): number {
  let all = 0;
  if (threads) for (const thread of threads) all += timeOf(times, measure, thread);
  else for (let thread = 0; thread <= own; thread++) all += timeOf(times, measure, thread);
  return all;
}

function lifeOf({ start, end }: { start: number; end: number | null }, head: Head): [number, number] {
  return [start, end ?? head.wall];
}

// Lanes whose name, process or number contains the text, with their processes. Processes that are folded hide their threads.
export function lanesOf(head: Head, times: ThreadTimes, measure: Measure, folded: number[], text: string): Lane[] {
  const wanted = text.trim().toLowerCase();
  const has = (...texts: (string | number)[]) => wanted === "" || texts.some((text) => String(text).toLowerCase().includes(wanted));
  const members: number[][] = head.processes.map(() => []);
  head.threads.forEach(({ process }, i) => members[process]?.push(i + 1));
  const several = head.processes.length > 1;
  const lanes: Lane[] = [];
  let top = AXIS;
  const push = (lane: Omit<Lane, "top" | "height">, height: number) => {
    lanes.push({ ...lane, top, height });
    top += height;
  };
  push({ key: "all", kind: "all", label: "whole program", id: "", threads: null, process: null, folded: false, alive: [0, head.wall] }, FIRST);
  const used = members.map((threads) => sum(times, measure, threads));
  const order = head.processes.map((_, index) => index).sort((a, b) => used[b] - used[a] || a - b);
  for (const index of order) {
    const { name, pid } = head.processes[index];
    const all = members[index];
    const shown = several && has(name, pid) ? all : all.filter((thread) => has(head.threads[thread - 1].name, head.threads[thread - 1].tid));
    if (shown.length === 0 && !(several && has(name, pid))) continue;
    const isFolded = several && folded.includes(index) && wanted === "";
    if (several) {
      push({ key: `p${index}`, kind: "process", label: name, id: String(pid), threads: all, process: all.length ? index : null, folded: isFolded, alive: lifeOf(head.processes[index], head) }, ROW);
    }
    if (isFolded) continue;
    const at = new Map(shown.map((thread) => [thread, timeOf(times, measure, thread)]));
    for (const thread of shown.slice().sort((a, b) => at.get(b)! - at.get(a)! || a - b)) {
      const { name, tid } = head.threads[thread - 1];
      push({
        key: `t${thread}`, kind: "thread", label: name || `thread ${tid}`, id: name ? String(tid) : "", threads: [thread], process: null, folded: false,
        alive: lifeOf(head.threads[thread - 1], head),
      }, ROW);
    }
  }
  return lanes;
}

// The lanes in a part of the height: from the first to before the last.
export function visibleLanes(lanes: Lane[], top: number, bottom: number): Lane[] {
  let low = 0, high = lanes.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (lanes[middle].top + lanes[middle].height > top) high = middle;
    else low = middle + 1;
  }
  let end = low;
  while (end < lanes.length && lanes[end].top < bottom) end++;
  return lanes.slice(low, end);
}
