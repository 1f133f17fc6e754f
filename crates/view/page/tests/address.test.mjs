// What the address holds.

import assert from "node:assert/strict";
import { test } from "node:test";
import { module, random } from "./columns.mjs";

const { fromHash, INITIAL, toHash } = await module("state.ts");

test("the address holds the whole state of the tracks", () => {
  const below = random(6);
  for (let round = 0; round < 500; round++) {
    const range = () => { const from = below(1e9); return below(2) ? [from, from + 1 + below(1e9)] : null; };
    const of = {
      ...INITIAL, range: range(), view: range(), threads: below(2) ? [1 + below(9), 11] : null, folded: below(2) ? [0, 1 + below(9)] : [],
      measure: ["cpu", "asleep", "ready", "wall"][below(4)],
    };
    assert.deepEqual(fromHash(`#${toHash(of)}`), of);
  }
});

test("what makes no sense is not there", () => {
  for (const hash of ["#range=5-5&view=9-1", "#view=1-2-3", "#view=a-b&range=-", "#view=0-Infinity", "#folded=x,-1,1.5", "#view="]) {
    assert.deepEqual(fromHash(hash), INITIAL, hash);
  }
});
