// Source files, and the time of the lines of one of them: asked for when somebody looks.

import { effect, signal } from "@preact/signals";
import { latest } from "./client.ts";
import type { Source, SourceFile } from "./kernel/lines.ts";
import { Tokens } from "./kernel/tokens.ts";
import type { Selection } from "./model.ts";
import { client, counted, failure, head, loaded, shapeNumber } from "./recording.ts";
import { chosen, selected, state } from "./state.ts";

export const sourceFiles = signal<SourceFile[] | null>(null);
// What is shown of the file with this number: its times, and its lines of text; null if the page does not have it.
export interface Shown { source: Source; text: string[] | null; tokens: Tokens | null }
export const source = signal<Shown | null>(null);

let text: { file: number; lines: string[] | null; tokens: Tokens | null } | undefined;

const count = latest(async (asked: { selection: Selection; shape: number; func: number | null; path: string }) => {
  try {
    sourceFiles.value ??= (await client.ask({ kind: "sourceFiles" })).files;
    const wanted = asked.path ? sourceFiles.value.findIndex(({ path }) => path === asked.path) : -1;
    const { selection, shape, func } = asked;
    const next = await client.ask({ kind: "source", selection, shape, func, file: wanted >= 0 ? wanted : null });
    if (text?.file !== next.file) {
      const { text: whole } = await client.ask({ kind: "sourceText", file: next.file });
      const lines = whole?.replace(/\n$/, "").split("\n") ?? null;
      text = { file: next.file, lines, tokens: lines && new Tokens(lines, sourceFiles.value[next.file].path) };
    }
    source.value = { source: next, text: text.lines, tokens: text.tokens };
  } catch (error) {
    failure.value = `Sources cannot be shown: ${error instanceof Error ? error.message : error}`;
  }
});

// Counts again for each selection, until the returned function is called.
export function watchSource(): () => void {
  let last = "";
  return effect(() => {
    if (!loaded.value || !counted.value || !head.sources.files) return;
    const asked = { selection: selected(), shape: shapeNumber.value, func: chosen.value, path: state.value.source };
    const key = JSON.stringify(asked);
    if (key === last) return;
    last = key;
    count(asked);
  });
}
