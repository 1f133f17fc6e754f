// What is compared with: another time of the recording, or an earlier recording in the page.

import { threadsBefore } from "./kernel/own.ts";
import { type Head, isMetric, type Selection } from "./model.ts";
import { selection, type State } from "./state.ts";

// Whether the earlier recording is what is compared with. A thread of its own is looked at alone.
export function isAgainstBefore(of: State, { before }: Head): boolean {
  return Boolean(before) && (!isMetric(of.measure) || before!.allocations === true) && !of.alone && !of.pinned && !of.threads?.some((thread) => thread > before!.threadsAfter);
}

export function otherOf(of: State, head: Head): Selection | null {
  if (of.pinned) return { ...selection(of), range: of.pinned };
  return isAgainstBefore(of, head) ? { ...selection(of), range: null, threads: threadsBefore(head) } : null;
}
