// Allocations of a selection (crates/view/src/allocations.rs), as the reports count them: the groups of the whole recording, or in a range
// the slices of time whose middle lies in it (crates/profile/src/allocations_within.rs). Pure.

import { numbers, signed } from "../decode.ts";
import { ALLOCATION_KEYS, type AllocationKey, type AllocationRows, type AllocationsHead, type Metric, type Range } from "../model.ts";
import type { Live } from "./live.ts";
import { Errors } from "./sampling.ts";

// What is counted of a group (crates/profile/src/allocations.rs).
const FIELDS = [
  "count", "bytes", "freedCount", "freedBytes", "temporary", "peakCount", "peakBytes", "olderCount", "olderBytes", "keptCount", "keptBytes",
] as const;
export type Counted = Record<(typeof FIELDS)[number], Float64Array>;
// What slices have of a key.
const CHANGES = ["count", "bytes", "freedCount", "freedBytes", "temporary"] as const;

const BLOCK = 0;

const left = (sum: number, less: number) => Math.max(sum - less, 0);
const liveCount = (of: Counted, i: number) => left(of.count[i] + of.olderCount[i], of.freedCount[i]);
const liveBytes = (of: Counted, i: number) => left(of.bytes[i] + of.olderBytes[i], of.freedBytes[i]);
const leakedCount = (of: Counted, i: number) => left(liveCount(of, i), of.keptCount[i]);
const leakedBytes = (of: Counted, i: number) => left(liveBytes(of, i), of.keptBytes[i]);

// The value of a metric, and the number of blocks that it is made of (crates/report/src/metric.rs).
const VALUES: Record<Metric, [value: (of: Counted, i: number) => number, blocks: (of: Counted, i: number) => number]> = {
  "bytes": [(of, i) => of.bytes[i], (of, i) => of.count[i]],
  "count": [(of, i) => of.count[i], (of, i) => of.count[i]],
  "live-bytes": [liveBytes, liveCount],
  "live-count": [liveCount, liveCount],
  "peak-bytes": [(of, i) => of.peakBytes[i], (of, i) => of.peakCount[i]],
  "leaked-bytes": [leakedBytes, leakedCount],
  "temporary": [(of, i) => of.temporary[i], (of, i) => of.temporary[i]],
};

// Counts by group. `key`: which it is a group of. `slices`: which were counted, and from when to when they last. `why`: nothing is known.
interface Part { key: Int32Array; of: Counted; slices: { range: Range; count: number } | null; why: string | null }

// Which groups count. `type`: the name of an allocated type.
export interface Chosen { range: Range | null; threads: Uint8Array; type?: string }

function empty(count: number): Counted {
  return Object.fromEntries(FIELDS.map((field) => [field, new Float64Array(count)])) as Counted;
}

export class Allocations {
  // By key: the box of its stack, thread, process, block or mapping, size class, site, whether it has a type.
  private readonly box: Int32Array;
  private readonly thread: Int32Array;
  private readonly process: Int32Array;
  private readonly kind: Int32Array;
  private readonly size: Int32Array;
  private readonly site: Int32Array;
  private readonly typed: Int32Array;
  // The function of its line in the program itself, and the names of its rows by word.
  private readonly own: Int32Array;
  private readonly rowsOf: Int32Array[];
  private readonly names: string[];
  private readonly short: string[];
  private readonly groups: Part;
  // By key of slices: the key.
  private readonly sliced: Int32Array;
  // By slice: when it begins and ends, and where its changes end.
  private readonly begin: Float64Array;
  private readonly end: Float64Array;
  private readonly ends: Int32Array;
  private readonly changed: Int32Array;
  private readonly changes: Record<(typeof CHANGES)[number], Float64Array>;
  // By slice, for each process with a change: by how much its live bytes grew.
  private readonly growth: Map<number, number>[];
  private last: { key: string; part: Part } | undefined;

  constructor(private readonly head: AllocationsHead, columns: Map<string, Uint8Array>, boxOf: Int32Array) {
    const column = (name: string) => {
      const bytes = columns.get(`allocations.${name}`);
      if (!bytes) throw new Error(`there is no column allocations.${name}`);
      return numbers(bytes);
    };
    const whole = (name: string) => Int32Array.from(column(name));
    const list = (name: string): string[] => JSON.parse(new TextDecoder().decode(columns.get(`allocations.${name}`)));
    this.box = Int32Array.from(column("keys.node"), (node) => boxOf[node]);
    [this.thread, this.process, this.kind, this.size, this.site, this.typed, this.own] =
      ["thread", "process", "kind", "size", "site", "typed", "own"].map((name) => whole(`keys.${name}`));
    const count = this.box.length, rows = whole("keys.rows");
    this.rowsOf = ALLOCATION_KEYS.map((_, by) => rows.subarray(by * count, (by + 1) * count));
    [this.names, this.short] = [list("names"), list("short")];
    const key = whole("groups.key"), of = empty(key.length);
    for (const field of FIELDS) if (!field.startsWith("older")) of[field] = column(`groups.${field}`);
    this.groups = { key, of, slices: null, why: null };
    this.sliced = whole("sliced");
    this.begin = column("slices.begin").map(signed);
    this.end = column("slices.length").map((length, slice) => this.begin[slice] + length);
    this.ends = whole("slices.changes");
    for (let slice = 1; slice < this.ends.length; slice++) this.ends[slice] += this.ends[slice - 1];
    this.changed = whole("changes.key");
    this.ends.forEach((end, slice) => {
      for (let i = (slice > 0 ? this.ends[slice - 1] : 0) + 1; i < end; i++) this.changed[i] += this.changed[i - 1];
    });
    this.changes = Object.fromEntries(CHANGES.map((field) => [field, column(`changes.${field}`).map(signed)])) as typeof this.changes;
    this.growth = Array.from(this.ends, (_, slice) => {
      const growth = new Map<number, number>();
      this.each(slice, (i, key) => {
        if (this.kind[key] !== BLOCK) return;
        const process = this.process[key];
        growth.set(process, (growth.get(process) ?? 0) + this.changes.bytes[i] - this.changes.freedBytes[i]);
      });
      return growth;
    });
  }

  // Values and blocks by box of a shape that has so many boxes, and how many of the blocks were recorded.
  folded(chosen: Chosen, metric: Metric, map: Int32Array, boxes: number): { own: Float64Array; hits: Float64Array; samples: number; why: string | null } {
    const own = new Float64Array(boxes), hits = new Float64Array(boxes);
    const part = this.part(chosen.range, metric);
    const [value, blocks] = VALUES[metric];
    const errors = new Errors(this.head.processes);
    let samples = this.head.exact ? Infinity : 0;
    this.eachChosen(part, chosen, map, (i, key, box) => {
      const found = blocks(part.of, i);
      own[box] += value(part.of, i);
      hits[box] += found;
      if (!this.head.exact && found > 0) samples += errors.recorded(this.process[key], found, part.of.count[i], part.of.bytes[i]);
    });
    return { own, hits, samples, why: part.why };
  }

  // Sums by the rows of a table, and of all rows.
  table(chosen: Chosen, by: AllocationKey, map: Int32Array): AllocationRows {
    const part = this.part(chosen.range, null);
    const rowOf = this.rowsOf[ALLOCATION_KEYS.indexOf(by)];
    const rows = new Map<number, { row: number; name: number; key: number; sites: Set<number> }>();
    const of: number[] = [], groups: number[] = [];
    let typed = 0;
    const mappings = [0, 0, 0];
    this.eachChosen(part, chosen, map, (i, key) => {
      const name = rowOf[key];
      let row = rows.get(name);
      if (!row) rows.set(name, row = { row: rows.size, name, key, sites: new Set() });
      row.sites.add(this.site[key]);
      of.push(row.row);
      groups.push(i);
      if (this.typed[key]) typed += part.of.count[i];
    }, (i) => {
      mappings[0] += part.of.count[i];
      mappings[1] += part.of.bytes[i];
      mappings[2] += left(part.of.bytes[i] + part.of.olderBytes[i], part.of.freedBytes[i]);
    });
    // The last one is that of all rows.
    const sums = empty(rows.size + 1);
    for (const field of FIELDS) {
      groups.forEach((i, at) => {
        sums[field][of[at]] += part.of[field][i];
        sums[field][rows.size] += part.of[field][i];
      });
    }
    const column = (value: (of: Counted, i: number) => number) => Float64Array.from({ length: rows.size + 1 }, (_, row) => value(sums, row));
    const all = [...rows.values()];
    const errors = new Errors(this.head.processes);
    const stratum = (i: number) => ({ process: this.process[part.key[i]], thread: this.thread[part.key[i]], size: this.size[part.key[i]], count: part.of.count[i], bytes: part.of.bytes[i] });
    const nameOf = (key: number) => {
      if (by === "line") return this.names[this.own[key]];
      return by === "site" || by === "function" ? this.names[this.rowsOf[ALLOCATION_KEYS.indexOf("function")][key]] : "";
    };
    return {
      by, names: all.map(({ name }) => this.names[name]), short: all.map(({ name }) => this.short[name] || this.names[name]), functions: all.map(({ key }) => nameOf(key)),
      thread: Int32Array.from(all, ({ key }) => this.thread[key]), process: Int32Array.from(all, ({ key }) => this.process[key]),
      count: sums.count, bytes: sums.bytes, liveCount: column(liveCount), liveBytes: column(liveBytes), leakedCount: column(leakedCount), leakedBytes: column(leakedBytes),
      peakBytes: sums.peakBytes, temporary: sums.temporary,
      error: this.head.exact ? new Float64Array(rows.size + 1) : errors.ofRows(groups.map(stratum), of, rows.size, sums.bytes),
      sites: Float64Array.from(all, ({ sites }) => sites.size), typed, mappings: { count: mappings[0], bytes: mappings[1], liveBytes: mappings[2] },
      slices: part.slices, why: part.why,
    };
  }

  // Live bytes of all processes at the end of each slice.
  live(): Live {
    let live = 0;
    const bytes = Float64Array.from(this.growth, (growth) => {
      for (const more of growth.values()) live += more;
      return Math.max(live, 0);
    });
    return { end: this.end.slice(), bytes };
  }

  // Calls back with each change of a slice, and its key.
  private each(slice: number, call: (change: number, key: number) => void): void {
    for (let i = slice > 0 ? this.ends[slice - 1] : 0; i < this.ends[slice]; i++) call(i, this.sliced[this.changed[i]]);
  }

  private eachChosen(part: Part, { threads, type }: Chosen, map: Int32Array, block: (group: number, key: number, box: number) => void, mapping?: (group: number) => void): void {
    const [types] = this.rowsOf;
    const wanted = type === undefined ? -1 : this.names.indexOf(type);
    if (type !== undefined && wanted < 0) return;
    for (let i = 0; i < part.key.length; i++) {
      const key = part.key[i];
      if (!threads[this.thread[key]]) continue;
      const box = map[this.box[key]];
      if (box < 0) continue;
      if (this.kind[key] !== BLOCK) {
        if (wanted < 0) mapping?.(i);
      } else if (wanted < 0 || types[key] === wanted) block(i, key, box);
    }
  }

  // The counts of a range. `metric`: what is asked for, if it is one.
  private part(range: Range | null, metric: Metric | null): Part {
    if (!range) return this.groups;
    const nothing = (why: string): Part => ({ key: new Int32Array(0), of: empty(0), slices: null, why });
    if (metric === "leaked-bytes") return nothing("what has leaked is known at the end only: it needs the whole time");
    const key = range.join();
    if (this.last?.key === key) return this.last.part;
    const part = this.within(range, nothing);
    this.last = { key, part };
    return part;
  }

  private within([from, to]: Range, nothing: (why: string) => Part): Part {
    const { begin, end } = this;
    const slices = begin.length;
    if (slices === 0) return nothing("allocations have no times: the counters were read at the end only. `stackglass record --allocs -- PROGRAM` stores them by time");
    const middle = (slice: number) => begin[slice] + Math.floor((end[slice] - begin[slice]) / 2);
    let first = 0;
    while (first < slices && middle(first) < from) first++;
    let last = first;
    while (last < slices && middle(last) < to) last++;
    if (first === last) {
      if (from >= end[slices - 1] || to <= begin[0]) return nothing("no allocations were recorded in this range");
      const at = Math.min(first, slices - 1);
      return nothing(`the range is too short: allocations are known by slices of ${Math.floor((end[at] - begin[at]) / 1e6)} ms there, which count if their middle lies in the range`);
    }
    return { ...this.sum(first, last), slices: { range: [Math.max(begin[first], 0), Math.max(end[last - 1], 0)], count: last - first }, why: null };
  }

  private sum(first: number, last: number): { key: Int32Array; of: Counted } {
    const peaks = this.peaks(first, last);
    const of = empty(this.sliced.length);
    const { count, bytes, freedCount, freedBytes, temporary } = this.changes;
    for (let slice = 0; slice < last; slice++) {
      for (let i = slice > 0 ? this.ends[slice - 1] : 0; i < this.ends[slice]; i++) {
        const at = this.changed[i], liveCount = count[i] - freedCount[i], liveBytes = bytes[i] - freedBytes[i];
        if (this.end[slice] <= (peaks.get(this.process[this.sliced[at]]) ?? -Infinity)) {
          of.peakCount[at] += liveCount;
          of.peakBytes[at] += liveBytes;
        }
        if (slice < first) {
          of.olderCount[at] += liveCount;
          of.olderBytes[at] += liveBytes;
          continue;
        }
        of.count[at] += count[i];
        of.bytes[at] += bytes[i];
        of.freedCount[at] += freedCount[i];
        of.freedBytes[at] += freedBytes[i];
        of.temporary[at] += temporary[i];
      }
    }
    // Estimates may go down.
    for (const field of FIELDS) for (let at = 0; at < of[field].length; at++) if (of[field][at] < 0) of[field][at] = 0;
    // Keys of which there is nothing have no rows.
    const some = [...this.sliced.keys()].filter((at) => FIELDS.some((field) => of[field][at] > 0));
    const picked = (column: Float64Array) => Float64Array.from(some, (at) => column[at]);
    return { key: Int32Array.from(some, (at) => this.sliced[at]), of: Object.fromEntries(FIELDS.map((field) => [field, picked(of[field])])) as Counted };
  }

  // When each process had the most live bytes, at ends of these slices.
  private peaks(first: number, last: number): Map<number, number> {
    const most = new Map<number, { at: number; live: number }>(), live = new Map<number, number>();
    for (let slice = 0; slice < last; slice++) {
      for (const [process, more] of this.growth[slice]) {
        const now = (live.get(process) ?? 0) + more;
        live.set(process, now);
        if (slice >= first && now > (most.get(process)?.live ?? -Infinity)) most.set(process, { at: this.end[slice], live: now });
      }
      // Without a change in the first slice, it has what it had before.
      if (slice === first) for (const [process, now] of live) if (!most.has(process)) most.set(process, { at: this.end[slice], live: now });
    }
    return new Map([...most].map(([process, { at }]) => [process, at]));
  }
}

