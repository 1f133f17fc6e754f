// The instructions of the active source line: asked for when somebody looks.

import { effect, signal } from "@preact/signals";
import { latest } from "./client.ts";
import type { Code } from "./kernel/code.ts";
import type { Selection } from "./model.ts";
import { client, counted, failure, head, loaded, shapeNumber } from "./recording.ts";
import { chosen, selected } from "./state.ts";

// The line whose code is shown, of a file by number.
export const codeLine = signal<{ file: number; line: number } | null>(null);
// The function that was chosen among those of the line.
export const codeNumber = signal<number | null>(null);
export const code = signal<Code | null>(null);

const count = latest(async (asked: { selection: Selection; shape: number; place: { file: number; line: number } | null; func: number | null; number: number | null }) => {
  try {
    code.value = await client.ask({ kind: "code", ...asked });
  } catch (error) {
    failure.value = `Instructions cannot be shown: ${error instanceof Error ? error.message : error}`;
  }
});

// Counts again for each selection and line, until the returned function is called.
export function watchCode(): () => void {
  let last = "";
  return effect(() => {
    if (!loaded.value || !counted.value || !head.code?.functions) return;
    const asked = { selection: selected(), shape: shapeNumber.value, place: codeLine.value, func: chosen.value, number: codeNumber.value };
    const key = JSON.stringify(asked);
    if (key === last) return;
    last = key;
    count(asked);
  });
}
