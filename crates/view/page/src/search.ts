// Searches names by regular expressions in a worker of its own. One that takes too long is ended with its worker.

import { signal } from "@preact/signals";
import { Client } from "./client.ts";

// How long a search may take, ms.
const LIMIT = 1500;

export type Found = Uint8Array | string;
export const SEARCHING = "searching …", STOPPED = "stopped: it takes too long";

// What was found, by text.
export const results = signal<ReadonlyMap<string, Found>>(new Map());

let names: string[] = [];
let client: Client | undefined;
// Searches wait for each other: only the one that runs is stopped.
let last: Promise<void> = Promise.resolve();
const asked = new Set<string>();

// Searches other names from now on. Returns when these texts were searched in them.
export function searchIn(all: string[], texts: string[]): Promise<void> {
  last = last.then(() => {
    client?.stop();
    client = undefined;
    names = all;
  });
  // What was found before is shown until it is searched again.
  asked.clear();
  for (const text of new Set(texts)) {
    asked.add(text);
    last = last.then(() => run(text));
  }
  return last;
}

// The functions that match, or why that is not known. Asks if it was never asked.
export function find(text: string): Found {
  if (!asked.has(text)) {
    asked.add(text);
    last = last.then(() => run(text));
  }
  return results.value.get(text) ?? SEARCHING;
}

async function run(text: string): Promise<void> {
  // The worker is started, and knows the names, before the time counts.
  if (!client) {
    client = new Client();
    await client.ask({ kind: "names", names });
  }
  let timer = 0;
  const late = new Promise<string>((resolve) => { timer = setTimeout(() => resolve(STOPPED), LIMIT) as unknown as number; });
  const answer = client.ask({ kind: "search", text }).then(({ mask }) => mask, (error: Error) => error.message);
  const found: Found = await Promise.race([answer, late]);
  clearTimeout(timer);
  if (found === STOPPED) {
    client.stop();
    client = undefined;
  }
  const next = new Map(results.value);
  // Old ones are asked again when they are wanted.
  for (const old of [...next.keys()].slice(0, Math.max(0, next.size - 50))) {
    next.delete(old);
    asked.delete(old);
  }
  results.value = next.set(text, found);
}
