// What a lane did at the moment below the pointer.

import { signal } from "@preact/signals";
import { latest } from "../client.ts";
import { WAITS } from "../kernel/waits.ts";
import type { Largest } from "../model.ts";
import { client, head, loaded } from "../recording.ts";
import { percent, time } from "../units.ts";
import { WAIT_NAMES } from "./legend.tsx";
import type { Lane } from "./lanes.ts";
import { COLUMNS, type Shown, type Source } from "./source.ts";
import { AT_ONCE, lanes, pointed } from "./view.ts";
import { exact } from "./zoom.ts";

const largest = signal<{ key: string; of: Largest | null } | null>(null);
const ask = latest(async ({ key, threads, range }: { key: string; threads: number[] | null; range: [number, number] }) => {
  largest.value = { key, of: await client.ask({ kind: "largest", threads, range }) };
});
let asked = "";

// The function in which a lane spent most of the part of a moment.
export async function functionAt(lane: Lane, clock: number, source: Source): Promise<number | null> {
  const shown = source.last(lane.key);
  if (!shown) return null;
  const most = await client.ask({ kind: "largest", threads: lane.threads, range: partOf(shown, clock).range });
  return most && most.func !== 0 ? most.func : null;
}

// The part of the visible time in which a moment lies.
function partOf({ range: [from, to], parts }: Shown, clock: number): { part: number; range: [number, number]; step: number } {
  const step = (to - from) / parts;
  const part = Math.max(0, Math.min(parts - 1, Math.floor((clock - from) / step)));
  return { part, range: [from + part * step, from + (part + 1) * step], step };
}

export function Tip({ source }: { source: Source }) {
  const at = pointed.value;
  const lane = at && lanes.value.find(({ key }) => key === at.lane);
  const shown = lane && source.last(lane.key);
  if (!at || !lane || !shown || at.clock < shown.range[0] || at.clock >= shown.range[1]) return null;
  const { part, range, step } = partOf(shown, at.clock);
  const key = `${lane.key} ${range[0]} ${range[1]}`;
  if (asked !== key) {
    asked = key;
    ask({ key, threads: lane.threads, range });
  }
  const most = largest.value?.key === key ? largest.value.of : null;
  const left = Math.max(4, Math.min(at.x + 14, innerWidth - 330));
  const below = at.y + 220 < innerHeight;
  return (
    <div class="tip" style={{ left: `${left}px`, top: below ? `${at.y + 16}px` : "auto", bottom: below ? "auto" : `${innerHeight - at.y + 8}px` }}>
      <strong>{lane.label} {lane.id && <span class="dim">{lane.id}</span>}</strong>
      <div class="dim">{time(step)} from {exact(range[0], step)}</div>
      {rows(lane, shown, part).map(([name, value, style]) => (
        <div key={name}><i class={`swatch ${style.startsWith("#") ? "" : style}`} style={style.startsWith("#") ? { background: style } : {}} />
          {name} {time(value)}{lane.kind === "thread" ? `, ${percent(value, step)}` : ""}</div>
      ))}
      {lane.kind !== "thread" && <div class="dim">{cpus(shown, part, step)}</div>}
      {most && most.func !== 0 && <div>{most.state === "running" ? "mostly in" : `${most.state} in`} <b>{loaded.value!.funcs[most.func].name}</b></div>}
    </div>
  );
}

function cpus({ rows }: Shown, part: number, step: number): string {
  let sum = 0;
  for (let column = 0; column < head.value.categories.length; column++) sum += rows[part * COLUMNS.count + column];
  return `${(sum / step).toFixed(2)} ${AT_ONCE}`;
}

// Names, times and styles of what there is in a part.
function rows(lane: Lane, { rows }: Shown, part: number): [string, number, string][] {
  const all: [string, number, string][] = head.value.categories.map(({ name, color }, column) => [`running, ${name}`, rows[part * COLUMNS.count + column], color]);
  if (lane.kind === "thread") {
    all.push(["ready, waiting for a CPU", rows[part * COLUMNS.count + COLUMNS.ready], "ready"]);
    WAITS.forEach((wait, i) => all.push([`asleep: ${WAIT_NAMES[wait]}`, rows[part * COLUMNS.count + COLUMNS.asleep + i], wait]));
  }
  return all.filter(([, value]) => value > 0);
}
