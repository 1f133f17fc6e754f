// Transforms against stacks that are changed one by one, as lists of names.

import assert from "node:assert/strict";
import { test } from "node:test";
import { module } from "./columns.mjs";

const { transformed } = await module("kernel/transforms.ts");
const { Calls } = await module("kernel/order.ts");

function random(seed) {
  let state = seed;
  return (n) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * n);
  };
}

const FUNCS = 6;

// A tree of random stacks, and the time of each box.
function recording(seed) {
  const below = random(seed);
  const parent = [-1], func = [0], depth = [0], known = new Map();
  for (let i = 0; i < 60; i++) {
    let at = 0;
    for (let level = below(8); level >= 0; level--) {
      const of = 1 + below(FUNCS - 1), key = `${at} ${of}`;
      if (!known.has(key)) {
        known.set(key, parent.length);
        parent.push(at);
        func.push(of);
        depth.push(depth[at] + 1);
      }
      at = known.get(key);
    }
  }
  const tree = { parent: Int32Array.from(parent), func: Int32Array.from(func), depth: Int32Array.from(depth) };
  const time = parent.map(() => below(100));
  return { tree, time, below };
}

function stackOf({ parent, func }, box) {
  const stack = [];
  for (let at = box; at > 0; at = parent[at]) stack.push(func[at]);
  return stack.reverse();
}

// Time by stack, written as text.
function sums(pairs) {
  const all = new Map();
  for (const [stack, time] of pairs) if (stack && time > 0) all.set(stack.join(), (all.get(stack.join()) ?? 0) + time);
  return new Map([...all].sort());
}

function after({ tree, time }, transforms) {
  const shape = transformed(tree, transforms);
  for (let box = 1; box < shape.tree.parent.length; box++) {
    assert.ok(shape.tree.parent[box] < box, "callers come first");
    assert.equal(shape.tree.depth[box], shape.tree.depth[shape.tree.parent[box]] + 1);
  }
  return sums(time.map((time, box) => [shape.map[box] < 0 ? null : stackOf(shape.tree, shape.map[box]), time]));
}

const mask = (...of) => Uint8Array.from({ length: FUNCS + 1 }, (_, func) => (of.includes(func) ? 1 : 0));

// What each transform does to one stack: the new one, or null.
const byStack = {
  focus: (stack, f) => { const at = stack.indexOf(f); return at < 0 ? null : stack.slice(at); },
  focusSelf: (stack, f) => (stack.at(-1) === f ? stack : null),
  with: (stack, f) => (stack.includes(f) ? stack : null),
  drop: (stack, f) => (stack.includes(f) ? null : stack),
  merge: (stack, f) => stack.filter((func) => func !== f),
  mergeCallee: (stack, f) => stack.filter((func, i) => func !== f || i === stack.length - 1),
  collapseSubtree: (stack, f) => { const at = stack.indexOf(f); return at < 0 ? stack : stack.slice(0, at + 1); },
  collapseRecursion: (stack, f) => { const first = stack.indexOf(f); return first < 0 ? stack : [...stack.slice(0, first), ...stack.slice(stack.lastIndexOf(f))]; },
  collapseDirect: (stack, f) => stack.filter((func, i) => func !== f || stack[i - 1] !== f),
};
const CONSERVE = ["merge", "mergeCallee", "collapseSubtree", "collapseRecursion", "collapseDirect"];

const whole = (all) => [...all.values()].reduce((sum, time) => sum + time, 0);

for (const [kind, changed] of Object.entries(byStack)) {
  test(`${kind} does to each stack what it says`, () => {
    for (let seed = 1; seed <= 40; seed++) {
      const of = recording(seed), f = 1 + of.below(FUNCS - 1);
      const expected = sums(of.time.map((time, box) => [changed(stackOf(of.tree, box), f), time]));
      const is = after(of, [{ kind, of: mask(f) }]);
      assert.deepEqual(is, expected);
      const before = whole(after(of, []));
      if (CONSERVE.includes(kind)) assert.equal(whole(is), before);
      else assert.ok(whole(is) <= before);
    }
  });
}

test("what has a function and what has not are all", () => {
  for (let seed = 1; seed <= 40; seed++) {
    const of = recording(seed), f = mask(1 + of.below(FUNCS - 1));
    assert.equal(whole(after(of, [{ kind: "focus", of: f }])) + whole(after(of, [{ kind: "drop", of: f }])), whole(after(of, [])));
  }
});

test("several functions of a crate become one frame", () => {
  for (let seed = 1; seed <= 40; seed++) {
    const of = recording(seed), of2 = mask(1, 2);
    const expected = sums(of.time.map((time, box) => [
      stackOf(of.tree, box).map((func) => (func <= 2 ? FUNCS : func)).filter((func, i, all) => func !== FUNCS || all[i - 1] !== FUNCS), time,
    ]));
    assert.deepEqual(after(of, [{ kind: "collapseInto", of: of2, as: FUNCS }]), expected);
  }
});

test("paths", () => {
  for (let seed = 1; seed <= 60; seed++) {
    const of = recording(seed);
    const box = 1 + of.below(of.tree.parent.length - 1), stack = stackOf(of.tree, box);
    const path = stack.map((func) => [func]);
    const has = (other) => stack.every((func, i) => other[i] === func);
    const each = (changed) => sums(of.time.map((time, at) => [changed(stackOf(of.tree, at)), time]));
    assert.deepEqual(after(of, [{ kind: "focusPath", path }]), each((other) => (has(other) ? other.slice(stack.length - 1) : null)));
    assert.deepEqual(after(of, [{ kind: "mergePath", path }]), each((other) => (has(other) ? [...other.slice(0, stack.length - 1), ...other.slice(stack.length)] : other)));
    const callers = stack.slice(-2).reverse();
    const ends = (other) => callers.every((func, i) => other.at(-1 - i) === func);
    assert.deepEqual(after(of, [{ kind: "focusCallers", path: callers.map((func) => [func]) }]),
      each((other) => (ends(other) ? other.slice(0, other.length - callers.length + 1) : null)));
  }
});

test("transforms are applied in their order, and without the last ones give what was before", () => {
  const kinds = Object.keys(byStack);
  for (let seed = 1; seed <= 20; seed++) {
    const of = recording(seed), steps = [], before = [];
    for (let i = 0; i < 8; i++) {
      before.push(after(of, steps));
      steps.push({ kind: kinds[of.below(kinds.length)], of: mask(1 + of.below(FUNCS - 1)) });
    }
    let stacks = of.time.map((time, box) => [stackOf(of.tree, box), time]);
    for (const { kind, of: which } of steps) stacks = stacks.map(([stack, time]) => [stack && byStack[kind](stack, which.indexOf(1)), time]);
    assert.deepEqual(after(of, steps), sums(stacks));
    while (steps.length) {
      steps.pop();
      assert.deepEqual(after(of, steps), before[steps.length]);
    }
  }
});

test("calls in order of time last as long as their samples", () => {
  const tree = { parent: Int32Array.of(-1, 0, 1, 1, 0), func: Int32Array.of(0, 1, 2, 3, 4), depth: Int32Array.of(0, 1, 2, 2, 1) };
  const calls = new Calls(tree, 1);
  calls.push(2, 0, 10);
  calls.push(3, 10, 20);
  calls.push(3, 15, 30);
  // A gap ends what was open; a call shorter than the least one is only counted.
  calls.push(1, 40, 50);
  calls.push(4, 50, 50.5);
  const { begin, end, depth, box, left } = calls.finish();
  const all = [...box].map((of, i) => [of, begin[i], end[i], depth[i]]).sort((a, b) => a[1] - b[1] || a[3] - b[3]);
  assert.deepEqual(all, [[1, 0, 30, 0], [2, 0, 10, 1], [3, 10, 30, 1], [1, 40, 50, 0]]);
  assert.equal(left, 1);
});
