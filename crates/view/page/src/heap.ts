// The heap snapshot that is shown: its rows are asked for when somebody looks.

import { effect, signal } from "@preact/signals";
import type { Heap } from "./kernel/heap.ts";
import { client, failure, head, loaded } from "./recording.ts";

export const heap = signal<Heap | null>(null);
let read = 0;

// Asks for the rows of each reading, once the columns are there, until the returned function is called.
export function watchHeap(): () => void {
  return effect(() => {
    const reading = loaded.value?.reading ?? 0;
    if (reading === read || !head.value.heap) return;
    read = reading;
    client.ask({ kind: "heap" }).then((answer) => { heap.value = answer.heap; }, (error: Error) => { failure.value = `The heap cannot be shown: ${error.message}`; });
  });
}
