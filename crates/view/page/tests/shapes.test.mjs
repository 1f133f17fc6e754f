// The kernel with transforms, against sums over samples.

import assert from "node:assert/strict";
import { test } from "node:test";
import { leb128, module, random } from "./columns.mjs";
import { recording } from "./recording.mjs";

const { Kernel } = await module("kernel.ts");
const { transformed } = await module("kernel/transforms.ts");

test("transformed counts are those of the samples that are left", () => {
  for (let seed = 1; seed <= 15; seed++) {
    const { head, columns, samples, stack } = recording(seed, 300);
    const kernel = new Kernel(head, columns);
    const below = random(seed + 50);
    const name = ["a", "b", "c", "d"][below(4)];
    const of = Uint8Array.from(kernel.funcs, (func) => (func.name === name ? 1 : 0));
    const selection = { range: null, threads: [1, 2], measure: "wall" };
    const chosen = samples.filter(({ thread }) => thread <= 2);
    const sum = (samples, what) => samples.reduce((sum, sample) => sum + sample[what], 0);
    const all = kernel.count(selection);
    assert.equal(all.samples, sum(chosen, "hits"));
    const has = chosen.filter((sample) => stack(sample).includes(name)), rest = chosen.filter((sample) => !stack(sample).includes(name));
    for (const [kind, left] of [["focus", has], ["with", has], ["drop", rest], ["merge", chosen], ["collapseSubtree", chosen], ["collapseRecursion", chosen]]) {
      const counts = kernel.count(selection, transformed(kernel.tree, [{ kind, of }]));
      assert.equal(counts.total[0], sum(left, "time"), kind);
      assert.equal(counts.samples, sum(left, "hits"), kind);
      const func = kernel.funcs.findIndex((func) => func.name === name);
      const kept = kind === "drop" || kind === "merge" ? 0 : all.funcTotal[func];
      assert.equal(func < 0 ? 0 : counts.funcTotal[func], func < 0 ? 0 : kept, kind);
      assert.ok(counts.funcHits.every((hits) => hits <= counts.samples), kind);
    }
  }
});

test("a crate is one function, and the calls of a thread fill its time", () => {
  const { head, columns, samples } = recording(4, 300);
  const kernel = new Kernel(head, columns);
  const as = kernel.funcs.findIndex((func) => func.whole);
  assert.equal(kernel.funcs[as].name, "[lib]");
  const of = Uint8Array.from(kernel.funcs, (func, i) => (i > 0 && func.crate === "lib" ? 1 : 0));
  const shape = transformed(kernel.tree, [{ kind: "collapseInto", of, as }]);
  assert.deepEqual([...shape.tree.func], [0, as]);
  const { begin, end, box } = kernel.order(1, "wall", [0, head.wall], 0, shape);
  // Of samples that overlap, the earlier one has the time.
  let last = 0, busy = 0;
  for (const { clock, time } of samples.filter(({ thread, node }) => thread === 1 && node > 0)) {
    busy += Math.max(0, clock - Math.max(last, clock - time));
    last = Math.max(last, clock);
  }
  assert.ok(box.every((of) => of === 1));
  assert.equal([...begin].reduce((sum, from, i) => sum + end[i] - from, 0), busy);
});

test("in order of time, too, a sample begins where its spread does", () => {
  const { head, columns } = recording(4, 1);
  columns.set("samples.clock", leb128([1000]));
  columns.set("samples.time", leb128([300]));
  columns.set("samples.spread", leb128([200]));
  columns.set("samples.node", leb128([1]));
  columns.set("samples.thread", leb128([1]));
  const { begin, end } = new Kernel(head, columns).order(1, "wall", [0, 2000], 0);
  assert.deepEqual([[...begin], [...end]], [[500], [1000]]);
});
