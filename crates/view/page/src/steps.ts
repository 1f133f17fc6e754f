// The steps of transforms, by names: an address with them works on another recording of the same program.

import type { Transform } from "./kernel/transforms.ts";
import type { Func } from "./model.ts";

export const KINDS = [
  "focus", "focus-self", "focus-path", "focus-callers", "focus-crate", "focus-category", "drop", "drop-crate", "merge", "merge-path", "merge-callee",
  "collapse", "recursion", "direct-recursion", "crate", "hide-foreign", "own-only", "with",
] as const;
export type Kind = (typeof KINDS)[number];

// `of`: for functions the name, and the crate if the name alone says not which; for paths the names of their functions.
export interface Step { kind: Kind; of: string[] }

const WORDS: Record<Kind, string> = {
  "focus": "only", "focus-self": "only itself:", "focus-path": "only this path:", "focus-callers": "only callers of", "focus-crate": "only crate",
  "focus-category": "only", "drop": "without", "drop-crate": "without crate", "merge": "merged into callers:", "merge-path": "merged here:",
  "merge-callee": "merged into callees:", "collapse": "with what it calls:", "recursion": "no recursion:", "direct-recursion": "no direct recursion:",
  "crate": "one frame:", "hide-foreign": "foreign and runtime code hidden", "own-only": "only own code", "with": "stacks with",
};

// A step in words.
export function words({ kind, of }: Step): string {
  const what = kind.endsWith("path") || kind === "focus-callers" ? of[of.length - 1] : of[0];
  return what ? `${WORDS[kind]} ${what}` : WORDS[kind];
}

// One text for a step, and back: fields between bars.
export function stepText({ kind, of }: Step): string {
  return [kind, ...of].map((field) => field.replace(/[\\|]/g, "\\$&")).join("|");
}

export function stepOf(text: string): Step | null {
  const fields = [""];
  for (let i = 0; i < text.length; i++) {
    if (text[i] === "|") fields.push("");
    else fields[fields.length - 1] += text[i] === "\\" ? text[++i] ?? "" : text[i];
  }
  const kind = KINDS.find((kind) => kind === fields[0]);
  return kind ? { kind, of: fields.slice(1) } : null;
}

// Numbers of functions by name.
export class Names {
  private readonly known = new Map<string, number[]>();

  // `isPart`: there are other functions, whose names are not known yet.
  constructor(readonly funcs: Func[], private readonly isPart = false) {
    funcs.forEach(({ name }, func) => {
      const same = this.known.get(name);
      if (same) same.push(func);
      else if (func > 0) this.known.set(name, [func]);
    });
  }

  // The name of a function, with its crate if there are others of this name.
  of(func: number): string[] {
    const { name, crate } = this.funcs[func];
    return this.isPart || (this.known.get(name)?.length ?? 0) > 1 ? [name, crate] : [name];
  }

  // The functions of a name, in the crate if there are any.
  numbers([name, crate]: string[]): number[] {
    const all = this.known.get(name) ?? [];
    const exact = all.filter((func) => this.funcs[func].crate === crate);
    return exact.length ? exact : all;
  }

  // The path of names as functions, or the name that is not there.
  path(names: string[]): number[][] | string {
    const found = names.map((name) => this.numbers([name]));
    const missing = found.findIndex((numbers) => numbers.length === 0);
    return missing < 0 ? found : names[missing];
  }
}

// What a step does here, or why it does nothing.
export type Resolved = { transform: Transform } | { why: string };

// Categories that are somebody else's: foreign code, and what runs programs (crates/flame/src/categories/native.rs).
const RUNTIME = ["standard library", "foreign code", "memory management", "kernel", "unknown"];

// `found`: functions that match a text, or why that is not known.
export function resolve({ kind, of }: Step, names: Names, categories: string[], found: (text: string) => Uint8Array | string): Resolved {
  const { funcs } = names;
  const mask = (is: (func: Func, number: number) => boolean) => Uint8Array.from(funcs, (func, number) => (number > 0 && is(func, number) ? 1 : 0));
  const none = (what: string): Resolved => ({ why: `there is no ${what} here` });
  const masked = (what: string, of: Uint8Array, make: (of: Uint8Array) => Transform): Resolved =>
    of.includes(1) ? { transform: make(of) } : none(what);
  const functions = (kind: "focus" | "focusSelf" | "drop" | "merge" | "mergeCallee" | "collapseSubtree" | "collapseRecursion" | "collapseDirect") => {
    const numbers = new Set(names.numbers(of));
    return masked(`function ${of[0]}`, mask((_, number) => numbers.has(number)), (of) => ({ kind, of }));
  };
  const path = (kind: "focusPath" | "mergePath" | "focusCallers"): Resolved => {
    const path = of.length ? names.path(of) : "function";
    return typeof path === "string" ? none(`function ${path}`) : { transform: { kind, path } };
  };
  const crate = mask((func) => func.crate === of[0]);
  const category = (func: Func) => categories[func.category];
  switch (kind) {
    case "focus": return functions("focus");
    case "focus-self": return functions("focusSelf");
    case "drop": return functions("drop");
    case "merge": return functions("merge");
    case "merge-callee": return functions("mergeCallee");
    case "collapse": return functions("collapseSubtree");
    case "recursion": return functions("collapseRecursion");
    case "direct-recursion":
      return of.length ? functions("collapseDirect") : { transform: { kind: "collapseDirect", of: mask(() => true) } };
    case "focus-path": return path("focusPath");
    case "focus-callers": return path("focusCallers");
    case "merge-path": return path("mergePath");
    case "focus-crate": return masked(`crate ${of[0]}`, crate, (of) => ({ kind: "focus", of }));
    case "drop-crate": return masked(`crate ${of[0]}`, crate, (of) => ({ kind: "drop", of }));
    case "crate": {
      const as = funcs.findIndex((func) => func.whole && func.crate === of[0]);
      return masked(`crate ${of[0]}`, crate, (of) => ({ kind: "collapseInto", of, as }));
    }
    case "focus-category": return masked(of[0], mask((func) => category(func) === of[0]), (of) => ({ kind: "focus", of }));
    case "hide-foreign": return { transform: { kind: "merge", of: mask((func) => RUNTIME.includes(category(func))) } };
    case "own-only": return { transform: { kind: "merge", of: mask((func) => category(func) !== "own code") } };
    case "with": {
      const which = found(of[0] ?? "");
      if (typeof which === "string") return { why: which };
      return masked(`function that matches ${of[0]}`, which, (of) => ({ kind: "with", of }));
    }
  }
}
