// Why stacks are incomplete at a place, in the words of the reports: asked for when somebody looks.

import { signal } from "@preact/signals";
import { isMetric, type Cuts, type Place } from "./model.ts";
import { client, counted, head, shapeNumber } from "./recording.ts";
import { selected } from "./state.ts";
import { percent } from "./units.ts";

// Reasons that are named.
const MOST = 3;

// By place, of what is counted now.
const known = signal<{ number: number; texts: ReadonlyMap<string, string> }>({ number: 0, texts: new Map() });

// The text, once it is known; empty if all stacks are complete.
export function cutText(place: Place): string {
  const now = counted.value;
  if (!now || !head.value.cuts?.length || isMetric(now.measure)) return "";
  const key = JSON.stringify(place), { number } = now;
  const texts = known.value.number === number ? known.value.texts : new Map<string, string>();
  const text = texts.get(key);
  if (text === undefined && !asked.has(`${number} ${key}`)) {
    asked.add(`${number} ${key}`);
    void client.ask({ kind: "cuts", selection: selected(), shape: shapeNumber.value, place }).then((cuts) => {
      asked.delete(`${number} ${key}`);
      if (counted.peek()?.number !== number) return;
      const texts = known.peek().number === number ? known.peek().texts : new Map<string, string>();
      known.value = { number, texts: new Map(texts).set(key, words(cuts)) };
    });
  }
  return text ?? "";
}
const asked = new Set<string>();

// As the notes of the reports say it.
function words({ total, times }: Cuts): string {
  const all = times.reduce((sum, time) => sum + time, 0);
  if (all <= 0) return "";
  const reasons = head.value.cuts!.filter(({ number }) => times[number] > 0).sort((a, b) => times[b.number] - times[a.number]);
  const parts = reasons.slice(0, MOST).map(({ number, meaning, remedy }) => `${reasons.length > 1 ? `${percent(times[number], total)} ` : ""}${meaning}${remedy ? ` (${remedy})` : ""}`);
  return `${percent(all, total)} of it has incomplete stacks: ${parts.join("; ")}`;
}
