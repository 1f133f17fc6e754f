// Tasks of the recording, counted for the selection, and those of one moment: both are asked for when somebody looks.

import { effect, signal } from "@preact/signals";
import { latest } from "./client.ts";
import type { TaskDump } from "./kernel/taskdump.ts";
import type { TaskNames, TaskTimes } from "./kernel/tasks.ts";
import type { Selection } from "./model.ts";
import { client, failure, head, loaded } from "./recording.ts";
import { selected } from "./state.ts";

export const taskNames = signal<TaskNames | null>(null);
export const taskTimes = signal<TaskTimes | null>(null);
export const taskDump = signal<TaskDump | null>(null);

const count = latest(async (of: Selection) => {
  try {
    if (!taskNames.value) {
      const { names, dump } = await client.ask({ kind: "taskNames" });
      taskDump.value = dump;
      taskNames.value = names;
    }
    taskTimes.value = await client.ask({ kind: "taskTimes", selection: of });
  } catch (error) {
    failure.value = `Tasks cannot be shown: ${error instanceof Error ? error.message : error}`;
  }
});

// Counts again for each selection, until the returned function is called.
export function watchTasks(): () => void {
  let last = "";
  return effect(() => {
    if (!loaded.value || !head.tasks) return;
    const of = selected();
    const key = JSON.stringify(of);
    if (key === last) return;
    last = key;
    count(of);
  });
}
