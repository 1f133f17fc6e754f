// Tasks of the recording, counted for the selection, and those of one moment: both are asked for when somebody looks.

import { batch, effect, signal } from "@preact/signals";
import { latest } from "./client.ts";
import type { TaskDump } from "./kernel/taskdump.ts";
import type { TaskNames, TaskTimes } from "./kernel/tasks.ts";
import type { Selection } from "./model.ts";
import { client, failure, head, loaded } from "./recording.ts";
import { selected } from "./state.ts";

export const taskNames = signal<TaskNames | null>(null);
export const taskTimes = signal<TaskTimes | null>(null);
export const taskDump = signal<TaskDump | null>(null);

let read = 0;

const count = latest(async ({ of, reading }: { of: Selection; reading: number }) => {
  try {
    if (read !== reading) {
      const { names, dump } = await client.ask({ kind: "taskNames" });
      const times = await client.ask({ kind: "taskTimes", selection: of });
      read = reading;
      batch(() => {
        taskDump.value = dump;
        taskNames.value = names;
        taskTimes.value = times;
      });
    } else taskTimes.value = await client.ask({ kind: "taskTimes", selection: of });
  } catch (error) {
    failure.value = `Tasks cannot be shown: ${error instanceof Error ? error.message : error}`;
  }
});

// Counts again for each selection, until the returned function is called.
export function watchTasks(): () => void {
  let last = "";
  return effect(() => {
    if (!loaded.value || !head.value.tasks) return;
    const of = selected();
    const { reading } = loaded.value;
    const key = JSON.stringify([of, reading]);
    if (key === last) return;
    last = key;
    count({ of, reading });
  });
}
