// Allocations of a selection against sums that are computed change by change.

import assert from "node:assert/strict";
import { test } from "node:test";
import { leb128, module, random } from "./columns.mjs";
import { recording } from "./recording.mjs";

const { Kernel } = await module("kernel.ts");
const { Allocations } = await module("kernel/allocations.ts");
const { aliveAt, largest } = await module("kernel/live.ts");
const { Errors } = await module("kernel/sampling.ts");
const { ALLOCATION_KEYS, METRICS } = await module("model.ts");

const zigzag = (numbers) => leb128(numbers.map((number) => (number < 0 ? -2 * number - 1 : 2 * number)));
const MS = 1_000_000;
const CHANGES = ["count", "bytes", "freedCount", "freedBytes", "temporary"];

// Keys of two processes and three threads, in slices of 50 to 150 ms; blocks are freed later.
function recorded(seed) {
  const below = random(seed), boxes = 6, keys = [];
  for (let i = 0; i < 12; i++) {
    const process = below(2), type = below(3);
    keys.push({ box: below(boxes), process, thread: process * 2 + below(2), kind: below(5) ? 0 : 1, size: below(4), site: below(4), type, typed: type > 0 ? 1 : 0 });
  }
  const alive = keys.map(() => 0);
  let begin = -3 * MS;
  const slices = Array.from({ length: 20 }, () => {
    const length = (50 + below(100)) * MS + below(2), changes = [], idle = below(4);
    keys.forEach(({ size, process }, key) => {
      if (process === idle || below(3) === 0) return;
      // A key may change twice in a slice.
      for (let times = below(3); times > 0; times--) {
        const count = below(20), freedCount = below(alive[key] + count + 1), bytes = 8 * (size + 1);
        alive[key] += count - freedCount;
        changes.push({ key, count, bytes: bytes * count, freedCount, freedBytes: bytes * freedCount, temporary: below(freedCount + 1) });
      }
    });
    const slice = { begin, length, end: begin + length, changes };
    begin += length;
    return slice;
  });
  const groups = keys.map((_, key) => {
    const own = slices.flatMap(({ changes }) => changes.filter((change) => change.key === key));
    return { key, ...Object.fromEntries(CHANGES.map((field) => [field, own.reduce((sum, change) => sum + change[field], 0)])), peakCount: below(9), peakBytes: below(99), keptCount: 0, keptBytes: 0 };
  });
  return { keys, slices, groups, boxes };
}

const NAMES = ["(unknown)", "Vec<u8>", "Node", "main.rs:1", "main.rs:2", "main.rs:3", "main.rs:4", "main"];

function columnsOf({ keys, slices, groups }, sliced = true) {
  const shown = sliced ? slices : [];
  const row = (key, by) => ({ type: key.type, site: 3 + key.site })[by] ?? 7;
  const column = (list, name) => leb128(list.map((item) => item[name]));
  const sorted = shown.map(({ changes }) => changes.slice().sort((a, b) => a.key - b.key));
  return new Map(Object.entries({
    "keys.node": column(keys, "box"), ...Object.fromEntries(["thread", "process", "kind", "size", "site", "typed"].map((name) => [`keys.${name}`, column(keys, name)])),
    "keys.own": leb128(keys.map(() => 7)), "keys.rows": leb128(ALLOCATION_KEYS.flatMap((by) => keys.map((key) => row(key, by)))),
    "names": new TextEncoder().encode(JSON.stringify(NAMES)), "short": new TextEncoder().encode(JSON.stringify(NAMES.map(() => ""))),
    ...Object.fromEntries(["key", ...CHANGES, "peakCount", "peakBytes", "keptCount", "keptBytes"].map((name) => [`groups.${name}`, column(groups, name)])),
    "sliced": leb128(keys.map((_, key) => key)),
    "slices.begin": zigzag(shown.map(({ begin }) => begin)), "slices.length": column(shown, "length"), "slices.changes": leb128(shown.map(({ changes }) => changes.length)),
    "changes.key": leb128(sorted.flatMap((changes) => changes.map(({ key }, i) => key - (i ? changes[i - 1].key : 0)))),
    ...Object.fromEntries(CHANGES.map((name) => [`changes.${name}`, zigzag(sorted.flat().map((change) => change[name]))])),
  }).map(([name, column]) => [`allocations.${name}`, column]));
}

const EVERY = { exact: true, kept: false, slices: 20, processes: [[0, "every"], [1, "every"]] };
const made = (data, sliced) => new Allocations(EVERY, columnsOf(data, sliced), Int32Array.from({ length: data.boxes }, (_, box) => box));
const all = (boxes) => Int32Array.from({ length: boxes }, (_, box) => box);
const sum = (list, of) => list.reduce((sum, item) => sum + of(item), 0);

// What each key has in a range, by the definition: what was allocated and freed in the slices; what is alive after them; and what was alive when
// its process had most, at the end of one of them.
function expected({ keys, slices, groups }, range) {
  if (!range) return groups.map((group) => ({ ...group, liveCount: group.count - group.freedCount, liveBytes: group.bytes - group.freedBytes }));
  const middle = ({ begin, length }) => begin + Math.floor(length / 2);
  const counted = slices.filter((slice) => middle(slice) >= range[0] && middle(slice) < range[1]);
  const aliveAt = (key, end, what) => sum(slices.filter((slice) => slice.end <= end), ({ changes }) =>
    sum(changes.filter((change) => change.key === key), (change) => (what === "count" ? change.count - change.freedCount : change.bytes - change.freedBytes)));
  const peakOf = (process) => {
    const of = (end) => sum([...keys.keys()].filter((key) => keys[key].process === process && keys[key].kind === 0), (key) => aliveAt(key, end, "bytes"));
    return counted.reduce((most, { end }) => (of(end) > of(most) ? end : most), counted[0].end);
  };
  const peaks = [peakOf(0), peakOf(1)], last = counted.at(-1).end;
  return keys.map(({ process }, key) => {
    const own = counted.flatMap(({ changes }) => changes.filter((change) => change.key === key));
    return {
      ...Object.fromEntries(CHANGES.map((field) => [field, sum(own, (change) => change[field])])), liveCount: aliveAt(key, last, "count"), liveBytes: aliveAt(key, last, "bytes"),
      peakCount: aliveAt(key, peaks[process], "count"), peakBytes: aliveAt(key, peaks[process], "bytes"), older: aliveAt(key, counted[0].begin, "count"), keptBytes: 0, keptCount: 0,
    };
  });
}

const OF = {
  "bytes": ["bytes", "count"], "count": ["count", "count"], "live-bytes": ["liveBytes", "liveCount"], "live-count": ["liveCount", "liveCount"],
  "peak-bytes": ["peakBytes", "peakCount"], "leaked-bytes": ["liveBytes", "liveCount"], "temporary": ["temporary", "temporary"],
};

test("values by box and rows by type and site are sums of changes, in any range", () => {
  for (let seed = 1; seed <= 60; seed++) {
    const data = recorded(seed), below = random(seed + 500), allocations = made(data);
    const end = data.slices.at(-1).end;
    // Ends may lie in the very middle of a slice.
    const middles = data.slices.map(({ begin, length }) => begin + Math.floor(length / 2)).sort(() => below(3) - 1).slice(0, 2).sort((a, b) => a - b);
    const from = below(end / 2);
    const range = [null, middles, [from, from + end / 5 + below(end / 2)]][below(3)];
    const threads = Uint8Array.from({ length: 4 }, () => (below(3) ? 1 : 0));
    const type = below(3) ? undefined : NAMES[below(3)];
    const chosen = { range, threads, type };
    const counts = expected(data, range);
    const counted = [...data.keys.keys()].filter((key) => threads[data.keys[key].thread] && data.keys[key].kind === 0 && (type === undefined || NAMES[data.keys[key].type] === type));
    for (const metric of METRICS) {
      if (metric === "leaked-bytes" && range) continue;
      const { own, hits, samples, why } = allocations.folded(chosen, metric, all(data.boxes), data.boxes);
      const [value, blocks] = OF[metric];
      for (let box = 0; box < data.boxes; box++) {
        const keys = counted.filter((key) => data.keys[key].box === box);
        assert.equal(own[box], sum(keys, (key) => counts[key][value]), `${seed} ${metric}`);
        assert.equal(hits[box], sum(keys, (key) => counts[key][blocks]), `${seed} ${metric} blocks`);
      }
      assert.deepEqual([samples, why], [Infinity, null]);
    }
    for (const [by, nameOf] of [["type", ({ type }) => NAMES[type]], ["site", ({ site }) => NAMES[3 + site]]]) {
      const table = allocations.table(chosen, by, all(data.boxes));
      // Of all that is known of a range, something is not 0.
      const isThere = (key) => !range || ["count", "freedCount", "temporary", "liveCount", "peakCount"].some((field) => counts[key][field] > 0) || counts[key].older > 0;
      const names = [...new Set(counted.filter(isThere).map((key) => nameOf(data.keys[key])))];
      assert.deepEqual(table.names.slice().sort(), names.slice().sort());
      for (const [row, name] of [...table.names.entries(), [table.names.length, null]]) {
        const keys = counted.filter((key) => name === null || nameOf(data.keys[key]) === name);
        for (const field of ["count", "bytes", "liveCount", "liveBytes", "peakBytes", "temporary"]) assert.equal(table[field][row], sum(keys, (key) => counts[key][field]), `${seed} ${by} ${name} ${field}`);
        assert.equal(table.leakedBytes[row], table.liveBytes[row]);
        if (name !== null) assert.equal(table.sites[row], new Set(keys.filter(isThere).map((key) => data.keys[key].site)).size);
      }
      assert.equal(table.typed, sum(counted.filter((key) => data.keys[key].typed), (key) => counts[key].count));
      const mapped = type === undefined ? [...data.keys.keys()].filter((key) => threads[data.keys[key].thread] && data.keys[key].kind === 1) : [];
      assert.deepEqual(table.mappings, { count: sum(mapped, (key) => counts[key].count), bytes: sum(mapped, (key) => counts[key].bytes), liveBytes: sum(mapped, (key) => counts[key].liveBytes) });
    }
  }
});

test("stacks that transforms drop do not count", () => {
  const data = recorded(3), allocations = made(data);
  const chosen = { range: null, threads: new Uint8Array(4).fill(1) };
  const map = all(data.boxes).map((box) => (box % 2 ? -1 : box));
  const { own } = allocations.folded(chosen, "bytes", map, data.boxes), table = allocations.table(chosen, "type", map);
  assert.ok(own[0] + own[2] + own[4] > 0 && own[1] + own[3] + own[5] === 0);
  assert.equal(table.bytes.at(-1), own[0] + own[2] + own[4]);
});

test("why nothing is known", () => {
  const data = recorded(1), allocations = made(data), threads = new Uint8Array(4).fill(1), end = data.slices.at(-1).end;
  const why = (range, of = allocations, metric = "bytes") => of.folded({ range, threads }, metric, all(data.boxes), data.boxes).why;
  assert.match(why([end + 1, end + 2]), /^no allocations were recorded in this range/);
  assert.match(why([-9 * MS, -4 * MS]), /^no allocations were recorded in this range/);
  const { begin, length } = data.slices[5];
  assert.equal(why([begin + 1, begin + 2]), `the range is too short: allocations are known by slices of ${Math.floor(length / MS)} ms there, which count if their middle lies in the range`);
  assert.match(why([0, end], made(data, false)), /^allocations have no times/);
  assert.match(why([0, end], allocations, "leaked-bytes"), /^what has leaked is known at the end only/);
  assert.equal(why(null, made(data, false)), null);
  const table = allocations.table({ range: [begin + 1, begin + 2], threads }, "type", all(data.boxes));
  assert.deepEqual([table.names, [...table.bytes]], [[], [0]]);
});

test("memory over time is what is alive at the end of each slice", () => {
  const data = recorded(9), { end, bytes } = made(data).live();
  let live = 0;
  data.slices.forEach((slice, i) => {
    live += sum(slice.changes.filter(({ key }) => data.keys[key].kind === 0), (change) => change.bytes - change.freedBytes);
    assert.deepEqual([end[i], bytes[i]], [slice.end, live]);
    assert.deepEqual(aliveAt({ end, bytes }, slice.end + 1), i + 1 < data.slices.length ? { end: slice.end, bytes: live } : null);
  });
  const { most, at } = largest({ end, bytes });
  assert.equal(most, Math.max(...bytes));
  assert.equal(bytes[end.indexOf(at)], most);
  assert.equal(aliveAt({ end, bytes }, end[0] - 1), null);
});

// The figures of `exact_sums_have_no_error_and_their_parts_have` (crates/report/src/queries/allocations/mod.rs).
test("allocations of an earlier recording are counted where it is asked for, those of no known thread with all others", () => {
  const { head, columns } = recording(5, 50);
  // Two of the three threads are those of the earlier recording.
  Object.assign(head, { before: { threadsAfter: 1 }, allocations: EVERY });
  const threads = [0, 1, 2, 3, 4], data = { keys: threads.map((thread) => ({ box: 0, thread, process: 0, kind: 0, size: 1, site: 0, type: 1, typed: 1 })), slices: [], groups: [] };
  data.groups = threads.map((thread) => ({ key: thread, count: 1, bytes: 10 ** thread, freedCount: 0, freedBytes: 0, temporary: 0, peakCount: 0, peakBytes: 0, keptCount: 0, keptBytes: 0 }));
  for (const [name, column] of columnsOf(data)) columns.set(name, column);
  const kernel = new Kernel(head, columns), bytes = (threads) => kernel.count({ range: null, threads, measure: "bytes" }).total[0];
  assert.deepEqual([bytes(null), bytes([1]), bytes([2, 3]), bytes([2]), bytes([3, 1])], [11, 10, 11100, 100, 1010]);
});

test("errors are those of the reports", () => {
  const group = (thread, count) => ({ process: 0, thread, size: 1, count, bytes: 8 * count });
  const errors = new Errors([[0, { stacks: 0.1 }]]);
  const of = errors.ofRows([group(1, 300), group(1, 700), group(2, 50)], [0, 1, 2], 3, Float64Array.from([2400, 5600, 400, 8400]));
  const part = (share) => Math.sqrt((0.3 * 0.7) / 100 * 0.9) / share;
  [part(0.3), part(0.7), 0, 0].forEach((expected, row) => assert.ok(Math.abs(of[row] - expected) < 1e-9, `${row}: ${of[row]}`));
  const bytes = new Errors([[0, { bytes: 1000 }], [1, { scaledRate: 0.5 }]]);
  const [one, other] = bytes.ofRows([group(1, 100), { ...group(1, 100), process: 1 }], [0, 1], 2, Float64Array.from([800, 800, 1600]));
  assert.equal(one, Math.sqrt(800 * 1000) / 800);
  assert.equal(other, Math.sqrt((800 * 800 / 100) * (0.5 / 0.5)) / 800);
  assert.deepEqual([bytes.recorded(0, 100, 100, 800), bytes.recorded(1, 100, 100, 800), bytes.recorded(0, 10_000, 10_000, 80_000), bytes.recorded(7, 5, 5, 5)], [1, 50, 80, 5]);
});
