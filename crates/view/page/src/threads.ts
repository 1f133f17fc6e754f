// Names of threads in the address, so that it works on another recording of the same program. Pure.

import type { Head } from "./model.ts";

// A thread is called by its process, if there are several, by its name, and by its place among those of the same name.
export class ThreadNames {
  private readonly names: string[] = [];
  private readonly numbers = new Map<string, number>();

  constructor({ threads, processes }: Pick<Head, "threads" | "processes">) {
    const known = new Map<string, number>();
    threads.forEach(({ name, process }, i) => {
      const full = processes.length > 1 ? `${processes[process]?.name}/${name}` : name;
      const place = (known.get(full) ?? 0) + 1;
      known.set(full, place);
      const unique = place === 1 ? full : `${full}~${place}`;
      this.names.push(unique);
      if (!this.numbers.has(unique)) this.numbers.set(unique, i + 1);
    });
  }

  name(number: number): string {
    return this.names[number - 1] ?? String(number);
  }

  // The number of a thread with this name, or null.
  number(name: string): number | null {
    return this.numbers.get(name) ?? null;
  }
}
