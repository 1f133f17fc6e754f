// The visible part of the time axis.

import assert from "node:assert/strict";
import { test } from "node:test";
import { module, random } from "./columns.mjs";

const { exact, inside, panned, ticks, zoomed } = await module("tracks/zoom.ts");

test("zooming keeps the moment under the pointer, and stays in the whole", () => {
  const below = random(3), wall = 4e9;
  for (let round = 0; round < 1000; round++) {
    const from = below(wall), to = from + 1000 + below(wall - from);
    const around = from + below(to - from), factor = [0.3, 0.9, 1.2, 5][below(4)];
    const before = inside([from, to], wall);
    const after = zoomed(before, around, factor, wall);
    assert.ok(after[0] >= 0 && after[1] <= wall + 1e-3 && after[1] - after[0] >= 999.9, `${after}`);
    if (after[0] > 0 && after[1] < wall - 1 && after[1] - after[0] > 1001) {
      const share = (range) => (around - range[0]) / (range[1] - range[0]);
      assert.ok(Math.abs(share(after) - share(before)) < 1e-6, `${before} ${around} ${factor} ${after}`);
    }
  }
});

test("what is shown moves up to the ends", () => {
  assert.deepEqual(panned([1e9, 2e9], 0.5, 4e9), [1.5e9, 2.5e9]);
  assert.deepEqual(panned([1e9, 2e9], -3, 4e9), [0, 1e9]);
  assert.deepEqual(panned([1e9, 2e9], 30, 4e9), [3e9, 4e9]);
  assert.deepEqual(inside([5e9, 6e9], 4e9), [3e9, 4e9]);
  assert.deepEqual(inside([10, 20], 4e9), [10, 1010]);
  assert.deepEqual(inside([0, 20], 5), [0, 5]);
});

test("labels of ticks tell neighbours apart, and fit", () => {
  const below = random(9), wall = 3600e9;
  for (let round = 0; round < 2000; round++) {
    const length = 1000 * 3.6e9 ** (below(1000) / 1000);
    const from = below(wall - length);
    const all = ticks([from, from + length], 12);
    const labels = all.map(({ label }) => label);
    assert.equal(new Set(labels).size, labels.length, `${labels}`);
    assert.ok(all.length <= 13, `${labels}`);
    for (const { clock, label } of all) {
      assert.ok(clock >= from && clock <= from + length);
      assert.ok(label.length * all.length <= 12 * 17, `${labels}`);
      // The label is the moment: nothing is rounded away.
      const [number, unit] = label.split(" ");
      const scale = { s: 1e9, ms: 1e6, "µs": 1e3, ns: 1, undefined: 0 }[unit];
      assert.ok(Math.abs(number * scale - clock) < 0.6, `${label} ${clock}`);
    }
  }
  assert.deepEqual(ticks([0, 4e9], 9).map(({ label }) => label), ["0", "0.5 s", "1.0 s", "1.5 s", "2.0 s", "2.5 s", "3.0 s", "3.5 s", "4.0 s"]);
  assert.equal(exact(1234567890, 1e6), "1.235 s");
});
