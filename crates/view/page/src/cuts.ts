// Why stacks are incomplete at a place, in the words of the reports: asked for when somebody looks.

import { signal } from "@preact/signals";
import { latest } from "./client.ts";
import { isMetric, type Cuts, type Place } from "./model.ts";
import { client, counted, head, shapeNumber } from "./recording.ts";
import { selected } from "./state.ts";
import { percent } from "./units.ts";

// Reasons that are named.
const MOST = 3;

// By place, of what is counted now.
const known = signal<{ number: number; texts: ReadonlyMap<string, string> }>({ number: 0, texts: new Map() });

const textsOf = (number: number, { number: of, texts } = known.peek()) => (of === number ? texts : new Map<string, string>());

// Each question makes the worker read all samples: one is on its way, and the last of the others waits. Who still wants one of the others
// reads `known`, and asks again.
const ask = latest(async ({ key, number, place }: { key: string; number: number; place: Place }) => {
  const isCounted = () => counted.peek()?.number === number;
  if (!isCounted() || textsOf(number).has(key)) return;
  const cuts = await client.ask({ kind: "cuts", selection: selected(), shape: shapeNumber.peek(), place });
  if (isCounted()) known.value = { number, texts: new Map(textsOf(number)).set(key, words(cuts)) };
});

// The text, once it is known; empty if all stacks are complete.
export function cutText(place: Place): string {
  const now = counted.value;
  if (!now || !head.value.cuts?.length || isMetric(now.measure)) return "";
  const key = JSON.stringify(place), { number } = now;
  const text = textsOf(number, known.value).get(key);
  if (text === undefined) ask({ key, number, place });
  return text ?? "";
}

// As the notes of the reports say it.
function words({ total, times }: Cuts): string {
  const all = times.reduce((sum, time) => sum + time, 0);
  if (all <= 0) return "";
  const reasons = head.value.cuts!.filter(({ number }) => times[number] > 0).sort((a, b) => times[b.number] - times[a.number]);
  const parts = reasons.slice(0, MOST).map(({ number, meaning, remedy }) => `${reasons.length > 1 ? `${percent(times[number], total)} ` : ""}${meaning}${remedy ? ` (${remedy})` : ""}`);
  return `${percent(all, total)} of it has incomplete stacks: ${parts.join("; ")}`;
}
