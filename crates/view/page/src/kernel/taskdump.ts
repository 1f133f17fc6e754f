// The tasks of a process at one moment (crates/view/src/task_dump.rs), and what is said of them. Pure.

export interface Await { function: string; file: string | null; line: number | null; note: string | null }
export type Frame = Await | { branches: Frame[][] };
export interface Group {
  count: number; ids: number[]; state: string; name: string; tid: number | null; stack: Frame[];
  waited: number | null; unpolled: { time: number; ids: number[] } | null; fires_in: [number, number] | null;
  given_names: string[]; created: { file: string; line: number }[];
  thread: { tid: number; stack: { function: string; file: string | null; line: number | null }[]; polled_for: number | null } | null;
}
export interface Lock {
  kind: string; address: string; holders: { task: number; file: string | null; line: number | null; certain: boolean }[]; waiters: number[];
  arrived: number | null; expected: number | null; ends: number | null;
}
export interface TaskDump {
  pid: number; runtimes: string[]; tasks: number; groups: Group[]; locks: Lock[]; deadlocks: { tasks: number[]; via: string[]; certain: boolean }[];
  pause: number; blocking: number[]; without_waker: number[]; pools: { busy: number | null; queued: number; exhausted: boolean }[]; remarks: string[];
}

export function fileName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

export function placeOf({ file, line }: { file: string | null; line: number | null }): string {
  return file ? `${fileName(file)}${line ? `:${line}` : ""}` : "";
}

// The last part of a path says the most: `tokio::time::sleep::Sleep` is `Sleep`.
export function lastName(path: string): string {
  const plain = path.replace(/(::)?<.*$/, "");
  return plain.slice(plain.lastIndexOf("::") + (plain.includes("::") ? 2 : 1)) || path;
}

// By id of a task: the index of its group.
export function groupsById({ groups }: TaskDump): Map<number, number> {
  const by = new Map<number, number>();
  groups.forEach(({ ids }, group) => { for (const id of ids) by.set(id, group); });
  return by;
}

// `task 3 (fetch)`.
export function taskName(dump: TaskDump, by: Map<number, number>, id: number): string {
  const group = by.get(id);
  return group === undefined ? `task ${id}` : `task ${id} (${lastName(dump.groups[group].name)})`;
}

const ENDS: Record<string, string> = { "full channel": "receiver", "empty channel": "sender", "oneshot channel": "sender", "watch channel": "sender" };

// Who can end a wait, in words before and behind the tasks that have it: `held by`, `whose sender is in`. No words if nobody is known.
export function heldBy({ kind, holders, ends, arrived, expected }: Lock): [string, string] {
  const end = ENDS[kind], seen = holders.length, probably = holders.every((holder) => holder.certain) ? "" : "probably ";
  const verb = seen === 1 ? "is" : "are";
  const reached = arrived === null ? "" : `(${arrived} of ${expected} arrived) `;
  if (end && ends === 0) return [`all of whose ${end}s are gone`, ""];
  if (end && seen === 0) return [ends === null ? "" : ends === 1 ? `whose ${end} is in no task that is read` : `whose ${ends} ${end}s are in no task that is read`, ""];
  if (end && ends !== null && seen < ends) return [`${seen === 1 ? "one" : "some"} of whose ${ends} ${end}s ${verb} ${probably}in`, ""];
  if (end) return [`whose ${end}${seen === 1 ? "" : "s"} ${verb} ${probably}in`, ""];
  if (ends === 0 && seen === 0) return [`${reached}which nothing else has`, ""];
  if (seen === 0) return [reached, ""];
  if (kind === "Notify" || kind === "Barrier") return [`${reached}which`, ` ${probably}${seen === 1 ? "has" : "have"}, too`];
  return [`${probably}held by`, ""];
}

// Servers have a notification at which all connections wait for the end: it says nothing.
function isTelling({ kind, holders, ends }: Lock): boolean {
  return (kind !== "Notify" && kind !== "oneshot channel") || holders.length > 0 || (kind === "Notify" && ends === 0);
}

// The line of the innermost frame of the function in which the tasks are.
export function ownPlace({ name, stack }: Group): string {
  const find = (frames: Frame[]): string => {
    for (const frame of frames.slice().reverse()) {
      const place = "branches" in frame ? frame.branches.map(find).find((place) => place) ?? "" : frame.function === name ? placeOf(frame) : "";
      if (place) return place;
    }
    return "";
  };
  return find(stack);
}

// What tasks of a group wait for, with how many of them; what most wait for first.
export function waitsOf({ locks }: TaskDump, { ids }: Group): { lock: Lock; count: number }[] {
  const own = new Set(ids);
  return locks.map((lock) => ({ lock, count: lock.waiters.filter((id) => own.has(id)).length })).filter(({ lock, count }) => count > 0 && isTelling(lock)).sort((a, b) => b.count - a.count);
}

// The locks of which tasks of a group have a guard or the other end.
export function heldOf({ locks }: TaskDump, { ids }: Group): Lock[] {
  const own = new Set(ids);
  return locks.filter(({ holders }) => holders.some(({ task }) => own.has(task)));
}

// What each task of a deadlock waits for.
export function deadlockLines(dump: TaskDump, by: Map<number, number>, { tasks, via }: TaskDump["deadlocks"][number]): { task: number; text: string }[] {
  return tasks.map((task, i) => {
    const next = tasks[(i + 1) % tasks.length], what = (via[i] ?? "").replace(/ 0x[0-9a-f]+$/, "");
    const end = ENDS[what];
    const text = what.startsWith("task ") ? `waits for ${taskName(dump, by, next)}`
      : next !== task ? `waits for the ${what} of ${taskName(dump, by, next)}`
        : `waits for the ${what} ${end ? `of which it has the ${end}` : "that it holds"}`;
    return { task, text };
  });
}
