// The counting kernel against sums that are computed sample by sample.

import assert from "node:assert/strict";
import { test } from "node:test";
import { leb128, module } from "./columns.mjs";

const { Kernel } = await module("kernel.ts");
const { numbers, signed } = await module("decode.ts");

// Pseudo-random numbers below `n`.
function random(seed) {
  let state = seed;
  return (n) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * n);
  };
}

// A recording with known stacks: its head, its columns, and its samples with the names of their stacks, outermost first.
function recording(seed, size) {
  const below = random(seed);
  const names = ["", "a", "b", "c", "d", "lib"];
  const frames = [];
  for (let name = 1; name <= 4; name++) for (let line = 0; line < 2; line++) frames.push({ name, line });
  // Each path of frames once, in pre-order.
  const nodes = [];
  const grow = (path, depth) => {
    for (let frame = 0; frame < frames.length; frame++) {
      if (depth > 5 || below(10) >= 3) continue;
      nodes.push({ path: [...path, frame], depth });
      grow([...path, frame], depth + 1);
    }
  };
  grow([], 1);
  const threads = 3, categories = 2;
  let clock = 0;
  const samples = Array.from({ length: size }, () => {
    clock += below(1000);
    return {
      clock, time: below(3000), node: below(nodes.length + 1), thread: 1 + below(threads), state: 1 + below(4), hits: 1 + below(3),
    };
  });
  let above = 0;
  const left = nodes.map(({ depth }) => {
    const levels = above + 1 - depth;
    above = depth;
    return levels;
  });
  let before = 0;
  const columns = new Map(Object.entries({
    "frames.name": leb128(frames.map((frame) => frame.name)), "frames.full": leb128(frames.map(() => 0)),
    "frames.file": leb128(frames.map(() => 0)), "frames.module": leb128(frames.map(() => 5)),
    "frames.line": leb128(frames.map((frame) => 2 * frame.line)), "frames.inlined": leb128(frames.map(() => 0)),
    "frames.category": leb128(frames.map((frame) => frame.name % categories)),
    strings: new TextEncoder().encode(JSON.stringify(names)),
    "nodes.left": leb128(left), "nodes.frame": leb128(nodes.map(({ path }) => path.at(-1))),
    "samples.clock": leb128(samples.map((sample) => { const passed = sample.clock - before; before = sample.clock; return passed; })),
    "samples.node": leb128(samples.map((sample) => sample.node)), "samples.thread": leb128(samples.map((sample) => sample.thread)),
    "samples.state": leb128(samples.map((sample) => sample.state)), "samples.hits": leb128(samples.map((sample) => sample.hits)),
    "samples.time": leb128(samples.map((sample) => sample.time)),
  }));
  const head = {
    nodes: nodes.length + 1, samples: size, wall: clock, threads: Array(threads).fill({}), categories: Array(categories).fill({}),
  };
  const stack = ({ node }) => (node === 0 ? [] : nodes[node - 1].path.map((frame) => names[frames[frame].name]));
  return { head, columns, samples, stack };
}

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

test("bins hold all CPU time", () => {
  const { head, columns, samples } = recording(11, 500);
  const kernel = new Kernel(head, columns);
  const { parts, rows } = kernel.bins([2], [0, head.wall], 37, null);
  const width = head.categories.length + 1;
  const column = (of) => Array.from({ length: parts }, (_, part) => rows[part * width + of]).reduce((a, b) => a + b);
  const expected = (states) => samples.filter((sample) => sample.thread === 2 && states.includes(sample.state))
    .reduce((sum, { clock, time }) => sum + clock - Math.max(clock - time, 0), 0);
  const near = (is, wanted) => assert.ok(Math.abs(is - wanted) <= wanted * 1e-4, `${is} ${wanted}`);
  near(column(0) + column(1), expected([1, 3]));
  assert.equal(column(2), 0);
  const lit = kernel.bins([2], [0, head.wall], 37, 1).rows;
  assert.ok(lit.some((value, i) => i % width === 2 && value > 0));
});

test("columns that end early are refused", () => {
  assert.throws(() => numbers(leb128([1, 2, 300]).subarray(0, 3), 3), /ends after 2 of 3/);
  assert.deepEqual([...numbers(leb128([0, 127, 128, 2 ** 53 - 1]), 4)], [0, 127, 128, 2 ** 53 - 1]);
  assert.deepEqual([0, 1, 2, 3, 4].map(signed), [0, -1, 1, -2, 2]);
});
