// The bins of lanes: asked for those that are visible, several at once, and kept as pictures.

import { themed } from "../canvas.ts";
import { columnsOf } from "../kernel/bins.ts";
import { WAITS } from "../kernel/waits.ts";
import { client, head } from "../recording.ts";
import type { Lane } from "./lanes.ts";
import { type Look, type Looks, paint, pixel, scaleOf, type Texture } from "./paint.ts";
import type { Range } from "./zoom.ts";

export const COLUMNS = columnsOf(head.value.categories.length);
// Lanes in one question: others can be asked in between.
const BATCH = 12;
// Lanes whose bins are kept.
const KEPT = 96;

export const TEXTURES: Record<(typeof WAITS)[number], Texture | undefined> = { lock: "stripes", io: "lines", poll: "dots", sleep: undefined, other: "bars" };

// `reading`: of the recording.
export interface Wanted { range: Range; parts: number; lit: number | null; reading: number }
export interface Shown extends Wanted { rows: Float32Array; scale: number; image: OffscreenCanvas | null; theme: number }

let theme = 0;
let known: Looks | undefined;
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { theme++; known = undefined; });

function looks(): Looks {
  return known ??= {
    stacked: [
      ...head.value.categories.map(({ color }): Look => ({ color: pixel(color) })),
      { color: pixel(themed("--waiting")) },
      ...WAITS.map((wait): Look => ({ color: pixel(themed(`--asleep-${wait}`)), second: pixel(themed("--asleep-mark")), texture: TEXTURES[wait] })),
    ],
    lit: pixel(themed("--lit")),
  };
}

export class Source {
  // In order of use.
  private readonly shown = new Map<string, Shown>();
  private missing: Lane[] = [];
  private asking = false;

  constructor(private readonly changed: () => void) {}

  // The last bins of a lane, which may be of another part of the time. Notes what is to be asked.
  of(lane: Lane, wanted: Wanted): Shown | undefined {
    const found = this.shown.get(lane.key);
    if (!found || !isSame(found, wanted)) this.missing.push(lane);
    if (found) {
      this.shown.delete(lane.key);
      this.shown.set(lane.key, found);
    }
    return found;
  }

  // The last bins of a lane, whatever they are of.
  last(key: string): Shown | undefined {
    return this.shown.get(key);
  }

  picture(lane: Lane, shown: Shown, ratio: number): OffscreenCanvas {
    const height = Math.round((lane.height - 3) * ratio);
    if (!shown.image || shown.theme !== theme || shown.image.height !== height) {
      const pixels = paint(shown.rows, COLUMNS.count, shown.parts, height, shown.scale, looks(), Math.max(1, Math.round(ratio)));
      shown.image = new OffscreenCanvas(shown.parts, height);
      shown.image.getContext("2d")!.putImageData(new ImageData(new Uint8ClampedArray(pixels.buffer as ArrayBuffer), shown.parts, height), 0, 0);
      shown.theme = theme;
    }
    return shown.image;
  }

  // Asks for what is missing, as it is wanted now. While an answer is awaited, nothing is asked: what is wanted then is noted when the
  // answer is drawn.
  ask(wanted: Wanted): void {
    const missing = this.missing;
    this.missing = [];
    if (this.asking || missing.length === 0) return;
    this.asking = true;
    const batch = missing.slice(0, BATCH);
    const lanes = batch.map(({ threads, kind }) => ({ threads, waits: kind === "thread" }));
    void client.ask({ kind: "bins", lanes, range: wanted.range, parts: wanted.parts, lit: wanted.lit }).then(({ parts, rows }) => {
      const size = parts * COLUMNS.count;
      const step = (wanted.range[1] - wanted.range[0]) / parts;
      batch.forEach((lane, i) => {
        const own = rows.slice(i * size, (i + 1) * size);
        const scale = scaleOf(own, COLUMNS.count, parts, head.value.categories.length, step, lane.kind === "thread");
        this.shown.delete(lane.key);
        this.shown.set(lane.key, { ...wanted, rows: own, scale, image: null, theme });
      });
      for (const key of this.shown.keys()) {
        if (this.shown.size <= KEPT) break;
        this.shown.delete(key);
      }
    }).finally(() => {
      this.asking = false;
      this.changed();
    });
  }
}

function isSame(one: Wanted, other: Wanted): boolean {
  return one.range[0] === other.range[0] && one.range[1] === other.range[1] && one.parts === other.parts && one.lit === other.lit && one.reading === other.reading;
}
