// Time by kind of task and by the line of the `.await`, for a selection (crates/view/src/tasks.rs). Pure.

import { numbers } from "../decode.ts";
import type { Selection } from "../model.ts";
import { within } from "./part.ts";

export interface TaskKind { name: string; file: string; line: number }
export interface WaitLine { function: string; file: string; line: number; words: string }
export interface TaskNames { kinds: TaskKind[]; waits: WaitLine[] }

// By kind from 1 (0: outside of tasks): time, the part of it in which they waited, and how many tasks. By line from 1 (0: none): time and
// samples.
export interface TaskTimes {
  kindTime: Float64Array; kindWaiting: Float64Array; kindTasks: Float64Array; waitTime: Float64Array; waitHits: Float64Array;
}

// What is needed of samples.
export interface Samples { clock: Float64Array; time: Float64Array; spread: Float64Array; thread: Int32Array; state: Uint8Array; hits: Float64Array }

export function taskNames(columns: Map<string, Uint8Array>): TaskNames {
  const list = (name: string) => JSON.parse(new TextDecoder().decode(columns.get(name)) || "[]");
  return { kinds: list("tasks.kinds"), waits: list("tasks.waits") };
}

export class TaskSamples {
  private readonly task: Float64Array;
  private readonly wait: Float64Array;
  private readonly waiting: Float64Array;
  // By task from 1.
  private readonly kind: Float64Array;

  constructor(private readonly samples: Samples, columns: Map<string, Uint8Array>, tasks: number) {
    const column = (name: string, count: number) => {
      const bytes = columns.get(name);
      return bytes ? numbers(bytes, count) : new Float64Array(count);
    };
    const count = samples.clock.length;
    this.task = column("samples.task", count);
    this.wait = column("samples.wait", count);
    this.waiting = column("samples.waiting", count);
    this.kind = Float64Array.from([0, ...column("tasks.kind", tasks)]);
  }

  count({ range, threads }: Selection, counts: (state: number) => boolean): TaskTimes {
    const { clock, time, spread, thread, state, hits } = this.samples;
    const [from, to] = range ?? [-Infinity, Infinity];
    const chosen = threads && new Set(threads);
    const kinds = this.kind.reduce((most, kind) => Math.max(most, kind), 0) + 1, lines = this.wait.reduce((most, line) => Math.max(most, line), 0) + 1;
    const kindTime = new Float64Array(kinds), kindWaiting = new Float64Array(kinds), kindTasks = new Float64Array(kinds);
    const waitTime = new Float64Array(lines), waitHits = new Float64Array(lines);
    const seen = new Uint8Array(this.kind.length);
    for (let i = 0; i < clock.length; i++) {
      if (!counts(state[i]) || (chosen && !chosen.has(thread[i]))) continue;
      const part = within(from, to, clock[i], time[i], spread[i]), isIn = from < clock[i] && clock[i] <= to;
      if (part <= 0 && !isIn) continue;
      const task = this.task[i], kind = this.kind[task];
      kindTime[kind] += part;
      if (this.waiting[i]) kindWaiting[kind] += part;
      if (task > 0 && !seen[task]) {
        seen[task] = 1;
        kindTasks[kind]++;
      }
      waitTime[this.wait[i]] += part;
      if (isIn) waitHits[this.wait[i]] += hits[i];
    }
    return { kindTime, kindWaiting, kindTasks, waitTime, waitHits };
  }
}
