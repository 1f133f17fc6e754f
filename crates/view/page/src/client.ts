// Questions to the worker. Of several questions of a kind that wait, only the last is asked: the others are of no use any more.

import type { Answers, Question } from "./model.ts";

declare const WORKER: string;

type Pending = { resolve: (answer: never) => void; reject: (error: Error) => void };

type Known = <Q extends Question>(question: Q) => Answers[Q["kind"]] | null;

export class Client {
  private readonly worker = new Worker(URL.createObjectURL(new Blob([WORKER], { type: "text/javascript" })));
  private readonly pending = new Map<number, Pending>();
  private next = 0;
  // What waits to be asked, and what is known meanwhile.
  private waiting: (() => void)[] | null = null;
  private known: Known = () => null;

  constructor() {
    this.worker.onmessage = ({ data }) => {
      const pending = this.pending.get(data.id);
      this.pending.delete(data.id);
      if (data.error !== undefined) pending?.reject(new Error(data.error));
      else pending?.resolve(data.answer as never);
    };
    this.worker.onerror = (event) => {
      for (const pending of this.pending.values()) pending.reject(new Error(event.message));
      this.pending.clear();
    };
  }

  // Ends the worker, whatever it does. What was asked gets no answer.
  stop(): void {
    this.worker.terminate();
    this.pending.clear();
  }

  // `ahead`: of those that wait.
  ask<Q extends Question>(question: Q, ahead = false): Promise<Answers[Q["kind"]]> {
    const known = this.waiting && this.known(question);
    if (known) return Promise.resolve(known);
    const id = this.next++;
    return new Promise((resolve, reject) => {
      const post = () => {
        this.pending.set(id, { resolve, reject });
        this.worker.postMessage({ id, question });
      };
      if (this.waiting && !ahead) this.waiting.push(post);
      else post();
    });
  }

  // Questions wait until the returned function is called, if their answers are not known.
  hold(known: Known = () => null): () => void {
    const waiting = this.waiting = [] as (() => void)[];
    this.known = known;
    return () => {
      this.waiting = null;
      for (const post of waiting) post();
    };
  }
}

// Runs one call at a time. Calls that come meanwhile are replaced by the last.
export function latest<T>(run: (value: T) => Promise<void>): (value: T) => void {
  let running = false;
  let waiting: { value: T } | undefined;
  return function call(value: T): void {
    if (running) {
      waiting = { value };
      return;
    }
    running = true;
    void run(value).finally(() => {
      running = false;
      const { value: next } = waiting ?? { value: undefined };
      if (waiting) {
        waiting = undefined;
        call(next as T);
      }
    });
  };
}
