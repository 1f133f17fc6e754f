// Made-up recordings whose samples are known.

import { leb128, random } from "./columns.mjs";

// A recording with known stacks: its head, its columns, and its samples with the names of their stacks, outermost first.
export function recording(seed, size) {
  const below = random(seed);
  const names = ["", "a", "b", "c", "d", "lib"];
  const frames = [];
  for (let name = 1; name <= 4; name++) for (let line = 0; line < 2; line++) frames.push({ name, line });
  // Each path of frames once, in pre-order.
  const nodes = [];
  const grow = (path, depth) => {
    for (let frame = 0; frame < frames.length; frame++) {
      if (depth > 5 || below(10) >= 3) continue;
      nodes.push({ path: [...path, frame], depth });
      grow([...path, frame], depth + 1);
    }
  };
  grow([], 1);
  const threads = 3, categories = 2;
  let clock = 0;
  const samples = Array.from({ length: size }, (_, i) => {
    clock += below(1000);
    return {
      clock, time: below(3000), node: below(nodes.length + 1), thread: 1 + below(threads), state: 1 + below(4), hits: 1 + below(3),
      cut: [0, 0, 3, 12][i % 4],
    };
  });
  let above = 0;
  const left = nodes.map(({ depth }) => {
    const levels = above + 1 - depth;
    above = depth;
    return levels;
  });
  let before = 0;
  const columns = new Map(Object.entries({
    "frames.name": leb128(frames.map((frame) => frame.name)), "frames.full": leb128(frames.map(() => 0)),
    "frames.file": leb128(frames.map(() => 0)), "frames.module": leb128(frames.map(() => 5)),
    "frames.line": leb128(frames.map((frame) => 2 * frame.line)), "frames.inlined": leb128(frames.map(() => 0)),
    "frames.category": leb128(frames.map((frame) => frame.name % categories)),
    strings: new TextEncoder().encode(JSON.stringify(names)),
    "nodes.left": leb128(left), "nodes.frame": leb128(nodes.map(({ path }) => path.at(-1))),
    "samples.clock": leb128(samples.map((sample) => { const passed = sample.clock - before; before = sample.clock; return passed; })),
    "samples.node": leb128(samples.map((sample) => sample.node)), "samples.thread": leb128(samples.map((sample) => sample.thread)),
    "samples.state": leb128(samples.map((sample) => sample.state)), "samples.hits": leb128(samples.map((sample) => sample.hits)),
    "samples.time": leb128(samples.map((sample) => sample.time)), "samples.cut": leb128(samples.map((sample) => sample.cut)),
  }));
  const head = {
    nodes: nodes.length + 1, samples: size, wall: clock, threads: Array(threads).fill({}), categories: Array(categories).fill({}),
  };
  const stack = ({ node }) => (node === 0 ? [] : nodes[node - 1].path.map((frame) => names[frames[frame].name]));
  // The frames of a stack by number, outermost first, and all stacks of nodes.
  const path = ({ node }) => (node === 0 ? [] : nodes[node - 1].path);
  return { head, columns, samples, stack, path, frames, paths: nodes.map(({ path }) => path) };
}
