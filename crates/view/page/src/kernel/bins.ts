// The time axis in equal parts: what each lane did in each of them. Pure, as the rest of the kernel.

import type { Bins, LaneOf, Largest } from "../model.ts";
import { before, within } from "./part.ts";
import { isEntry, WAITS, waitOf } from "./waits.ts";

// Numbers of states (crates/profile/src/recording.rs).
const ASLEEP = 2, READY = 4;

// Samples in order of their clocks.
export interface Samples {
  clock: Float64Array; time: Float64Array; spread: Float64Array;
  box: Int32Array; thread: Int32Array; state: Uint8Array;
}

// Samples by thread, and the kinds of boxes.
export class Lanes {
  // The samples of thread `t` are `order[first[t]..first[t + 1]]`.
  private readonly order: Int32Array;
  private readonly first: Int32Array;
  // Of a place in `order`: when the earliest sample of the thread from there on may have begun.
  private readonly earliest: Float64Array;
  // What a thread waits in that sleeps in a box.
  private readonly wait: Uint8Array;
  // The function that says what is waited for: not one that only enters the kernel.
  private readonly waiting: Int32Array;

  constructor(
    private readonly samples: Samples, threads: number, private readonly category: Uint8Array, private readonly categories: number,
    private readonly func: Int32Array, parent: Int32Array, names: string[],
  ) {
    const { clock, time, spread, thread } = samples;
    const count = clock.length;
    this.first = new Int32Array(threads + 2);
    for (let i = 0; i < count; i++) this.first[thread[i] + 1]++;
    for (let t = 0; t <= threads; t++) this.first[t + 1] += this.first[t];
    this.order = new Int32Array(count);
    this.earliest = new Float64Array(count);
    const next = this.first.slice(1), least = new Float64Array(threads + 1).fill(Infinity);
    for (let i = count - 1; i >= 0; i--) {
      const of = thread[i], at = --next[of];
      const begin = clock[i] - time[i] - spread[i];
      if (begin < least[of]) least[of] = begin;
      this.order[at] = i;
      this.earliest[at] = least[of];
    }
    const waits = names.map((name) => (isEntry(name) ? 255 : waitOf(name)));
    this.wait = new Uint8Array(parent.length);
    this.waiting = new Int32Array(parent.length);
    for (let box = 0; box < parent.length; box++) {
      const known = waits[func[box]], above = parent[box];
      const isCaller = known === 255 && above > 0;
      this.wait[box] = known === 255 ? this.wait[Math.max(above, 0)] : known;
      this.waiting[box] = isCaller ? this.waiting[above] : func[box];
    }
  }

  // What lanes did in equal parts of a range. `isLit`: by box, whether the lit function is on the stack.
  bins(lanes: LaneOf[], [from, to]: [number, number], parts: number, isLit: Uint8Array): Bins {
    const columns = columnsOf(this.categories);
    const rows = new Float32Array(lanes.length * parts * columns.count);
    const step = (to - from) / parts;
    const { clock, time, spread, box, state } = this.samples;
    const { category, wait } = this;
    const { count, ready, asleep, lit, litWaiting } = columns;
    lanes.forEach(({ threads, waits }, lane) => {
      const top = lane * parts;
      this.each(threads, from, to, (i) => {
        const of = state[i], at = box[i];
        const runs = of !== ASLEEP && of !== READY;
        if (!runs && !waits) return;
        const column = runs ? category[at] : of === READY ? ready : asleep + wait[at];
        const light = isLit[at] === 0 ? -1 : runs ? lit : litWaiting;
        const end = clock[i], length = time[i], wide = spread[i];
        const begin = end - length - wide;
        const first = Math.max(0, Math.floor((begin - from) / step));
        const last = Math.min(parts - 1, Math.floor((end - from) / step));
        if (first === last && begin >= from && end <= to) {
          const row = (top + first) * count;
          rows[row + column] += length;
          if (light >= 0) rows[row + light] += length;
          return;
        }
        let done = before(from + first * step, end, length, wide);
        for (let part = first; part <= last; part++) {
          const reached = before(part + 1 === parts ? to : from + (part + 1) * step, end, length, wide);
          const row = (top + part) * count;
          rows[row + column] += reached - done;
          if (light >= 0) rows[row + light] += reached - done;
          done = reached;
        }
      });
    });
    return { parts, rows };
  }

  // The function and state in which a lane spent most of a range; running counts before all else. Of a thread that sleeps in `syscall`, it is
  // the function that called that.
  largest(threads: number[] | null, [from, to]: [number, number]): Largest | null {
    const { clock, time, spread, box, state } = this.samples;
    const sums = new Map<number, number>();
    this.each(threads, from, to, (i) => {
      const kind = state[i] === ASLEEP ? 1 : state[i] === READY ? 2 : 0;
      const key = (kind === 1 ? this.waiting : this.func)[box[i]] * 3 + kind;
      const part = within(from, to, clock[i], time[i], spread[i]);
      if (part > 0) sums.set(key, (sums.get(key) ?? 0) + part);
    });
    const most = [...sums].sort((a, b) => Number(a[0] % 3 !== 0) - Number(b[0] % 3 !== 0) || b[1] - a[1])[0];
    return most ? { func: Math.floor(most[0] / 3), state: (["running", "asleep", "ready"] as const)[most[0] % 3], time: most[1] } : null;
  }

  // Calls back with each sample of these threads of which a part may lie in the range.
  private each(threads: number[] | null, from: number, to: number, call: (sample: number) => void): void {
    const { clock, thread } = this.samples;
    const { order, first, earliest } = this;
    const all = threads ?? Array.from({ length: first.length - 1 }, (_, number) => number);
    // Where most samples are asked for, they are read as they lie in memory.
    const count = threads ? threads.reduce((sum, number) => sum + first[number + 1] - first[number], 0) : clock.length;
    if (to - from > (clock[clock.length - 1] - clock[0]) / 8 && count > clock.length / 8) {
      const chosen = new Uint8Array(first.length);
      for (const number of all) chosen[number] = 1;
      let i = 0;
      while (i < clock.length && clock[i] <= from) i++;
      for (; i < clock.length; i++) if (chosen[thread[i]] !== 0) call(i);
      return;
    }
    for (const number of all) {
      const end = first[number + 1];
      let low = first[number], high = end;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (clock[order[middle]] > from) high = middle;
        else low = middle + 1;
      }
      for (let at = low; at < end && earliest[at] < to; at++) call(order[at]);
    }
  }
}

// Where the numbers of a row are: CPU time by category, then ready, asleep by what it waits in, and with the lit function on the stack
// running and not running.
export function columnsOf(categories: number) {
  const asleep = categories + 1, lit = asleep + WAITS.length;
  return { ready: categories, asleep, lit, litWaiting: lit + 1, count: lit + 2 };
}
