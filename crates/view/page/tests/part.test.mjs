// When the time of a sample was spent.

import assert from "node:assert/strict";
import { test } from "node:test";
import { module, random } from "./columns.mjs";

const { before, within } = await module("kernel/part.ts");

test("without a spread, a sample is the time up to its clock", () => {
  assert.deepEqual([0, 60, 61, 99.5, 100, 101].map((moment) => before(moment, 100, 40, 0)), [0, 0, 1, 39.5, 40, 40]);
  assert.equal(within(-Infinity, Infinity, 100, 40, 0), 40);
  assert.equal(within(70, 80, 100, 40, 0), 10);
});

test("with a spread, time lies evenly from where it may have begun", () => {
  // 40 ns that lie between 0 and 100.
  assert.deepEqual([-1, 0, 1, 2, 3, 50, 99, 100, 200].map((moment) => before(moment, 100, 40, 60)), [0, 0, 0, 0, 1, 20, 39, 40, 40]);
});

test("adjacent ranges add up to the nanosecond", () => {
  const below = random(5);
  for (let round = 0; round < 2000; round++) {
    const clock = below(1e9), time = below(1e7), spread = below(3) ? below(1e9) : 0;
    const cuts = [clock - time - spread - 5, ...Array.from({ length: 6 }, () => clock - below(time + spread + 10)), clock].sort((a, b) => a - b);
    let sum = 0;
    for (let i = 1; i < cuts.length; i++) {
      const part = within(cuts[i - 1], cuts[i], clock, time, spread);
      assert.ok(Number.isInteger(part) && part >= 0, `${part}`);
      sum += part;
    }
    assert.equal(sum, time);
  }
});
