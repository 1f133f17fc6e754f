// A heap snapshot, read from its columns (crates/view/src/heap.rs), and what the panel shows of it. Pure.

import { numbers } from "../decode.ts";

export interface Sum { count: number; bytes: number }
export interface HeapHead {
  name: string;
  // Each block has the size 1: sizes are numbers of blocks.
  counts: boolean;
  edges: number; alive: Sum; lost: Sum; weak: Sum; shared: Sum; roots: [string, number][];
  unreadThreads: number; unreadMappings: number; least: number;
}

// Tables with their columns. `of`: the number of the name of a type, or of an owner.
const TABLES = {
  types: ["name", "alive", "count", "own", "retained"],
  holders: ["of", "name", "variable", "alike", "count", "retained", "path"],
  fields: ["of", "holds", "other", "field", "weak", "edges", "count", "own"],
  retains: ["of", "name", "count", "own"],
  sites: ["of", "name", "count", "own"],
  owners: ["name", "weak", "owners", "cycles", "count", "size"],
  ownerSites: ["of", "name", "count", "own"],
  tree: ["level", "kind", "name", "alike", "count", "own", "retained"],
} as const;
type Tables = { [T in keyof typeof TABLES]: Record<(typeof TABLES)[T][number], Float64Array> };
export interface Heap extends Tables { strings: string[]; paths: number[][] }

// Kinds of rows of the tree.
export const TYPE = 0, ROOT = 1, SHARED = 2, REST = 3;

export function readHeap(columns: Map<string, Uint8Array>): Heap {
  const bytes = (name: string) => {
    const column = columns.get(`heap.${name}`);
    if (!column) throw new Error(`there is no column heap.${name}`);
    return column;
  };
  const column = (name: string) => numbers(bytes(name));
  const tables = Object.fromEntries(Object.entries(TABLES).map(([table, names]) =>
    [table, Object.fromEntries(names.map((name) => [name, column(`${table}.${name}`)]))])) as unknown as Tables;
  const paths: number[][] = [], flat = column("paths");
  for (let at = 0; at < flat.length; at += flat[at] + 1) paths.push([...flat.subarray(at + 1, at + 1 + flat[at])]);
  return { ...tables, paths, strings: JSON.parse(new TextDecoder().decode(bytes("strings"))) };
}

// The rows of a table that are of something, in order.
export function rowsOf({ of }: { of: Float64Array }, what: number): number[] {
  const rows: number[] = [];
  for (let row = 0; row < of.length; row++) if (of[row] === what) rows.push(row);
  return rows;
}

// Whether a name has all words of a text, in any case.
export function matcher(text: string): (name: string) => boolean {
  const words = text.toLowerCase().split(/\s+/).filter((word) => word);
  return (name) => {
    const lower = name.toLowerCase();
    return words.every((word) => lower.includes(word));
  };
}

// The rows of the tree in sight: those whose rows above are all open.
export function visibleRows({ level }: { level: Float64Array }, isOpen: (row: number) => boolean): number[] {
  const rows: number[] = [];
  let hidden = Infinity;
  for (let row = 0; row < level.length; row++) {
    if (level[row] > hidden) continue;
    rows.push(row);
    hidden = isOpen(row) ? Infinity : level[row];
  }
  return rows;
}

export function hasRowsBelow({ level }: { level: Float64Array }, row: number): boolean {
  return level[row + 1] > level[row];
}

// The row above another, or -1.
export function rowAbove({ level }: { level: Float64Array }, row: number): number {
  let above = row - 1;
  while (above >= 0 && level[above] >= level[row]) above--;
  return above;
}
