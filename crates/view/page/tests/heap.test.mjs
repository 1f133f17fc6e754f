// Heap snapshots: their columns, the tree in sight, and how sizes are written.

import assert from "node:assert/strict";
import { test } from "node:test";
import { leb128, module, random } from "./columns.mjs";

const { hasRowsBelow, matcher, readHeap, rowAbove, rowsOf, visibleRows } = await module("kernel/heap.ts");
const { bytes, count, counted } = await module("sizes.ts");

const TABLES = {
  types: "name alive count own retained", holders: "of name variable alike count retained path", fields: "of holds other field weak edges count own",
  retains: "of name count own", sites: "of name count own", owners: "name weak owners cycles count size", ownerSites: "of name count own",
  tree: "level kind name alike count own retained",
};

test("columns are read as rows", () => {
  const columns = new Map([["heap.paths", leb128([2, 1, 300, 0, 1, 2])], ["heap.strings", new TextEncoder().encode('["","a","b"]')]]);
  const expected = {};
  for (const [table, names] of Object.entries(TABLES)) {
    names.split(" ").forEach((name, i) => {
      expected[`${table}.${name}`] = [i, 2 ** 40 + i, 7];
      columns.set(`heap.${table}.${name}`, leb128(expected[`${table}.${name}`]));
    });
  }
  const heap = readHeap(columns);
  assert.deepEqual([heap.paths, heap.strings], [[[1, 300], [], [2]], ["", "a", "b"]]);
  for (const [name, numbers] of Object.entries(expected)) {
    const [table, column] = name.split(".");
    assert.deepEqual([...heap[table][column]], numbers, name);
  }
  assert.deepEqual(rowsOf(heap.sites, 7), [2]);
  columns.delete("heap.tree.own");
  assert.throws(() => readHeap(columns), /there is no column heap.tree.own/);
});

test("rows of the tree are in sight if all above are open", () => {
  const below = random(3);
  for (let round = 0; round < 200; round++) {
    const level = [0];
    while (level.length < 40) level.push(below(level.at(-1) + 2));
    const tree = { level: Float64Array.from(level) };
    const parent = level.map((of, row) => level.slice(0, row).findLastIndex((other) => other < of));
    const open = new Set([...level.keys()].filter(() => below(2)));
    const isIn = (row) => parent[row] < 0 || (open.has(parent[row]) && isIn(parent[row]));
    assert.deepEqual(visibleRows(tree, (row) => open.has(row)), [...level.keys()].filter(isIn));
    for (const row of level.keys()) {
      assert.equal(rowAbove(tree, row), parent[row]);
      assert.equal(hasRowsBelow(tree, row), parent.includes(row));
    }
  }
});

test("a text matches names with all of its words", () => {
  const names = ["Vec<u8>", "HashMap<u64, Session> table", "[u8]"];
  const found = (text) => names.filter(matcher(text)).length;
  assert.deepEqual([found(""), found("SESSION hash"), found("u8"), found("u8 session"), found("(")], [3, 1, 2, 0, 0]);
});

// Cases of crates/report/src/text/numbers.rs.
test("sizes are written as in the reports", () => {
  assert.deepEqual([17, 999, 4200, 999_499, 999_999, 345_000_000, 9.999e18].map(bytes), ["17 B", "999 B", "4.20 kB", "999 kB", "1.00 MB", "345 MB", "10.0 EB"]);
  assert.deepEqual([7, 5413, 12_345, 99_999, 345_678, 1_234_567].map(count), ["7", "5413", "12 345", "99 999", "346 k", "1.23 M"]);
  assert.deepEqual([counted(1, "block", "blocks"), counted(20_000, "block", "blocks")], ["1 block", "20 000 blocks"]);
});
