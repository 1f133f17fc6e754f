// One group of tasks: its await stack, what it waits for, and what it holds. Above all groups: deadlocks, and tasks that block or hang.

import type { ComponentChildren } from "preact";
import { deadlockLines, heldBy, heldOf, placeOf, taskName, waitsOf, type Frame, type Group, type Lock, type TaskDump } from "../kernel/taskdump.ts";
import { count, counted } from "../sizes.ts";
import { time } from "../units.ts";
import { byId, chooseTask } from "./tasks.tsx";

function TaskLink({ dump, id }: { dump: TaskDump; id: number }) {
  const name = taskName(dump, byId.value, id);
  return byId.value.has(id) ? <button class="link" onClick={() => chooseTask(id)}>{name}</button> : <>{name}</>;
}

// `held by task 3 (fetch) at main.rs:14`.
export function LockText({ dump, lock }: { dump: TaskDump; lock: Lock }) {
  const [before, behind] = heldBy(lock), isGone = lock.ends === 0;
  return (
    <>
      {before ? `, ${before}` : ""}
      {!isGone && lock.holders.slice(0, 4).map(({ task, file, line }, i) => (
        <span key={i}>{i > 0 ? " and " : " "}<TaskLink dump={dump} id={task} />{file ? ` at ${placeOf({ file, line })}` : ""}</span>
      ))}
      {lock.holders.length > 4 ? ` and ${lock.holders.length - 4} more` : ""}{behind}
    </>
  );
}

export function Alarms({ dump }: { dump: TaskDump }) {
  const lines: ComponentChildren[] = [];
  dump.deadlocks.slice(0, 4).forEach((deadlock, i) => {
    const { tasks, certain } = deadlock;
    lines.push(
      <li key={`deadlock${i}`}>
        <strong>{certain ? "deadlock" : "possible deadlock"}</strong>: {tasks.length === 1 ? "a task waits for itself" : `${tasks.length} tasks wait for each other`}{certain ? "" : ", unless other code ends a wait"}
        <ul>{deadlockLines(dump, byId.value, deadlock).map(({ task, text }) => <li key={task}><TaskLink dump={dump} id={task} /> {text}</li>)}</ul>
      </li>,
    );
  });
  dump.blocking.slice(0, 4).forEach((id) => {
    const polled = dump.groups[byId.value.get(id) ?? -1]?.thread?.polled_for;
    lines.push(<li key={`blocking${id}`}><strong>blocks its worker</strong>: <TaskLink dump={dump} id={id} />{polled ? ` has been in one poll for over ${time(polled)}` : ""}</li>);
  });
  dump.without_waker.slice(0, 4).forEach((id) => lines.push(<li key={`waker${id}`}><strong>nothing can wake</strong> <TaskLink dump={dump} id={id} />: no waker of it is left</li>));
  dump.pools.filter(({ exhausted }) => exhausted).forEach(({ busy, queued }, i) => lines.push(<li key={`pool${i}`}><strong>blocking pool exhausted</strong>: {busy === null ? "" : `${count(busy)} busy, `}{count(queued)} wait</li>));
  if (lines.length === 0) return null;
  return <ul class="alarms" aria-label="What hangs" tabIndex={0}>{lines}</ul>;
}

function Stack({ frames }: { frames: Frame[] }) {
  return (
    <ol class="path">
      {frames.map((frame, i) => ("branches" in frame ? (
        <li key={i}>
          <span class="dim">waits for {frame.branches.length} at once</span>
          <ul class="branches">{frame.branches.map((branch, at) => <li key={at}><Stack frames={branch} /></li>)}</ul>
        </li>
      ) : (
        <li key={i}><span class="place" title={frame.file ?? ""}>{placeOf(frame)}</span> <span class={frame.note ? "dim" : ""}>{frame.function}</span>{frame.note && frame.note !== "leaf" ? <span class="dim">, {frame.note}</span> : ""}</li>
      )))}
    </ol>
  );
}

export function GroupDetails({ dump, group }: { dump: TaskDump; group: Group }) {
  const waits = waitsOf(dump, group), held = heldOf(dump, group);
  const facts = [
    group.waited !== null && `waited up to ${time(group.waited)}`,
    group.unpolled && `${group.unpolled.ids.length === group.count ? "" : `${group.unpolled.ids.length} of them `}not polled for at least ${time(group.unpolled.time)}`,
    group.fires_in && `timer fires in ${time(group.fires_in[0])}`,
    group.created.length > 0 && `created at ${group.created.slice(0, 3).map(placeOf).join(", ")}`,
    group.tid !== null && `future of block_on of thread ${group.tid}`,
  ].filter((fact) => fact);
  return (
    <aside class="sandwich heaptype" aria-label="Tasks of the group" tabIndex={0}>
      <h2 class="of">{counted(group.count, "task", "tasks")} {group.state} in {group.name}</h2>
      {facts.length > 0 && <p class="dim">{facts.join("; ")}</p>}
      {waits.length > 0 && (
        <section aria-label="Waits for"><h3>waits for</h3>
          {waits.slice(0, 6).map(({ lock, count: some }) => (
            <p key={lock.address}>{some < group.count ? `${count(some)} of ${count(group.count)}: ` : ""}<strong>{lock.kind}</strong> <span class="dim">{lock.address}</span><LockText dump={dump} lock={lock} /></p>
          ))}
          {waits.length > 6 && <p class="dim">and {waits.length - 6} more</p>}
        </section>
      )}
      {held.length > 0 && (
        <section aria-label="Holds"><h3>holds</h3>
          {held.slice(0, 6).map((lock) => (
            <p key={lock.address}><strong>{lock.kind}</strong> <span class="dim">{lock.address}</span>, for which {counted(lock.waiters.length, "task waits", "tasks wait")}: {lock.waiters.slice(0, 4).map((id, i) => <span key={id}>{i > 0 ? ", " : ""}<TaskLink dump={dump} id={id} /></span>)}{lock.waiters.length > 4 ? ", …" : ""}</p>
          ))}
        </section>
      )}
      {group.stack.length > 0 && <section aria-label="Await stack"><h3>await stack, outermost first</h3><Stack frames={group.stack} /></section>}
      {group.thread && (
        <section aria-label="Polled by"><h3>polled by thread {group.thread.tid}{group.thread.polled_for ? `, for over ${time(group.thread.polled_for)}` : ""}</h3>
          <ol class="path">{group.thread.stack.map((frame, i) => <li key={i}><span class="place">{placeOf(frame)}</span> {frame.function}</li>)}</ol>
        </section>
      )}
      {group.ids.length > 0 && <p class="dim">ids {group.ids.slice(0, 40).join(", ")}{group.ids.length > 40 ? ", …" : ""}</p>}
    </aside>
  );
}

