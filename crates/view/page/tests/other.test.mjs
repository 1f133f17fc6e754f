// An earlier recording in the page: counted only where it is what is compared with.

import assert from "node:assert/strict";
import { test } from "node:test";
import { module } from "./columns.mjs";
import { recording } from "./recording.mjs";

const { Kernel } = await module("kernel.ts");
const { threadsBefore } = await module("kernel/own.ts");

test("all threads are those of the recording, and the others those of the earlier one", () => {
  const { head, columns } = recording(5, 400);
  const selection = { range: null, threads: null, measure: "wall" };
  const both = new Kernel(head, columns);
  const compared = { ...head, before: { name: "before.glass", threadsAfter: 2, processesAfter: 1, wall: head.wall } };
  const kernel = new Kernel(compared, columns);
  const own = kernel.count(selection), other = kernel.count({ ...selection, threads: threadsBefore(compared) });
  assert.deepEqual(threadsBefore(compared), [3]);
  assert.deepEqual(own, both.count({ ...selection, threads: [1, 2] }));
  assert.deepEqual(other, both.count({ ...selection, threads: [3] }));
  assert.ok(own.total[0] > 0 && other.total[0] > 0);
  const lane = (threads) => [{ threads, waits: false }];
  assert.deepEqual(kernel.bins(lane(null), [0, head.wall], 7, null), both.bins(lane([1, 2]), [0, head.wall], 7, null));
});
