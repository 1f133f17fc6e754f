// Time by task and by await line, against sums over samples; and what is said of tasks of one moment.

import assert from "node:assert/strict";
import { test } from "node:test";
import { leb128, module, random } from "./columns.mjs";

const { TaskSamples, taskNames } = await module("kernel/tasks.ts");
const { within } = await module("kernel/part.ts");
const { deadlockLines, groupsById, heldBy, heldOf, lastName, ownPlace, taskName, waitsOf } = await module("kernel/taskdump.ts");

test("time by task and line is the sum of the parts of samples", () => {
  for (let seed = 1; seed <= 30; seed++) {
    const below = random(seed), size = 200, tasks = 5, kinds = [1, 2, 1, 3, 2];
    let clock = 0;
    const all = Array.from({ length: size }, () => {
      clock += below(100);
      return { clock, time: below(150), spread: below(3) ? 0 : below(100), thread: 1 + below(3), state: 1 + below(4), hits: below(3), task: below(tasks + 1), wait: below(4), waiting: below(2) };
    });
    const column = (name) => all.map((sample) => sample[name]);
    const samples = {
      clock: Float64Array.from(column("clock")), time: Float64Array.from(column("time")), spread: Float64Array.from(column("spread")),
      thread: Int32Array.from(column("thread")), state: Uint8Array.from(column("state")), hits: Float64Array.from(column("hits")),
    };
    const columns = new Map(["task", "wait", "waiting"].map((name) => [`samples.${name}`, leb128(column(name))]));
    columns.set("tasks.kind", leb128(kinds));
    const counter = new TaskSamples(samples, columns, tasks);
    const range = below(2) ? [below(5000), 5000 + below(5000)] : null, threads = below(2) ? [1, 3] : null;
    const of = counter.count({ range, threads, measure: "cpu" }, (state) => state !== 2);
    const [from, to] = range ?? [-Infinity, Infinity];
    const chosen = all.filter(({ state, thread }) => state !== 2 && (!threads || threads.includes(thread)))
      .map((sample) => ({ ...sample, part: within(from, to, sample.clock, sample.time, sample.spread), isIn: from < sample.clock && sample.clock <= to, kind: sample.task ? kinds[sample.task - 1] : 0 }));
    const sum = (list, of) => list.reduce((sum, sample) => sum + of(sample), 0);
    for (let kind = 0; kind <= 3; kind++) {
      const own = chosen.filter((sample) => sample.kind === kind);
      assert.equal(of.kindTime[kind], sum(own, ({ part }) => part));
      assert.equal(of.kindWaiting[kind], sum(own.filter(({ waiting }) => waiting), ({ part }) => part));
      if (kind) assert.equal(of.kindTasks[kind], new Set(own.filter(({ part, isIn }) => part > 0 || isIn).map(({ task }) => task)).size);
    }
    for (let line = 0; line < 4; line++) {
      const own = chosen.filter(({ wait }) => wait === line);
      assert.equal(of.waitTime[line], sum(own, ({ part }) => part));
      assert.equal(of.waitHits[line], sum(own.filter(({ isIn }) => isIn), ({ hits }) => hits));
    }
  }
});

test("names are read, if there are any", () => {
  assert.deepEqual(taskNames(new Map()), { kinds: [], waits: [] });
  const columns = new Map([["tasks.kinds", new TextEncoder().encode('[{"name":"a"}]')]]);
  assert.deepEqual(taskNames(columns), { kinds: [{ name: "a" }], waits: [] });
});

const group = (name, ids, stack = []) => ({ name, ids, stack, count: ids.length });
const lock = (kind, holders, waiters, more = {}) => ({ kind, address: "0x10", holders: holders.map((task) => ({ task, file: null, line: null, certain: true })), waiters, arrived: null, expected: null, ends: null, ...more });
const dump = {
  groups: [group("shop::price", [5, 6, 7]), group("shop::fetch::<T>", [3])],
  locks: [lock("Notify", [], [5]), lock("Mutex", [3], [5, 6, 7]), lock("oneshot channel", [], [6], { ends: 1 }), lock("Barrier", [], [3])],
};

test("what tasks wait for, and what they hold", () => {
  assert.deepEqual(waitsOf(dump, dump.groups[0]).map(({ lock, count }) => [lock.kind, count]), [["Mutex", 3]]);
  assert.deepEqual(heldOf(dump, dump.groups[1]).map(({ kind }) => kind), ["Mutex"]);
  assert.equal(taskName(dump, groupsById(dump), 3), "task 3 (fetch)");
  assert.equal(taskName(dump, groupsById(dump), 9), "task 9");
  assert.deepEqual([lastName("a::b"), lastName("a::b::<T>"), lastName("f"), lastName("a::{async block#1}")], ["b", "b", "f", "{async block#1}"]);
});

test("who can end a wait, in the words of the report", () => {
  const uncertain = lock("Mutex", [3], []);
  uncertain.holders[0].certain = false;
  const cases = [
    [lock("Mutex", [3], []), ["held by", ""]], [uncertain, ["probably held by", ""]], [lock("Mutex", [], []), ["", ""]],
    [lock("empty channel", [3], [], { ends: 1 }), ["whose sender is in", ""]], [lock("full channel", [3], [], { ends: 4 }), ["one of whose 4 receivers is in", ""]],
    [lock("empty channel", [], [], { ends: 0 }), ["all of whose senders are gone", ""]], [lock("oneshot channel", [], [], { ends: 1 }), ["whose sender is in no task that is read", ""]],
    [lock("Barrier", [3], [], { arrived: 2, expected: 3 }), ["(2 of 3 arrived) which", " has, too"]], [lock("Notify", [], [], { ends: 0 }), ["which nothing else has", ""]],
  ];
  for (const [of, expected] of cases) assert.deepEqual(heldBy(of), expected, JSON.stringify(of));
});

test("deadlocks say what each task waits for", () => {
  const text = (tasks, via) => deadlockLines(dump, groupsById(dump), { tasks, via }).map(({ task, text }) => `${task} ${text}`);
  assert.deepEqual(text([5, 3], ["Mutex 0x10", "task 5"]), ["5 waits for the Mutex of task 3 (fetch)", "3 waits for task 5 (price)"]);
  assert.deepEqual(text([5], ["Mutex 0x10"]), ["5 waits for the Mutex that it holds"]);
  assert.deepEqual(text([5], ["empty channel 0x10"]), ["5 waits for the empty channel of which it has the sender"]);
});

test("the line is that of the function in which the tasks are, in whichever branch", () => {
  const at = (name, line) => ({ function: name, file: "/src/main.rs", line, note: null });
  assert.equal(ownPlace(group("f", [1], [at("g", 1), at("f", 2), at("h", 3)])), "main.rs:2");
  assert.equal(ownPlace(group("f", [1], [at("g", 1), { branches: [[at("h", 2)], [at("f", 3)]] }])), "main.rs:3");
  assert.equal(ownPlace(group("f", [1], [at("g", 1)])), "");
});
