// What can be counted, and its numbers as the text reports write them.

import { type Counts, type Head, isMetric, type Measure, METRICS, type Time, TIMES } from "./model.ts";
import { bytes, count, counted } from "./sizes.ts";
import { time } from "./units.ts";

export const MEASURE_NAMES: Record<Measure, string> = {
  "cpu": "CPU time", "asleep": "time asleep", "ready": "time ready", "wall": "all time",
  "bytes": "bytes allocated", "count": "allocations", "live-bytes": "bytes alive at the end", "live-count": "blocks alive at the end",
  "peak-bytes": "bytes at the peak", "leaked-bytes": "bytes leaked", "temporary": "temporary allocations",
};

// Samples of other formats have no times.
let samplesOnly = false;
const SAMPLE_NAMES: Record<Time, string> = { "cpu": "samples", "asleep": "samples asleep", "ready": "samples ready", "wall": "all samples" };

// From now on, samples are counted in the place of times.
export function countSamples(): void {
  samplesOnly = true;
}

export type Unit = "ns" | "bytes" | "count";

export function unitOf(measure: Measure): Unit {
  if (!isMetric(measure)) return samplesOnly ? "count" : "ns";
  return measure.endsWith("bytes") ? "bytes" : "count";
}

// Those that a recording has.
export function measuresOf({ walltime, samples, allocations }: Pick<Head, "walltime" | "samples" | "allocations">): Measure[] {
  const times = walltime ? TIMES.slice(0, 1) : TIMES;
  return allocations ? [...(samples > 0 ? times : []), ...METRICS] : [...times];
}

export function nameOf(measure: Measure, { walltime }: Pick<Head, "walltime">): string {
  if (samplesOnly && !isMetric(measure)) return SAMPLE_NAMES[measure];
  return walltime && measure === "cpu" ? "wall time of tasks" : MEASURE_NAMES[measure];
}

// A value of what is counted.
export function amount({ measure }: Pick<Counts, "measure">, value: number): string {
  return { ns: time, bytes, count }[unitOf(measure)](value);
}

// On how many samples something is based, or of how many allocations it is.
export function hitsText({ measure }: Pick<Counts, "measure">, hits: number): string {
  if (!isMetric(measure)) return `${hits} samples`;
  return /^(live|peak|leaked)/.test(measure) ? counted(hits, "block", "blocks") : counted(hits, "allocation", "allocations");
}

// All that is counted.
export function wholeText(of: Counts): string {
  if (of.why) return of.why;
  const hits = hitsText(of, of.hits[0]);
  return unitOf(of.measure) === "count" ? hits : `${amount(of, of.total[0])} in ${hits}`;
}
