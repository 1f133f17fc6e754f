// Graphs of the worker that follow what is counted.

import { effect, signal, type ReadonlySignal } from "@preact/signals";
import { latest } from "./client.ts";
import type { GraphSlot } from "./model.ts";
import { Mirror } from "./mirror.ts";
import type { Direction } from "./nodes.ts";
import { client, type Counting, failure } from "./recording.ts";

interface Wanted { counted: Counting; direction: Direction; start: number | null }

let last = 0;

// A graph, and whether it is the wanted one: null, or what ends once it is.
export interface Mirrored { shown: ReadonlySignal<Mirror | null>; comes: () => Promise<void> | null }

// A graph of what is wanted. Until another one has come, the one before is shown. `look`: asks for what will be in sight.
export function mirrored(slot: GraphSlot, wanted: () => Wanted | null, look: (graph: Mirror) => void = () => {}): Mirrored {
  const shown = signal<Mirror | null>(null);
  let asked = 0, made = 0, waiting: (() => void)[] = [];
  const follow = async (wanted: Wanted | null) => {
    if (!wanted) {
      shown.value = null;
      return;
    }
    const { counted, direction, start } = wanted;
    const number = ++last;
    // Half a pixel of the whole width.
    const least = 0.5 / Math.max(innerWidth, 300);
    const piece = await client.ask({ kind: "graph", slot, graph: number, counted: counted.number, direction, start, growth: { below: [0], least, most: Infinity } });
    if (!piece) return;
    const next = new Mirror(counted, direction, start, piece.piece, least, async (growth) => (await client.ask({ kind: "grow", slot, graph: number, growth }))?.piece ?? null);
    do look(next); while (await next.settled());
    shown.value = next;
  };
  const make = latest(async ({ wanted, turn }: { wanted: Wanted | null; turn: number }) => {
    await follow(wanted).catch((error) => { failure.value = `This cannot be drawn: ${error instanceof Error ? error.message : error}`; });
    made = turn;
    if (made !== asked) return;
    for (const call of waiting) call();
    waiting = [];
  });
  effect(() => make({ wanted: wanted(), turn: ++asked }));
  return { shown, comes: () => (made === asked ? null : new Promise((call) => waiting.push(call))) };
}
