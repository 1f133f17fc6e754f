// What is known of the recording, in the words of `stackglass info`; of a heap snapshot and of tasks, what their commands say first.

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { client, head, loaded } from "../recording.ts";
import { bytes, count, counted } from "../sizes.ts";
import { alone } from "../tabs.ts";
import { taskDump, watchTasks } from "../tasks.ts";
import { time } from "../units.ts";

const parts = signal("");

type Row = [string, string];

// If nobody has said more: what the head knows.
function ownRows(): Row[] {
  return [
    ["command", head.value.command], ["wall time", time(head.value.wall)], ["delay", time(head.value.delay)],
    ["processes", String(head.value.processes.length)], ["threads", String(head.value.threads.length)], ["machine", head.value.machine], ["written by", head.value.writer],
    ...head.value.remarks.map((remark): Row => ["remark", remark]),
  ];
}

function heapRows(): Row[] {
  const of = head.value.heap;
  if (!of) return [];
  const size = (value: number) => (of.counts ? count(value) : bytes(value));
  const sum = (what: { count: number; bytes: number }) => `${of.counts ? "" : `${size(what.bytes)} in `}${counted(what.count, "block", "blocks")}`;
  return [
    ["heap snapshot", of.name], ["alive", `${sum(of.alive)}, ${count(of.edges)} edges`], ["held by", of.roots.map(([name, held]) => `${size(held)} ${name.replace(/^\(|\)$/g, "")}`).join(", ")],
    ["leaked?", of.lost.count > 0 ? `${sum(of.lost)} to which nothing leads` : of.weak.count > 0 ? "nothing for certain: edges lead to all blocks" : "nothing: roots reach all blocks"],
    ...(of.weak.count > 0 ? [["in doubt", `${sum(of.weak)} to which only weak edges lead`] as Row] : []),
  ];
}

function taskRows(): Row[] {
  const dump = taskDump.value;
  if (!dump) return [];
  return [
    ["tasks", `${head.value.tasks!.dump}: ${counted(dump.tasks, "task", "tasks")} of process ${dump.pid} in ${counted(dump.groups.length, "group", "groups")}`],
    ["runtimes", dump.runtimes.join("; ")], ["pause", dump.pause ? `paused for ${time(dump.pause)}` : "not paused"], ...dump.remarks.map((remark): Row => ["remark", remark]),
  ];
}

export function Facts() {
  useEffect(watchTasks, []);
  useEffect(() => {
    if (loaded.value && head.value.facts.length) void client.ask({ kind: "facts" }).then((answer) => { parts.value = answer.parts; });
  }, [loaded.value]);
  const rows = [...(alone.value ? [] : head.value.facts.length ? head.value.facts : ownRows()), ...heapRows(), ...taskRows()];
  return (
    <div class="facts" tabIndex={0} role="region" aria-label="Facts">
      <dl>{rows.map(([name, value], i) => <div key={i}><dt>{name}</dt><dd>{value}</dd></div>)}</dl>
      {parts.value && <pre>{parts.value}</pre>}
    </div>
  );
}
