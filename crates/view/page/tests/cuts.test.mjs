// Why stacks are incomplete, against sums that are computed sample by sample.

import assert from "node:assert/strict";
import { test } from "node:test";
import { module, random } from "./columns.mjs";
import { recording } from "./recording.mjs";

const { Kernel } = await module("kernel.ts");

for (let seed = 1; seed <= 10; seed++) {
  test(`the time of incomplete stacks at a place is a sum over samples, recording ${seed}`, () => {
    const { head, columns, samples, stack } = recording(seed, 400);
    const kernel = new Kernel(head, columns);
    const below = random(seed + 2000);
    const number = new Map(kernel.funcs.map(({ name }, func) => [name, func]));
    let met = 0;
    for (let round = 0; round < 40; round++) {
      const some = stack(samples[below(samples.length)]);
      if (some.length === 0) continue;
      const range = below(2) ? [head.wall / 4, head.wall / 2] : null, length = 1 + below(some.length);
      const down = some.slice(0, length), up = some.toReversed().slice(0, length), name = some[below(some.length)];
      const places = [
        [{ func: number.get(down.at(-1)), way: down.map((name) => number.get(name)), direction: "down" }, (path) => down.every((name, at) => path[at] === name)],
        [{ func: number.get(up.at(-1)), way: up.map((name) => number.get(name)), direction: "up" }, (path) => up.every((name, at) => path.at(-1 - at) === name)],
        [{ func: number.get(name), way: null, direction: "down" }, (path) => path.includes(name)],
      ];
      for (const [place, is] of places) {
        const expected = { 0: 0, 3: 0, 12: 0 };
        for (const sample of samples) {
          const [from, to] = range ?? [-Infinity, Infinity];
          const part = Math.min(sample.clock, to) - Math.max(sample.clock - sample.time, from);
          if (part > 0 && [1, 3].includes(sample.state) && is(stack(sample))) expected[sample.cut] += part;
        }
        const { total, times } = kernel.cuts({ range, threads: null, measure: "cpu" }, place);
        assert.deepEqual([total, times[3], times[12]], [expected[0] + expected[3] + expected[12], expected[3], expected[12]]);
        if (times[3] > 0) met++;
      }
    }
    assert.ok(met > 20);
  });
}
