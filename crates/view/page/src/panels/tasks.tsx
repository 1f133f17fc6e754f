// Async tasks: time by kind of task and by line of the `.await` in the selection; await stacks, locks and deadlocks of one moment.

import { computed } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { groupsById, ownPlace, placeOf, taskName, type TaskDump } from "../kernel/taskdump.ts";
import { head, loaded } from "../recording.ts";
import { count, counted } from "../sizes.ts";
import { change, query, state, TASK_LISTS, type TaskList } from "../state.ts";
import { matcher } from "../kernel/heap.ts";
import { select } from "../target.ts";
import { taskDump, taskNames, taskTimes, watchTasks } from "../tasks.ts";
import { percent, time } from "../units.ts";
import { Grid } from "./grid.tsx";
import { Alarms, GroupDetails, LockText } from "./taskgroup.tsx";

const LIST_NAMES: Record<TaskList, string> = { groups: "Await stacks", locks: "Who holds what", names: "Time by task", lines: "Time by await line" };

// What can be shown, the most telling first.
const lists = computed<TaskList[]>(() => {
  const of = head.value.tasks!, names = taskNames.value;
  return TASK_LISTS.filter((list) => ({
    groups: of.dump !== null, locks: (taskDump.value?.locks.length ?? 0) > 0, names: of.sampled > 0, lines: (names?.waits.length ?? 0) > 0,
  })[list]);
});

export const byId = computed(() => (taskDump.value ? groupsById(taskDump.value) : new Map<number, number>()));

export function chooseTask(id: number): void {
  const group = byId.value.get(id);
  if (group !== undefined) change({ tasks: "groups", group: taskDump.value!.groups[group].ids[0] ?? 0 });
}

export function Tasks() {
  useEffect(watchTasks, []);
  const of = head.value.tasks!;
  if (!taskNames.value) return <p class="wait">reading tasks …</p>;
  const list = lists.value.includes(state.value.tasks) ? state.value.tasks : lists.value[0];
  const dump = taskDump.value;
  const notes = [
    of.dump === null && "Await stacks and locks are not in a recording: `stackglass tasks PID --json > t.json`, then `stackglass view … --tasks t.json`.",
    of.named > 0 && of.sampled === 0 && `The recording names ${counted(of.named, "task", "tasks")}, and none of them has a sample.`,
    of.sampled > 0 && !head.value.walltime && "Only time on a CPU, asleep or ready in a poll counts: `record --walltime` counts tasks that wait as well.",
  ].filter((note) => note);
  return (
    <div class="column">
      <div class="bar heapbar">
        <div class="lists" role="group" aria-label="What of the tasks is shown">
          {lists.value.map((word) => <button key={word} class="chip" aria-pressed={list === word} onClick={() => change({ tasks: word })}>{LIST_NAMES[word]}</button>)}
        </div>
        {dump && (list === "groups" || list === "locks") && (
          <span class="dim">{of.dump}: process {dump.pid}, {counted(dump.tasks, "task", "tasks")} in {counted(dump.groups.length, "group", "groups")}; {dump.runtimes.join("; ")}</span>
        )}
      </div>
      {dump && (list === "groups" || list === "locks") && <Alarms dump={dump} />}
      <div class="functions">
        {list === "groups" ? <Groups dump={dump!} /> : list === "locks" ? <Locks dump={dump!} /> : list === "names" ? <Kinds /> : list === "lines" ? <Lines /> : null}
      </div>
      {notes.map((note) => <p key={String(note)} class="note">{note}</p>)}
    </div>
  );
}

function Groups({ dump }: { dump: TaskDump }) {
  const matches = matcher(query.value);
  const all = [...dump.groups.keys()].filter((group) => matches(`${dump.groups[group].name} ${dump.groups[group].state} ${dump.groups[group].given_names.join(" ")}`));
  const at = byId.value.get(state.value.group) ?? -1;
  return (
    <>
      <Grid kind="grid" label="Tasks with equal await stacks" columns="taskgroups" count={all.length} active={all.indexOf(at)}
        headings={[{ text: "tasks", number: true }, { text: "state" }, { text: "function in which they are" }, { text: "line" }, { text: "ids" }]}
        activate={(index) => change({ group: dump.groups[all[index]].ids[0] ?? 0 })}
        row={(index) => {
          const group = dump.groups[all[index]];
          return {
            key: all[index], selected: all[index] === at,
            cells: [count(group.count), group.state, <span title={group.name}>{group.name}{group.given_names.length > 0 ? ` “${group.given_names.join("”, “")}”` : ""}</span>, <span class="dim">{ownPlace(group)}</span>,
              <span class="dim" title={group.ids.join(", ")}>{group.ids.slice(0, 8).join(", ")}{group.ids.length > 8 ? ", …" : ""}</span>],
          };
        }} />
      {at >= 0 && <GroupDetails dump={dump} group={dump.groups[at]} />}
    </>
  );
}

function Locks({ dump }: { dump: TaskDump }) {
  const matches = matcher(query.value);
  const all = [...dump.locks.keys()].filter((lock) => matches(`${dump.locks[lock].kind} ${dump.locks[lock].address}`)).sort((a, b) => dump.locks[b].waiters.length - dump.locks[a].waiters.length);
  return (
    <ul class="locks" tabIndex={0} aria-label="Locks and channels for which tasks wait">
      {all.map((lock) => (
        <li key={lock}>
          <strong>{dump.locks[lock].kind}</strong> <span class="dim">{dump.locks[lock].address}</span><LockText dump={dump} lock={dump.locks[lock]} />
          <div class="dim">{counted(dump.locks[lock].waiters.length, "task waits", "tasks wait")}: {dump.locks[lock].waiters.slice(0, 4).map((id) => taskName(dump, byId.value, id)).join(", ")}{dump.locks[lock].waiters.length > 4 ? ", …" : ""}</div>
        </li>
      ))}
    </ul>
  );
}

const whole = computed(() => taskTimes.value?.kindTime.reduce((sum, part) => sum + part, 0) ?? 0);

function Kinds() {
  const times = taskTimes.value, { kinds } = taskNames.value!;
  if (!times) return <p class="wait">counting …</p>;
  const matches = matcher(query.value);
  const nameOf = (kind: number) => (kind === 0 ? "outside tasks" : kinds[kind - 1].name || "unnamed");
  const all = [...times.kindTime.keys()].filter((kind) => times.kindTime[kind] > 0 && matches(nameOf(kind))).sort((a, b) => times.kindTime[b] - times.kindTime[a]);
  const active = all.findIndex((kind) => kind > 0 && nameOf(kind) === state.value.kind);
  return (
    <Grid kind="grid" label="Time by task" columns="taskkinds" count={all.length} active={active} activate={(index) => change({ kind: nameOf(all[index]) })}
      headings={[{ text: "time", number: true }, { text: "%", number: true }, { text: "tasks", number: true }, { text: "waiting", number: true, title: "part of the time in which they waited" }, { text: "name" }, { text: "created at" }]}
      row={(index) => {
        const kind = all[index], of = kinds[kind - 1];
        return {
          key: kind, selected: index === active,
          cells: [
            time(times.kindTime[kind]), <span class="dim">{percent(times.kindTime[kind], whole.value)}</span>, kind ? count(times.kindTasks[kind]) : "",
            kind ? percent(times.kindWaiting[kind], times.kindTime[kind]) : "", <span class={kind ? "" : "dim"} title={nameOf(kind)}>{nameOf(kind)}</span>, <span class="dim" title={of?.file}>{of?.file ? placeOf(of) : ""}</span>,
          ],
        };
      }} />
  );
}

function Lines() {
  const times = taskTimes.value, { waits } = taskNames.value!;
  if (!times || !loaded.value) return <p class="wait">counting …</p>;
  const matches = matcher(query.value);
  const all = [...times.waitTime.keys()].filter((line) => line > 0 && times.waitTime[line] > 0 && matches(`${waits[line - 1].function} ${waits[line - 1].words} ${waits[line - 1].file}`))
    .sort((a, b) => times.waitTime[b] - times.waitTime[a]);
  const { names } = loaded.value;
  const keyOf = (line: number) => `${waits[line - 1].function}:${waits[line - 1].line}:${waits[line - 1].words}`;
  const active = all.findIndex((line) => keyOf(line) === state.value.kind);
  return (
    <Grid kind="grid" label="Time by line of the await" columns="tasklines" count={all.length} active={active}
      activate={(index) => {
        const line = all[index], func = names.numbers([waits[line - 1].function])[0];
        change({ kind: keyOf(line) });
        // It lights up in the lanes.
        if (func !== undefined) select({ func, way: null, direction: "down" });
      }}
      headings={[{ text: "time", number: true }, { text: "%", number: true }, { text: "samples", number: true }, { text: "function" }, { text: "line" }, { text: "what it waits in" }]}
      row={(index) => {
        const line = all[index], of = waits[line - 1];
        return {
          key: line, selected: index === active,
          cells: [
            time(times.waitTime[line]), <span class="dim">{percent(times.waitTime[line], whole.value)}</span>, String(times.waitHits[line]), <span title={of.function}>{of.function}</span>,
            <span title={of.file}>{placeOf(of)}</span>, of.words,
          ],
        };
      }} />
  );
}

