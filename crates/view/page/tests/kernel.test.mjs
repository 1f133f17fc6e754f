// The counting kernel against sums that are computed sample by sample.

import assert from "node:assert/strict";
import { test } from "node:test";
import { leb128, module, random } from "./columns.mjs";
import { recording } from "./recording.mjs";

const { Kernel } = await module("kernel.ts");
const { numbers, signed } = await module("decode.ts");

const IS = { cpu: [1, 3], asleep: [2], ready: [4], wall: [1, 2, 3, 4] };

for (let seed = 1; seed <= 30; seed++) {
  test(`counts are sums over samples, recording ${seed}`, () => {
    const { head, columns, samples, stack } = recording(seed, 400);
    const kernel = new Kernel(head, columns);
    const below = random(seed + 1000);
    const names = kernel.funcs.map((func) => func.name);
    for (const measure of Object.keys(IS)) {
      const range = below(3) ? [below(head.wall / 2), head.wall / 2 + below(head.wall / 2)] : null;
      const threads = below(2) ? [1 + below(3)] : null;
      const counts = kernel.count({ range, threads, measure });
      const [own, total] = [new Map(), new Map()];
      let sum = 0;
      for (const sample of samples) {
        if (!IS[measure].includes(sample.state) || (threads && !threads.includes(sample.thread))) continue;
        const [from, to] = range ?? [-Infinity, Infinity];
        const part = Math.min(sample.clock, to) - Math.max(sample.clock - sample.time, from);
        if (part <= 0) continue;
        sum += part;
        const path = stack(sample);
        if (path.length) own.set(path.at(-1), (own.get(path.at(-1)) ?? 0) + part);
        for (const name of new Set(path)) total.set(name, (total.get(name) ?? 0) + part);
      }
      assert.equal(counts.total[0], sum);
      for (const name of ["a", "b", "c", "d"]) {
        const func = names.indexOf(name);
        if (func < 0) continue;
        assert.equal(counts.funcOwn[func], own.get(name) ?? 0, `own ${name} ${measure}`);
        assert.equal(counts.funcTotal[func], total.get(name) ?? 0, `total ${name} ${measure}`);
      }
      // A box has what is in the boxes below it.
      const rest = counts.own.slice();
      for (let box = rest.length - 1; box > 0; box--) rest[kernel.tree.parent[box]] += rest[box];
      assert.deepEqual(rest, counts.total);
    }
  });
}

test("adjacent ranges add up to the whole", () => {
  const { head, columns } = recording(7, 1000);
  const kernel = new Kernel(head, columns);
  const all = kernel.count({ range: [0, head.wall], threads: null, measure: "wall" });
  const cuts = [0, 0.1, 0.25, 0.6, 1].map((part) => Math.round(part * head.wall));
  const sum = new Float64Array(all.own.length);
  for (let i = 1; i < cuts.length; i++) {
    kernel.count({ range: [cuts[i - 1], cuts[i]], threads: null, measure: "wall" }).own.forEach((value, box) => { sum[box] += value; });
  }
  assert.deepEqual(sum, all.own);
});

test("with spreads, too, adjacent ranges add up, and hits count where the clock is", () => {
  const { head, columns, samples } = recording(8, 1000);
  const below = random(80);
  const spread = samples.map(() => (below(2) ? below(5000) : 0));
  columns.set("samples.spread", leb128(spread));
  const kernel = new Kernel(head, columns);
  for (const measure of Object.keys(IS)) {
    const all = kernel.count({ range: null, threads: null, measure });
    const cuts = [-1e9, ...[0.1, 0.25, 0.6].map((part) => Math.round(part * head.wall)), 2 * head.wall];
    const sum = new Float64Array(all.own.length);
    let hits = 0;
    for (let i = 1; i < cuts.length; i++) {
      const counts = kernel.count({ range: [cuts[i - 1], cuts[i]], threads: null, measure });
      counts.own.forEach((value, box) => { sum[box] += value; });
      hits += counts.samples;
      const clocks = samples.filter(({ clock, state }) => cuts[i - 1] < clock && clock <= cuts[i] && IS[measure].includes(state));
      assert.equal(counts.samples, clocks.reduce((count, sample) => count + sample.hits, 0));
    }
    assert.deepEqual(sum, all.own);
    assert.equal(hits, all.samples);
  }
  const times = cutsOf(kernel, [-1e9, head.wall / 3, 2 * head.wall]);
  assert.deepEqual(times, kernel.threadTimes(null));
});

// The sums of the times of threads in adjacent ranges.
function cutsOf(kernel, cuts) {
  const parts = cuts.slice(1).map((to, i) => kernel.threadTimes([Math.round(cuts[i]), Math.round(to)]));
  return Object.fromEntries(["cpu", "asleep", "ready"].map((name) => [name, parts[0][name].map((value, thread) => value + parts[1][name][thread])]));
}

test("columns that end early are refused", () => {
  assert.throws(() => numbers(leb128([1, 2, 300]).subarray(0, 3), 3), /ends after 2 of 3/);
  assert.deepEqual([...numbers(leb128([0, 127, 128, 2 ** 53 - 1]), 4)], [0, 127, 128, 2 ** 53 - 1]);
  assert.deepEqual([0, 1, 2, 3, 4].map(signed), [0, -1, 1, -2, 2]);
});

test("functions keep their numbers when the recording grows", () => {
  const first = recording(3, 50);
  const before = new Kernel(first.head, first.columns);
  const grown = recording(4, 400);
  // The names are found in another order.
  grown.columns.set("strings", new TextEncoder().encode(JSON.stringify(["", "d", "new", "b", "a", "lib"])));
  const kernel = new Kernel(grown.head, grown.columns, before.funcs), fresh = new Kernel(grown.head, grown.columns);
  const names = (of) => of.funcs.map(({ name, whole }) => `${name}${whole ? " as a whole" : ""}`);
  assert.deepEqual(names(kernel).slice(0, before.funcs.length), names(before));
  assert.deepEqual(names(kernel).slice(before.funcs.length), ["new"]);
  const totals = (of) => {
    const { funcOwn, funcTotal, funcHits } = of.count({ range: null, threads: null, measure: "wall" });
    return new Map(of.funcs.flatMap(({ name }, func) => (funcTotal[func] > 0 ? [[name, [funcOwn[func], funcTotal[func], funcHits[func]]]] : [])));
  };
  assert.deepEqual([...totals(kernel)].sort(), [...totals(fresh)].sort());
});
