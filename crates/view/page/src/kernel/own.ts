// Which threads are those of the recording, and which of an earlier one that it is compared with. Pure.

import type { Head } from "../model.ts";

// How many threads the recording has itself.
export function ownThreads({ before, threads }: Head): number {
  return before ? before.threadsAfter : threads.length;
}

// The threads of the earlier recording.
export function threadsBefore({ before, threads }: Head): number[] {
  return before ? threads.flatMap((_, i) => (i >= before.threadsAfter ? [i + 1] : [])) : [];
}
