// Pictures of lanes.

import assert from "node:assert/strict";
import { test } from "node:test";
import { module } from "./columns.mjs";

const { paint, pixel, scaleOf } = await module("tracks/paint.ts");

// One category, ready, one kind of sleep; then lit, running and not.
const [RUN, READY, SLEEP, MARK, LIT] = [1, 2, 3, 4, 5];
const looks = { stacked: [{ color: RUN }, { color: READY }, { color: SLEEP, second: MARK, texture: "lines" }], lit: LIT };
const column = (row, height = 8, scale = 8) => [...paint(Float32Array.from(row), 5, 1, height, scale, looks, 1)].reverse();

test("states are stacked from the ground", () => {
  assert.deepEqual(column([4, 2, 0, 0, 0]), [RUN, RUN, RUN, RUN, READY, READY, 0, 0]);
  assert.deepEqual(column([0, 0, 8, 0, 0]), [SLEEP, SLEEP, SLEEP, MARK, SLEEP, SLEEP, SLEEP, MARK]);
  assert.deepEqual(column([0, 0, 0, 0, 0]), Array(8).fill(0));
});

test("what is there shows, however short; nothing is drawn outside", () => {
  assert.equal(column([0.01, 0, 7.99, 0, 0])[0], RUN);
  assert.deepEqual(column([16, 3, 0, 0, 0]), Array(8).fill(RUN));
});

test("the lit function lies over what runs, and hangs over what waits", () => {
  assert.deepEqual(column([4, 0, 0, 2, 0]), [LIT, LIT, RUN, RUN, 0, 0, 0, 0]);
  assert.deepEqual(column([0, 0, 8, 0, 8]), [SLEEP, LIT, SLEEP, MARK, LIT, SLEEP, SLEEP, LIT]);
});

test("a thread has one CPU, others the most that they used", () => {
  const rows = Float32Array.from([3, 9, 0, 0, 0, 12, 9, 0, 0, 0]);
  assert.equal(scaleOf(rows, 5, 2, 1, 4, true), 4);
  assert.equal(scaleOf(rows, 5, 2, 1, 4, false), 12);
  assert.equal(scaleOf(rows, 5, 2, 1, 40, false), 40);
});

test("colours are pixels", () => {
  assert.equal(pixel("#010203"), 0xff030201);
  assert.equal(pixel("rgb(1, 2, 3)"), 0xff030201);
  assert.equal(pixel("rgba(1, 2, 3, 0.5)"), 0x80030201);
});
