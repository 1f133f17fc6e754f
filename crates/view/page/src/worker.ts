// The worker: expands the columns and counts, so that the page never waits.

import { expand, split } from "./decode.ts";
import { Kernel } from "./kernel.ts";
import type { Question } from "./model.ts";

let kernel: Kernel | undefined;

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
    kernel = new Kernel(question.head, split(question.head, await expand(question.columns)));
    const { parent, func, depth } = kernel.tree;
    // The worker needs its own.
    return { tree: { parent: parent.slice(), func: func.slice(), depth: depth.slice() }, funcs: kernel.funcs };
  }
  if (!kernel) throw new Error("nothing is loaded");
  switch (question.kind) {
    case "count": return kernel.count(question.selection);
    case "bins": return kernel.bins(question.lanes, question.range, question.parts, question.lit);
    case "largest": return kernel.largest(question.threads, question.range);
    case "threadTimes": return kernel.threadTimes(question.range);
  }
}
