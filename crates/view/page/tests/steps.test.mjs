// The address: all of the state, by names; and steps that are undone.

import assert from "node:assert/strict";
import { test } from "node:test";
import { module } from "./columns.mjs";

// A history as Chromium has it: moves happen later, and only the last 50 entries are kept.
const KEPT = 50;
const entries = [{ state: null, hash: "" }];
let at = 0;
const listeners = [];
globalThis.addEventListener = (kind, listener) => listeners.push(listener);
globalThis.location = { get hash() { return entries[at].hash; } };
globalThis.history = {
  get state() { return entries[at].state; },
  get length() { return entries.length; },
  pushState(state, _, hash) {
    entries.length = ++at;
    entries[at] = { state, hash };
    if (entries.length > KEPT) {
      entries.shift();
      at--;
    }
  },
  replaceState(state, _, hash) { entries[at] = { state, hash }; },
  go(delta) {
    setTimeout(() => {
      assert.ok(at + delta >= 0 && at + delta < entries.length, "the page is left");
      at += delta;
      listeners.forEach((listener) => listener());
    });
  },
};
const settled = async (turns = 300) => { for (let i = 0; i < turns; i++) await new Promise((resolve) => setTimeout(resolve)); };

const { INITIAL, addStep, amend, change, fromHash, listen, naming, redo, state, toHash, undo } = await module("state.ts");
const { KINDS, Names, resolve, stepOf, stepText } = await module("steps.ts");
const { Names: Searched } = await module("kernel/names.ts");

function random(seed) {
  let state = seed;
  return (n) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * n);
  };
}

const NAMES = ["main", "a|b\\c", "core::ops::function::FnOnce::call_once{{vtable.shim}}", "f & g = h + 1 %41 #x", "é→\u{1f600}", ""];

test("any state comes back from its address", () => {
  const below = random(5);
  const names = (most) => Array.from({ length: below(most + 1) }, () => NAMES[below(NAMES.length - 1)]);
  for (let i = 0; i < 300; i++) {
    const range = below(2) ? [below(1000), 1000 + below(1000)] : null;
    const one = {
      ...INITIAL, range, threads: below(2) ? [1 + below(9)] : null, measure: ["cpu", "asleep", "wall"][below(3)],
      tab: ["flame", "functions", "tree", "order"][below(4)], icicle: below(2) === 1, inverted: below(2) === 1, order: ["name", "size"][below(2)],
      steps: Array.from({ length: below(4) }, () => ({ kind: KINDS[below(KINDS.length)], of: names(3) })), zoom: names(4), func: names(2),
      pinned: range && below(2) ? [1, 2 + below(9)] : null,
    };
    assert.deepEqual(fromHash(`#${toHash(one)}`), one);
  }
  for (const of of NAMES) assert.deepEqual(stepOf(stepText({ kind: "focus", of: [of, of] })), { kind: "focus", of: [of, of] });
  assert.equal(stepOf("nonsense|x"), null);
});

test("100 random steps undone give the identical state, and redone the last one", async () => {
  listen();
  const below = random(9);
  const first = state.value, seen = [toHash(first)];
  while (seen.length <= 100) {
    const before = toHash(state.value);
    const choice = below(6);
    if (choice === 0) change({ inverted: !state.value.inverted });
    else if (choice === 1) change({ range: [below(100), 100 + below(100)] });
    else if (choice === 2) change({ tab: ["flame", "functions", "tree"][below(3)] });
    else if (choice === 3) change({ zoom: ["main", NAMES[below(4)]] });
    else if (choice === 4) change({ steps: state.value.steps.slice(0, -1) });
    else addStep({ kind: "drop", of: [NAMES[below(4)]] });
    if (toHash(state.value) !== before) seen.push(toHash(state.value));
  }
  const last = state.value;
  for (let i = 0; i < 130; i++) undo();
  await settled();
  assert.deepEqual(state.value, first);
  for (let i = 0; i < 130; i++) redo();
  await settled();
  assert.deepEqual(state.value, last);
  // Not at once, but one by one.
  for (let i = 99; i >= 60; i--) {
    undo();
    await settled(5);
    assert.equal(toHash(state.value), seen[i]);
  }
  // A selection is no step, and a step after undo has nothing to redo.
  amend({ func: ["main"] });
  change({ icicle: true });
  const here = state.value;
  redo();
  await settled();
  assert.equal(state.value, here);
});

test("threads are found by name", async () => {
  const { ThreadNames } = await module("threads.ts");
  const threads = (processes, ...names) => new ThreadNames({ processes: processes.map((name) => ({ name })), threads: names.map(([process, name]) => ({ process, name })) });
  const one = threads(["app"], [0, "main"], [0, "worker"], [0, "worker"]);
  assert.deepEqual([1, 2, 3].map((number) => one.name(number)), ["main", "worker", "worker~2"]);
  assert.deepEqual(["main", "worker", "worker~2", "worker~3", "gone"].map((name) => one.number(name)), [1, 2, 3, null, null]);
  const two = threads(["app", "sh"], [0, "main"], [1, "main"]);
  assert.deepEqual([1, 2].map((number) => two.name(number)), ["app/main", "sh/main"]);
});

test("the address has names of threads, and keeps those that are not here", async () => {
  const { ThreadNames } = await module("threads.ts");
  naming.threads = new ThreadNames({ processes: [{}], threads: [{ name: "main" }, { name: "a&b" }] });
  const of = fromHash("#thread=a%26b&thread=gone");
  assert.deepEqual([of.threads, of.gone], [[2], ["gone"]]);
  assert.equal(toHash(of), "thread=a%26b&thread=gone");
  assert.deepEqual(fromHash("#threads=1,2").threads, [1, 2]);
  naming.threads = null;
});

test("the address has names of folded processes, and those are found in another recording", async () => {
  const { ThreadNames } = await module("threads.ts");
  const processes = (...names) => new ThreadNames({ processes: names.map((name) => ({ name })), threads: [] });
  naming.threads = processes("sh", "server", "sh", "a,b");
  const hash = toHash({ ...fromHash(""), folded: [1, 2, 3] });
  assert.equal(hash, "folded=server&folded=sh%7E2&folded=a%2Cb");
  assert.deepEqual(fromHash(hash).folded, [1, 2, 3]);
  naming.threads = processes("a,b", "sh", "client", "server");
  assert.deepEqual(fromHash(hash).folded, [0, 3]);
  naming.threads = null;
});

const func = (name, crate, category = 0, whole = false) => ({ name, crate, category, whole, full: "", file: "", line: 0, module: "" });
const FUNCS = [func("all", ""), func("main", "app"), func("new", "app"), func("new", "lib", 1), func("memcpy", "libc.so.6", 2), func("[app]", "app", 0, true)];
const CATEGORIES = ["own code", "dependencies", "foreign code"];

test("steps find their functions by name", () => {
  const names = new Names(FUNCS);
  const of = (kind, of, found = () => "searching …") => resolve({ kind, of }, names, CATEGORIES, found);
  const numbers = ({ transform }) => [...transform.of.keys()].filter((func) => transform.of[func]);
  assert.deepEqual([names.of(1), names.of(2), names.of(3)], [["main"], ["new", "app"], ["new", "lib"]]);
  assert.deepEqual(numbers(of("focus", ["new", "lib"])), [3]);
  // In a recording where the crate has another name.
  assert.deepEqual(numbers(of("drop", ["new", "lib-2"])), [2, 3]);
  assert.deepEqual(of("focus", ["gone"]), { why: "there is no function gone here" });
  assert.deepEqual(of("focus-path", ["main", "gone"]), { why: "there is no function gone here" });
  assert.deepEqual(of("focus-path", ["main", "new"]).transform.path, [[1], [2, 3]]);
  assert.deepEqual(numbers(of("hide-foreign", [])), [4]);
  assert.deepEqual(numbers(of("own-only", [])), [3, 4]);
  assert.deepEqual(numbers(of("focus-crate", ["lib"])), [3]);
  assert.equal(of("crate", ["app"]).transform.as, 5);
  assert.deepEqual(of("crate", ["gone"]), { why: "there is no crate gone here" });
  assert.deepEqual(of("with", ["x"]), { why: "searching …" });
  assert.deepEqual(numbers(of("with", ["m"], () => Uint8Array.of(0, 1, 0, 0, 1, 0))), [1, 4]);
});

test("names are searched by regular expressions, and texts that are none as they are", () => {
  const names = new Searched(["Vec<T>::push", "vec::pop", "f(int)", "a-b"]);
  assert.deepEqual([...names.search("vec")], [1, 1, 0, 0]);
  assert.deepEqual([...names.search("Vec")], [1, 0, 0, 0]);
  assert.deepEqual([...names.search("p(ush|op)$")], [1, 1, 0, 0]);
  assert.deepEqual([...names.search("f(")], [0, 0, 1, 0]);
  assert.deepEqual([...names.search("a-b")], [0, 0, 0, 1]);
});
