// Numbers as people read them.

const UNITS: [number, string][] = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];

// A time in ns with three figures.
export function time(ns: number): string {
  const [scale, unit] = UNITS.find(([scale]) => Math.abs(ns) >= scale) ?? [1, "ns"];
  const value = ns / scale;
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return ns === 0 ? "0" : `${value.toFixed(unit === "ns" ? 0 : digits)} ${unit}`;
}

export function percent(part: number, whole: number): string {
  return whole > 0 ? `${((100 * part) / whole).toFixed(1)} %` : "";
}

// Distances of ticks: 1, 2 or 5 times a power of ten, at least so many ns.
export function tickStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= least)!;
}

// A difference of shares in percent points, with as many digits as it needs.
export function points(share: number): string {
  const value = 100 * share;
  return `${value.toFixed(value < 0.1 && value > 0 ? 2 : 1)} %`;
}
