// Source files, and the time of the lines of one of them: asked for when somebody looks.

import { batch, effect, signal } from "@preact/signals";
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

// The files of a reading.
let files: SourceFile[] = [], read = 0;
let text: { path: string; lines: string[] | null; tokens: Tokens | null } | undefined;

const count = latest(async (asked: { selection: Selection; shape: number; func: number | null; path: string; reading: number }) => {
  try {
    const { selection, shape, func, reading } = asked;
    if (read !== reading) files = (await client.ask({ kind: "sourceFiles" })).files;
    read = reading;
    const wanted = asked.path ? files.findIndex(({ path }) => path === asked.path) : -1;
    const next = await client.ask({ kind: "source", selection, shape, func, file: wanted >= 0 ? wanted : null });
    const path = files[next.file]?.path ?? "";
    if (text?.path !== path || text.lines === null) {
      const { text: whole } = await client.ask({ kind: "sourceText", file: next.file });
      const lines = whole?.replace(/\n$/, "").split("\n") ?? null;
      text = { path, lines, tokens: lines && new Tokens(lines, path) };
    }
    // Numbers of files are those of a reading.
    if (reading !== loaded.peek()?.reading) return;
    const { lines, tokens } = text;
    batch(() => {
      sourceFiles.value = files;
      source.value = { source: next, text: lines, tokens };
    });
  } catch (error) {
    failure.value = `Sources cannot be shown: ${error instanceof Error ? error.message : error}`;
  }
});

// Counts again for each selection, until the returned function is called.
export function watchSource(): () => void {
  let last = "";
  return effect(() => {
    if (!loaded.value || !counted.value || !head.value.sources.files) return;
    const asked = { selection: selected(), shape: shapeNumber.value, func: chosen.value, path: state.value.source, reading: loaded.value.reading };
    const key = JSON.stringify(asked);
    if (key === last) return;
    last = key;
    count(asked);
  });
}
