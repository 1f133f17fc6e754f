// The time of source lines against sums that are computed sample by sample.

import assert from "node:assert/strict";
import { test } from "node:test";
import { leb128, module, random } from "./columns.mjs";
import { recording } from "./recording.mjs";

const { Kernel } = await module("kernel.ts");
const { Lines } = await module("kernel/lines.ts");
const { transformed } = await module("kernel/transforms.ts");

const IS = { cpu: [1, 3], asleep: [2], ready: [4], wall: [1, 2, 3, 4] };
const TEXTS = ["fn a() {}\n", "naïve\nb\nc\n"];

// A recording whose frames have lines of two files; one frame has none. The time of a node belongs to a frame of its stack, or to none.
function withLines(seed, size) {
  const made = recording(seed, size);
  const below = random(seed + 500);
  const places = made.frames.map((_, i) => (i === 3 ? [0, 0] : [1 + below(2), 1 + below(3)]));
  const levels = [0, ...made.paths.map((path) => below(path.length + 1))];
  const bytes = new TextEncoder().encode(TEXTS.join(""));
  const size0 = new TextEncoder().encode(TEXTS[0]).length;
  const files = [
    { path: "/home/me/a.rs", name: "@app/a.rs", remark: "", text: [0, size0], left: false },
    { path: "/home/me/b.rs", name: "@app/b.rs", remark: "", text: [size0, bytes.length - size0], left: false },
  ];
  made.columns.set("frames.source", leb128(places.map(([file]) => file)));
  made.columns.set("frames.line", leb128(places.map(([, line]) => 2 * line)));
  made.columns.set("nodes.own", leb128(levels));
  made.columns.set("sources", new TextEncoder().encode(JSON.stringify(files)));
  made.columns.set("sources.text", bytes);
  // A frame without a line owns nothing.
  const ownOf = (sample) => {
    const path = made.path(sample), level = levels[sample.node];
    return level > 0 ? places[path[path.length - level]] : [0, 0];
  };
  return { ...made, places, ownOf };
}

for (let seed = 1; seed <= 30; seed++) {
  test(`times of lines are sums over samples, recording ${seed}`, () => {
    const { head, columns, samples, path, places, ownOf } = withLines(seed, 400);
    const kernel = new Kernel(head, columns), lines = new Lines(kernel, head, columns);
    const below = random(seed + 1000);
    for (const measure of Object.keys(IS)) {
      const range = below(3) ? [below(head.wall / 2), head.wall / 2 + below(head.wall / 2)] : null;
      const threads = below(2) ? [1 + below(3)] : null;
      const dropped = below(2) ? 1 + below(4) : 0;
      const of = Uint8Array.from(kernel.funcs, (func) => (func.name === "abcd"[dropped - 1] ? 1 : 0));
      const shape = dropped ? transformed(kernel.tree, [{ kind: "drop", of }]) : kernel.whole;
      const expected = [1, 2].map(() => [1, 2, 3].map(() => ({ own: 0, total: 0, ownHits: 0, totalHits: 0 })));
      const files = [1, 2].map(() => ({ own: 0, total: 0 }));
      for (const sample of samples) {
        if (!IS[measure].includes(sample.state) || (threads && !threads.includes(sample.thread))) continue;
        const [from, to] = range ?? [-Infinity, Infinity];
        const frames = path(sample);
        if (frames.some((frame) => kernel.funcOf[frame] && of[kernel.funcOf[frame]])) continue;
        const part = Math.max(0, Math.min(sample.clock, to) - Math.max(sample.clock - sample.time, from));
        const hits = from < sample.clock && sample.clock <= to ? sample.hits : 0;
        for (const place of new Set(frames.map((frame) => places[frame].join(" ")))) {
          const [file, line] = place.split(" ").map(Number);
          if (!file) continue;
          expected[file - 1][line - 1].total += part;
          expected[file - 1][line - 1].totalHits += hits;
        }
        for (const file of new Set(frames.map((frame) => places[frame][0]))) if (file) files[file - 1].total += part;
        const [file, line] = ownOf(sample);
        if (!file) continue;
        expected[file - 1][line - 1].own += part;
        expected[file - 1][line - 1].ownHits += hits;
        files[file - 1].own += part;
      }
      for (const file of [0, 1]) {
        const { lines: times, files: sums } = lines.source({ range, threads, measure }, shape, null, file);
        const rows = expected[file].map((row, i) => ({ line: i + 1, ...row })).filter(({ total, totalHits }) => total > 0 || totalHits > 0);
        assert.deepEqual([...times.line], rows.map(({ line }) => line));
        for (const column of ["own", "total", "ownHits", "totalHits"]) assert.deepEqual([...times[column]], rows.map((row) => row[column]), `${column} ${measure}`);
        assert.deepEqual([sums.own[file], sums.total[file]], [files[file].own, files[file].total]);
      }
    }
  });
}

test("a function is shown at its line with most time of its own, and without one the hottest line of all", () => {
  const { head, columns, samples, places, path } = withLines(3, 400);
  const kernel = new Kernel(head, columns), lines = new Lines(kernel, head, columns);
  const selection = { range: null, threads: null, measure: "wall" };
  for (const func of new Set(kernel.funcOf)) {
    const { file, at, lines: times } = lines.source(selection, kernel.whole, func, null);
    const of = samples.flatMap((sample) => path(sample).filter((frame) => kernel.funcOf[frame] === func).map((frame) => places[frame]));
    if (!of.some(([file]) => file)) continue;
    assert.ok(of.some(([of, line]) => of === file + 1 && line === at), `line ${at} of file ${file}`);
    assert.ok(times.line.includes(at));
  }
  const { at, file, lines: times, files } = lines.source(selection, kernel.whole, null, null);
  assert.equal(files.own[file], Math.max(...files.own));
  assert.equal(times.own[times.line.indexOf(at)], Math.max(...times.own));
});

test("texts are cut out by bytes", () => {
  const { head, columns } = withLines(1, 10);
  const lines = new Lines(new Kernel(head, columns), head, columns);
  assert.deepEqual([0, 1, 2].map((file) => lines.text(file)), [...TEXTS, null]);
});
