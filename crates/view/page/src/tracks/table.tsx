// The lanes as a table, for those who do not see the canvas.

import { signal, useSignalEffect } from "@preact/signals";
import type { ThreadTimes } from "../model.ts";
import { state } from "../state.ts";
import { percent, time } from "../units.ts";
import { type Lane, sum } from "./lanes.ts";
import { lanes, times } from "./view.ts";

// Rows are many, and change last: nothing waits for them.
const LATER = 300;
const shown = signal<{ lanes: Lane[]; times: ThreadTimes; range: [number, number] | null } | null>(null);

export function LaneTable() {
  useSignalEffect(() => {
    const [known, all, range] = [times.value, lanes.value, state.value.range];
    const timer = setTimeout(() => { shown.value = known && { lanes: all, times: known, range }; }, LATER);
    return () => clearTimeout(timer);
  });
  if (!shown.value) return null;
  const { times: known, range } = shown.value;
  return (
    <div class="hidden"><table>
      <caption>Lanes{range ? `, from ${time(range[0])} to ${time(range[1])}` : ", whole time"}</caption>
      <thead><tr><th scope="col">lane</th><th scope="col">running</th><th scope="col">ready</th><th scope="col">asleep</th></tr></thead>
      <tbody>
        {shown.value.lanes.map(({ key, kind, label, id, threads }) => {
          const [cpu, ready, asleep] = (["cpu", "ready", "asleep"] as const).map((measure) => sum(known, measure, threads));
          const cell = (value: number) => <td>{time(value)}{kind === "thread" ? ` ${percent(value, cpu + ready + asleep)}` : ""}</td>;
          return <tr key={key}><th scope="row">{kind === "all" ? "" : `${kind} `}{label} {id}</th>{cell(cpu)}{cell(ready)}{cell(asleep)}</tr>;
        })}
      </tbody>
    </table></div>
  );
}
