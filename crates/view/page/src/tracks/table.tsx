// The lanes as a table, for those who do not see the canvas.

import { signal, useSignalEffect } from "@preact/signals";
import { useState } from "preact/hooks";
import { ownThreads } from "../kernel/own.ts";
import type { ThreadTimes } from "../model.ts";
import { head, isRead } from "../recording.ts";
import { state } from "../state.ts";
import { percent, time } from "../units.ts";
import { type Lane, sum } from "./lanes.ts";
import { lanes, times } from "./view.ts";

// Rows are many, and change last, some at a time: nothing waits for them. To lay them out takes longer than all else that is drawn, and would
// hold up the browser while it reads the columns.
const LATER = 300, BETWEEN = 40, ROWS = 50;
const range = signal<[number, number] | null>(null);

export function LaneTable() {
  useSignalEffect(() => {
    const next = state.value.range;
    const timer = setTimeout(() => { range.value = next; }, LATER);
    return () => clearTimeout(timer);
  });
  const blocks = Math.ceil(lanes.value.length / ROWS);
  return (
    <div class="hidden"><table>
      <caption>Lanes{range.value ? `, from ${time(range.value[0])} to ${time(range.value[1])}` : ", whole time"}</caption>
      <thead><tr><th scope="col">lane</th><th scope="col">running</th><th scope="col">ready</th><th scope="col">asleep</th></tr></thead>
      {Array.from({ length: blocks }, (_, block) => <Block key={block} block={block} />)}
    </table></div>
  );
}

function Block({ block }: { block: number }) {
  const [shown, show] = useState<{ part: Lane[]; known: ThreadTimes } | null>(null);
  useSignalEffect(() => {
    if (!isRead.value) return;
    const [known, part] = [times.value, lanes.value.slice(block * ROWS, (block + 1) * ROWS)];
    const timer = setTimeout(() => show(known && { part, known }), LATER + block * BETWEEN);
    return () => clearTimeout(timer);
  });
  if (!shown) return null;
  return (
    <tbody>
      {shown.part.map(({ key, kind, label, id, threads }) => {
        const [cpu, ready, asleep] = (["cpu", "ready", "asleep"] as const).map((measure) => sum(shown.known, measure, threads, ownThreads(head.value)));
        const cell = (value: number) => <td>{time(value)}{kind === "thread" ? ` ${percent(value, cpu + ready + asleep)}` : ""}</td>;
        return <tr key={key}><th scope="row">{kind === "all" ? "" : `${kind} `}{label} {id}</th>{cell(cpu)}{cell(ready)}{cell(asleep)}</tr>;
      })}
    </tbody>
  );
}
