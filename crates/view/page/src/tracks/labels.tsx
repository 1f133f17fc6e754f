// The names of the lanes that are visible. A click selects threads; arrow keys move from lane to lane, and fold processes.

import { signal } from "@preact/signals";
import type { RefObject } from "preact";
import { useLayoutEffect } from "preact/hooks";
import { ownThreads } from "../kernel/own.ts";
import { head } from "../recording.ts";
import { change, state } from "../state.ts";
import { time } from "../units.ts";
import { AXIS, type Lane, sum, visibleLanes } from "./lanes.ts";
import { fold, foldAll, lanes, times } from "./view.ts";

export const scrolled = signal({ top: 0, height: 600 });
// The lane that the Tab key reaches.
const current = signal("all");
// Set while a key moves the focus to a lane that may not be there yet.
let focusing = false;

export function isPicked({ threads }: Lane, picked: number[] | null): boolean {
  return threads === null ? picked === null : picked !== null && threads.length > 0 && threads.every((thread) => picked.includes(thread));
}

// Selects the threads of a lane, or no threads if they are; with `add`, in addition to others.
function pick(lane: Lane, add: boolean): void {
  const picked = state.value.threads;
  if (lane.threads === null) return change({ threads: null });
  if (!add) return change({ threads: isPicked(lane, picked) && picked!.length === lane.threads.length ? null : lane.threads });
  const rest = (picked ?? []).filter((thread) => !lane.threads!.includes(thread));
  const threads = isPicked(lane, picked) ? rest : [...rest, ...lane.threads].sort((a, b) => a - b);
  change({ threads: threads.length ? threads : null });
}

export function Labels({ section }: { section: RefObject<HTMLElement | null> }) {
  const all = lanes.value;
  const { top, height } = scrolled.value;
  const tab = all.some(({ key }) => key === current.value) ? current.value : "all";
  const shown = visibleLanes(all, top - 200, top + height + 400);
  // The lane with the focus stays, wherever one scrolls.
  const focused = all.find(({ key }) => key === tab);
  if (focused && !shown.includes(focused)) shown.push(focused);
  useLayoutEffect(() => {
    if (!focusing) return;
    focusing = false;
    section.current?.querySelector<HTMLElement>(`[data-lane="${current.value}"]`)?.focus({ preventScroll: true });
  });
  const go = (index: number) => {
    const lane = all[Math.max(0, Math.min(all.length - 1, index))];
    const box = section.current!;
    if (lane.top < box.scrollTop + AXIS) box.scrollTop = lane.top - AXIS;
    if (lane.top + lane.height > box.scrollTop + box.clientHeight) box.scrollTop = lane.top + lane.height - box.clientHeight;
    focusing = lane.key !== current.value;
    current.value = lane.key;
  };
  const keys = (event: KeyboardEvent, lane: Lane) => {
    const index = all.indexOf(lane);
    const page = Math.max(1, Math.floor(height / lane.height) - 2);
    const to = { ArrowUp: index - 1, ArrowDown: index + 1, PageUp: index - page, PageDown: index + page, Home: 0, End: all.length - 1 }[event.key];
    if (to !== undefined) go(to);
    else if (event.key === "ArrowLeft" && lane.process !== null && !lane.folded) fold(lane.process, true);
    else if (event.key === "ArrowRight" && lane.process !== null && lane.folded) fold(lane.process, false);
    else if (event.key === "ArrowLeft" && lane.kind === "thread") go(all.indexOf(all.slice(0, index).reverse().find(({ kind }) => kind !== "thread")!));
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const { measure, threads: picked } = state.value;
  return (
    <>
      {shown.map((lane) => {
        const used = times.value ? time(sum(times.value, measure, lane.threads, ownThreads(head.value))) : "";
        return (
          <div key={lane.key} class={`lane ${lane.kind}`} style={{ top: `${lane.top}px`, height: `${lane.height}px` }}>
            {lane.process !== null && (
              <button class="fold" tabIndex={-1} aria-expanded={!lane.folded} aria-label={`Threads of ${lane.label} ${lane.id}`}
                title={`${lane.folded ? "Show" : "Hide"} threads; Alt-click: those of all processes`}
                onClick={(event) => (event.altKey ? foldAll(!lane.folded) : fold(lane.process!, !lane.folded))}>
                {lane.folded ? "▸" : "▾"}
              </button>
            )}
            <button class="pick" data-lane={lane.key} tabIndex={lane.key === tab ? 0 : -1} aria-pressed={isPicked(lane, picked)}
              title={`${lane.label} ${lane.id}: ${used}. Click: only this; Ctrl-click: this as well`}
              onKeyDown={(event) => keys(event, lane)} onFocus={() => { current.value = lane.key; }}
              onClick={(event) => pick(lane, event.ctrlKey || event.metaKey)}>
              <span class="name">{lane.label} {lane.id && <span class="dim">{lane.id}</span>}</span><span class="detail">{used}</span>
            </button>
          </div>
        );
      })}
    </>
  );
}
