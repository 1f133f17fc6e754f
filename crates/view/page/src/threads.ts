// Names of threads and processes in the address, so that it works on another recording of the same program. Pure.

import type { Head } from "./model.ts";

// A thread is called by its process, if there are several, by its name, and by its place among those of the same name. A process is called
// by its name, and by its place in the same way.
export class ThreadNames {
  private readonly threads: Unique;
  private readonly processes: Unique;

  constructor({ threads, processes }: Pick<Head, "threads" | "processes">) {
    this.threads = new Unique(threads.map(({ name, process }) => (processes.length > 1 ? `${processes[process]?.name}/${name}` : name)));
    this.processes = new Unique(processes.map(({ name }) => name));
  }

  name(number: number): string {
    return this.threads.names[number - 1] ?? String(number);
  }

  // The number of a thread with this name, or null.
  number(name: string): number | null {
    const index = this.threads.index(name);
    return index === null ? null : index + 1;
  }

  // The name of a process by index, and back.
  process(index: number): string {
    return this.processes.names[index] ?? String(index);
  }

  processIndex(name: string): number | null {
    return this.processes.index(name);
  }
}

// Names that may be there several times, made unique.
class Unique {
  readonly names: string[] = [];
  private readonly indices = new Map<string, number>();

  constructor(all: string[]) {
    const known = new Map<string, number>();
    all.forEach((name, index) => {
      const place = (known.get(name) ?? 0) + 1;
      known.set(name, place);
      const unique = place === 1 ? name : `${name}~${place}`;
      this.names.push(unique);
      if (!this.indices.has(unique)) this.indices.set(unique, index);
    });
  }

  index(name: string): number | null {
    return this.indices.get(name) ?? null;
  }
}
