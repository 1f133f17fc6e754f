// The heap snapshot that is shown: its rows are asked for when somebody looks.

import { effect, signal } from "@preact/signals";
import type { Heap } from "./kernel/heap.ts";
import { client, failure, head, loaded } from "./recording.ts";

export const heap = signal<Heap | null>(null);
let asked = false;

// Asks for the rows, once the columns are there.
export function wantHeap(): void {
  if (asked || !head.heap) return;
  asked = true;
  const forget = effect(() => {
    if (!loaded.value) return;
    client.ask({ kind: "heap" }).then((answer) => { heap.value = answer.heap; }, (error: Error) => { failure.value = `The heap cannot be shown: ${error.message}`; });
    queueMicrotask(() => forget());
  });
}
