// The time of instructions against sums that are computed sample by sample.

import assert from "node:assert/strict";
import { test } from "node:test";
import { leb128, module, random } from "./columns.mjs";
import { recording } from "./recording.mjs";

const { Kernel } = await module("kernel.ts");
const { Disassembly } = await module("kernel/code.ts");
const { transformed } = await module("kernel/transforms.ts");

const IS = { cpu: [1, 3], asleep: [2], ready: [4], wall: [1, 2, 3, 4] };
const SIZES = [3, 1, 4];

// Three functions with instructions of two lines of two files. Some samples are at none.
function withCode(seed, size) {
  const made = recording(seed, size);
  const below = random(seed + 700);
  const count = SIZES.reduce((sum, size) => sum + size, 0);
  const at = made.samples.map(() => below(count + 2)).map((at) => (at > count ? 0 : at));
  const lengths = Array.from({ length: count }, () => 1 + below(15));
  const places = Array.from({ length: count }, () => [below(3), 1 + below(2)]);
  const encode = (text) => new TextEncoder().encode(text);
  const texts = SIZES.map((size, f) => Array.from({ length: size }, (_, i) => `é${f} ${i}`));
  let first = 0, begin = 0;
  const functions = SIZES.map((count, f) => {
    const bytes = encode(texts[f].map((text) => `${text}\n`).join("")).length;
    const row = { name: `f${f}`, module: "app", address: 0x1000 * (f + 1), first, count, text: [begin, bytes], frames: [f, f + 2] };
    first += count;
    begin += bytes;
    return row;
  });
  made.head.code = { functions: SIZES.length, instructions: count };
  made.columns.set("samples.code", leb128(at));
  made.columns.set("code.length", leb128(lengths));
  made.columns.set("code.source", leb128(places.map(([file]) => file)));
  made.columns.set("code.line", leb128(places.map(([, line]) => 2 * line)));
  made.columns.set("code.name", leb128(places.map(([file]) => file)));
  made.columns.set("code", encode(JSON.stringify({ functions, names: ["", "x", "y"], left: [["lib", "why", 7]] })));
  made.columns.set("code.text", encode(texts.flat().map((text) => `${text}\n`).join("")));
  return { ...made, at, lengths, places, texts, functions };
}

for (let seed = 1; seed <= 20; seed++) {
  test(`times of instructions are sums over samples, recording ${seed}`, () => {
    const { head, columns, samples, path, at, lengths, places, texts, functions } = withCode(seed, 400);
    const kernel = new Kernel(head, columns), code = new Disassembly(kernel, head, columns);
    const below = random(seed + 1000);
    for (const measure of Object.keys(IS)) {
      const range = below(3) ? [below(head.wall / 2), head.wall / 2 + below(head.wall / 2)] : null;
      const threads = below(2) ? [1 + below(3)] : null;
      const dropped = below(2) ? 1 + below(4) : 0;
      const of = Uint8Array.from(kernel.funcs, (func) => (func.name === "abcd"[dropped - 1] ? 1 : 0));
      const shape = dropped ? transformed(kernel.tree, [{ kind: "drop", of }]) : kernel.whole;
      const own = new Float64Array(at.length), hits = new Float64Array(at.length);
      samples.forEach((sample, i) => {
        if (!IS[measure].includes(sample.state) || (threads && !threads.includes(sample.thread)) || !at[i]) return;
        if (path(sample).some((frame) => of[kernel.funcOf[frame]])) return;
        const [from, to] = range ?? [-Infinity, Infinity];
        own[at[i] - 1] += Math.max(0, Math.min(sample.clock, to) - Math.max(sample.clock - sample.time, from));
        if (from < sample.clock && sample.clock <= to) hits[at[i] - 1] += sample.hits;
      });
      const selection = { range, threads, measure };
      functions.forEach(({ first, count, address }, f) => {
        const { shown, instructions, functions: all, left } = code.code(selection, shape, null, null, f);
        assert.equal(shown, f);
        assert.deepEqual(instructions.own, own.slice(first, first + count));
        assert.deepEqual(instructions.hits, hits.slice(first, first + count));
        assert.deepEqual(instructions.text, texts[f]);
        assert.deepEqual([...instructions.address], lengths.slice(first, first + count).map((_, i) => address + lengths.slice(first, first + i).reduce((a, b) => a + b, 0)));
        assert.equal(all.find(({ number }) => number === f).time, own.slice(first, first + count).reduce((a, b) => a + b, 0));
        assert.deepEqual(left, [["lib", "why", 7]]);
      });
      // Of a line: the function with most of its time first.
      for (const [file, line] of [[0, 1], [1, 2]]) {
        const inLine = functions.map(({ first, count }) => places.slice(first, first + count).flatMap(([of, at], i) => (of === file + 1 && at === line ? [own[first + i]] : [])));
        const expected = functions.flatMap((_, f) => (inLine[f].length ? [[f, inLine[f].reduce((a, b) => a + b, 0)]] : []));
        const { functions: found, shown } = code.code(selection, shape, { file, line }, null, null);
        if (!expected.length) continue;
        assert.deepEqual(found.map(({ number }) => number).sort(), expected.map(([f]) => f).sort());
        assert.equal(expected.find(([f]) => f === shown)[1], Math.max(...expected.map(([, time]) => time)));
      }
    }
    // Of a line without instructions: the functions in which samples of a function end.
    const nowhere = { file: 9, line: 9 }, all = { range: null, threads: null, measure: "wall" };
    assert.equal(code.code(all, kernel.whole, nowhere, null, null).instructions, null);
    const func = kernel.funcOf[3];
    const found = code.code(all, kernel.whole, nowhere, func, null).functions.map(({ number }) => number).sort();
    assert.deepEqual(found, functions.flatMap(({ frames }, f) => (frames.some((frame) => kernel.funcOf[frame] === func) ? [f] : [])));
  });
}
