// The visible part of the time axis, as numbers. Pure.

import { tickStep } from "../units.ts";

export type Range = [number, number];

// No less than this is shown, ns.
const LEAST = 1000;

// A part of the same length, or shorter, that lies in the whole.
export function inside([from, to]: Range, wall: number): Range {
  const length = Math.min(Math.max(to - from, Math.min(LEAST, wall)), wall);
  const begin = Math.max(0, Math.min(from, wall - length));
  return [begin, begin + length];
}

// The visible part after zooming around a moment, which stays where it is. Factors below 1 show less.
export function zoomed([from, to]: Range, around: number, factor: number, wall: number): Range {
  const length = Math.min(Math.max((to - from) * factor, Math.min(LEAST, wall)), wall);
  const begin = around - ((around - from) / (to - from)) * length;
  return inside([begin, begin + length], wall);
}

// The visible part moved by a share of its length.
export function panned([from, to]: Range, share: number, wall: number): Range {
  const by = (to - from) * share;
  return inside([from + by, to + by], wall);
}

const UNITS: [number, string][] = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];

// Digits after the point that tell moments apart which are a step from each other.
function digitsOf(step: number, scale: number): number {
  return Math.max(0, Math.min(9, Math.ceil(Math.log10(scale / step) - 1e-9)));
}

// A moment, as exactly as steps of this length need.
export function exact(clock: number, step: number): string {
  const [scale, unit] = UNITS.find(([scale]) => clock >= scale) ?? [1, "ns"];
  return `${(clock / scale).toFixed(digitsOf(step, scale))} ${unit}`;
}

// Ticks and their labels: all have the same unit, and as many digits as tell neighbours apart. `room`: how many fit.
export function ticks([from, to]: Range, room: number): { clock: number; label: string }[] {
  let least = (to - from) / Math.max(room, 1);
  const [scale, unit] = UNITS.find(([scale]) => to >= scale) ?? [1, "ns"];
  let step = tickStep(least);
  // Long labels need more room than the usual ten letters.
  const letters = Math.floor(to / scale).toString().length + digitsOf(step, scale) + 2;
  if (letters > 10) step = tickStep(least *= letters / 10);
  const digits = digitsOf(step, scale);
  const all = [];
  for (let number = Math.ceil(from / step); number * step <= to; number++) {
    const clock = number * step;
    all.push({ clock, label: clock === 0 ? "0" : `${(clock / scale).toFixed(digits)} ${unit}` });
  }
  return all;
}
