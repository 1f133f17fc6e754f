// The lanes of the time axis.

import assert from "node:assert/strict";
import { test } from "node:test";
import { leb128, module, random } from "./columns.mjs";
import { recording } from "./recording.mjs";

const { Kernel } = await module("kernel.ts");
const { columnsOf } = await module("kernel/bins.ts");

const near = (is, wanted) => assert.ok(Math.abs(is - wanted) <= wanted * 1e-4, `${is} ${wanted}`);

test("bins hold all CPU time", () => {
  const { head, columns, samples } = recording(11, 500);
  const kernel = new Kernel(head, columns);
  const at = columnsOf(head.categories.length);
  const { parts, rows } = kernel.bins([{ threads: [2], waits: false }], [0, head.wall], 37, null);
  const column = (of) => Array.from({ length: parts }, (_, part) => rows[part * at.count + of]).reduce((a, b) => a + b);
  const expected = (states) => samples.filter((sample) => sample.thread === 2 && states.includes(sample.state))
    .reduce((sum, { clock, time }) => sum + clock - Math.max(clock - time, 0), 0);
  near(column(0) + column(1), expected([1, 3]));
  for (let of = 2; of < at.count; of++) assert.equal(column(of), 0);
  const lit = kernel.bins([{ threads: [2], waits: false }], [0, head.wall], 37, 1).rows;
  assert.ok(lit.some((value, i) => i % at.count === at.lit && value > 0));
});

// A wide part of the time is read sample by sample, a narrow one thread by thread.
for (const parts of [40, 8]) test(`lanes with waits hold all time, each part what a count of it has: ${parts} parts`, () => {
  const { head, columns, samples } = recording(12, 500);
  const below = random(12);
  columns.set("samples.spread", leb128(samples.map(() => (below(2) ? below(9000) : 0))));
  const kernel = new Kernel(head, columns);
  const at = columnsOf(head.categories.length);
  const lanes = [{ threads: null, waits: true }, { threads: [3], waits: true }, { threads: [1, 2], waits: true }];
  const from = Math.round(head.wall / 4), step = 1000;
  const { rows } = kernel.bins(lanes, [from, from + parts * step], parts, null);
  lanes.forEach(({ threads }, lane) => {
    for (let part = 0; part < parts; part++) {
      const row = rows.subarray((lane * parts + part) * at.count, (lane * parts + part + 1) * at.count);
      const range = [from + part * step, from + (part + 1) * step];
      const counted = (measure) => kernel.count({ range, threads, measure }).total[0];
      assert.equal(row[0] + row[1], counted("cpu"));
      assert.equal(row[at.ready], counted("ready"));
      assert.equal(row.subarray(at.asleep, at.lit).reduce((a, b) => a + b), counted("asleep"));
    }
  });
});

test("the largest function of a lane is the one with most time, running first", () => {
  const { head, columns, samples, stack } = recording(13, 400);
  const kernel = new Kernel(head, columns);
  for (const range of [[0, head.wall], [head.wall / 3, head.wall / 2]]) {
    const sums = new Map();
    for (const sample of samples.filter((sample) => sample.thread === 1 && [1, 3].includes(sample.state))) {
      const part = Math.min(sample.clock, range[1]) - Math.max(sample.clock - sample.time, range[0]);
      const name = stack(sample).at(-1) ?? "all";
      if (part > 0) sums.set(name, (sums.get(name) ?? 0) + part);
    }
    const [name, time] = [...sums].sort((a, b) => b[1] - a[1])[0];
    const largest = kernel.largest([1], range);
    assert.deepEqual([kernel.funcs[largest.func].name, largest.state, largest.time], [name, "running", time]);
  }
  assert.equal(kernel.largest([1], [2 * head.wall, 3 * head.wall]), null);
});
