// The instructions of the active source line: asked for when somebody looks.

import { effect, signal } from "@preact/signals";
import { latest } from "./client.ts";
import type { Code, CodeFunction } from "./kernel/code.ts";
import type { Selection } from "./model.ts";
import { client, counted, failure, head, loaded, shapeNumber } from "./recording.ts";
import { sourceFiles } from "./source.ts";
import { chosen, selected } from "./state.ts";

// The line whose code is shown.
export const codeLine = signal<{ path: string; line: number } | null>(null);
// The function that was chosen among those of the line.
export const codeFunction = signal<Pick<CodeFunction, "module" | "address"> | null>(null);
export const code = signal<Code | null>(null);

interface Asked { selection: Selection; shape: number; place: { file: number; line: number } | null; func: number | null; wanted: Pick<CodeFunction, "module" | "address"> | null; reading: number }

const count = latest(async ({ wanted, reading, ...question }: Asked) => {
  try {
    const ask = (number: number | null) => client.ask({ kind: "code", ...question, number });
    let answer = await ask(null);
    const other = wanted && answer.functions.find(({ module, address }) => module === wanted.module && address === wanted.address);
    if (other && other.number !== answer.shown) answer = await ask(other.number);
    // Numbers of files and of disassembled functions are those of a reading.
    if (reading === loaded.peek()?.reading) code.value = answer;
  } catch (error) {
    failure.value = `Instructions cannot be shown: ${error instanceof Error ? error.message : error}`;
  }
});

// Counts again for each selection and line, until the returned function is called.
export function watchCode(): () => void {
  let last = "";
  return effect(() => {
    if (!loaded.value || !counted.value || !head.value.code?.functions) return;
    const at = codeLine.value, file = at ? sourceFiles.value?.findIndex(({ path }) => path === at.path) ?? -1 : -1;
    const asked: Asked = {
      selection: selected(), shape: shapeNumber.value, place: at && file >= 0 ? { file, line: at.line } : null, func: chosen.value, wanted: codeFunction.value, reading: loaded.value.reading,
    };
    const key = JSON.stringify(asked);
    if (key === last) return;
    last = key;
    count(asked);
  });
}
