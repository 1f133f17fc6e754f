// When the time of a sample was spent. It lies evenly between the moment when it may have begun and the clock of the sample.

// The part of a sample before a moment, ns. The reports in Rust compute it in the same order of operations, and agree to the nanosecond.
export function before(moment: number, clock: number, time: number, spread: number): number {
  const begin = clock - time - spread;
  if (moment <= begin) return 0;
  if (moment >= clock) return time;
  if (spread === 0) return moment - begin;
  return Math.floor(((moment - begin) / (time + spread)) * time);
}

// The part of a sample in a range, ns. Parts of adjacent ranges add up.
export function within(from: number, to: number, clock: number, time: number, spread: number): number {
  return before(to, clock, time, spread) - before(from, clock, time, spread);
}
