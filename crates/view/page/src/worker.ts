// The worker: expands the columns and counts, so that the page never waits.

import { expand, split } from "./decode.ts";
import { counts, Kernel } from "./kernel.ts";
import { readHeap } from "./kernel/heap.ts";
import { Names } from "./kernel/names.ts";
import { taskNames, TaskSamples } from "./kernel/tasks.ts";
import { transformed, type Shape } from "./kernel/transforms.ts";
import type { Question } from "./model.ts";

let kernel: Kernel | undefined;
let columns: Map<string, Uint8Array>;
let tasks: TaskSamples | undefined;
let sampled = 0;
let names: Names | undefined;
const shapes = new Map<number, Shape>();

self.onmessage = async ({ data }: MessageEvent<{ id: number; question: Question }>) => {
  try {
    const answer = await answerTo(data.question);
    const buffers = Object.values(answer ?? {}).flatMap((value) => (ArrayBuffer.isView(value) ? [value.buffer as ArrayBuffer] : []));
    self.postMessage({ id: data.id, answer }, { transfer: buffers });
  } catch (error) {
    self.postMessage({ id: data.id, error: String(error) });
  }
};

async function answerTo(question: Question): Promise<unknown> {
  if (question.kind === "load") {
    columns = split(question.head, await expand(question.columns));
    kernel = new Kernel(question.head, columns);
    sampled = question.head.tasks?.sampled ?? 0;
    const { parent, func, depth } = kernel.tree;
    // The worker needs its own.
    return { tree: { parent: parent.slice(), func: func.slice(), depth: depth.slice() }, funcs: kernel.funcs };
  }
  if (question.kind === "names") {
    names = new Names(question.names);
    return {};
  }
  if (question.kind === "search") return { mask: names!.search(question.text) };
  if (!kernel) throw new Error("nothing is loaded");
  switch (question.kind) {
    case "shape": {
      const shape = transformed(kernel.tree, question.transforms);
      shapes.set(question.shape, shape);
      for (const old of [...shapes.keys()].slice(0, -2)) shapes.delete(old);
      const { parent, func, depth } = shape.tree;
      return { tree: { parent: parent.slice(), func: func.slice(), depth: depth.slice() } };
    }
    case "count": return kernel.count(question.selection, shapes.get(question.shape ?? -1));
    case "order": return kernel.order(question.thread, question.measure, question.range, question.least, shapes.get(question.shape));
    case "bins": return kernel.bins(question.lanes, question.range, question.parts, question.lit);
    case "largest": return kernel.largest(question.threads, question.range);
    case "heap": return { heap: readHeap(columns) };
    case "taskNames": {
      const dump = columns.get("tasks.dump");
      return { names: taskNames(columns), dump: dump ? JSON.parse(new TextDecoder().decode(dump)) : null };
    }
    case "taskTimes": return (tasks ??= new TaskSamples(kernel, columns, sampled)).count(question.selection, counts[question.selection.measure]);
    case "threadTimes": return kernel.threadTimes(question.range);
  }
}
