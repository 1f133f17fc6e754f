// The list of lanes.

import assert from "node:assert/strict";
import { test } from "node:test";
import { module } from "./columns.mjs";

const { lanesOf, visibleLanes, sum } = await module("tracks/lanes.ts");

const thread = (process, tid, name) => ({ process, tid, name, start: 0, end: null });
const head = {
  processes: [{ pid: 10, name: "server" }, { pid: 20, name: "client" }, { pid: 30, name: "idle" }],
  threads: [thread(0, 11, "accept"), thread(0, 12, "Worker"), thread(1, 21, ""), thread(1, 22, "worker")],
};
// Number 0 is nobody.
const times = { cpu: Float64Array.of(0, 1, 5, 4, 3), asleep: Float64Array.of(0, 9, 0, 0, 0), ready: Float64Array.of(0, 0, 0, 0, 2) };
const labels = (measure, folded = [], text = "") => lanesOf(head, times, measure, folded, text).map(({ label, id }) => `${label} ${id}`.trim());

test("processes and their threads are sorted by the time of the measure", () => {
  assert.deepEqual(labels("cpu"), ["whole program", "client 20", "thread 21", "worker 22", "server 10", "Worker 12", "accept 11", "idle 30"]);
  assert.deepEqual(labels("asleep"), ["whole program", "server 10", "accept 11", "Worker 12", "client 20", "thread 21", "worker 22", "idle 30"]);
  assert.deepEqual(labels("ready").slice(1, 3), ["client 20", "worker 22"]);
  assert.deepEqual(labels("wall").slice(1, 3), ["server 10", "accept 11"]);
  assert.equal(sum(times, "wall", null), 24);
  assert.equal(sum(times, "cpu", [1, 4]), 4);
});

test("folded processes hide their threads", () => {
  assert.deepEqual(labels("cpu", [0]), ["whole program", "client 20", "thread 21", "worker 22", "server 10", "idle 30"]);
  assert.deepEqual(labels("cpu", [0, 1, 7]), ["whole program", "client 20", "server 10", "idle 30"]);
});

test("lanes are found by name and number, with their process, also in folded ones", () => {
  assert.deepEqual(labels("cpu", [0], "WORK"), ["whole program", "client 20", "worker 22", "server 10", "Worker 12"]);
  assert.deepEqual(labels("cpu", [], "client"), ["whole program", "client 20", "thread 21", "worker 22"]);
  assert.deepEqual(labels("cpu", [], "11"), ["whole program", "server 10", "accept 11"]);
  assert.deepEqual(labels("cpu", [], "no such"), ["whole program"]);
});

test("a single process needs no lane of its own", () => {
  const single = { processes: [head.processes[0]], threads: head.threads.slice(0, 2) };
  assert.deepEqual(lanesOf(single, times, "cpu", [0], "").map(({ label }) => label), ["whole program", "Worker", "accept"]);
});

test("lanes lie below each other without gaps, and those in sight are found", () => {
  const all = lanesOf(head, times, "cpu", [], "");
  for (let i = 1; i < all.length; i++) assert.equal(all[i].top, all[i - 1].top + all[i - 1].height);
  for (let top = -50; top < 400; top += 7) {
    const wanted = all.filter((lane) => lane.top + lane.height > top && lane.top < top + 60);
    assert.deepEqual(visibleLanes(all, top, top + 60), wanted);
  }
});
