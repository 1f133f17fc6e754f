// A graph of the worker, and what the page has of it: the same nodes, in whatever order they are asked for.

import assert from "node:assert/strict";
import { test } from "node:test";
import { module } from "./columns.mjs";
import { recording } from "./recording.mjs";

const { Kernel } = await module("kernel.ts");
const { Graph, childrenOf } = await module("graph.ts");
const { Cutter } = await module("kernel/pieces.ts");
const { Mirror } = await module("mirror.ts");
const { layout } = await module("layout.ts");

function counted(seed, compared) {
  const { head, columns } = recording(seed, 400);
  const kernel = new Kernel(head, columns);
  const count = (range) => kernel.count({ range, threads: null, measure: "wall" });
  return { ...count([head.wall / 3, head.wall]), tree: kernel.tree, ...childrenOf(kernel.tree), other: compared ? count([0, head.wall / 3]) : null };
}

function both(of, direction, start, least) {
  const cutter = new Cutter(new Graph(of, direction, start));
  let asked = 0;
  const fetch = async (growth) => { asked++; return cutter.grow(growth); };
  const mirror = new Mirror(of, direction, start, cutter.grow({ below: [0], least, most: Infinity }), least, fetch);
  return { whole: new Graph(of, direction, start), mirror, asked: () => asked };
}

// Nodes by their ways, with all that is known of them.
function rows(nodes) {
  const all = [];
  const walk = (node) => {
    const { total, own, hits, otherTotal, otherOwn, otherHits } = nodes;
    all.push([nodes.way(node).join(" "), nodes.path(node), nodes.depth[node], nodes.isInner(node), ...[total, own, hits, otherTotal, otherOwn, otherHits].map((column) => column[node])]);
    nodes.children(node).forEach(walk);
  };
  walk(0);
  return all;
}

for (const compared of [false, true]) {
  for (const [direction, start] of [["down", null], ["up", null], ["down", 2], ["up", 2]]) {
    test(`the page has what the worker has: ${direction} from ${start ?? "all"}${compared ? ", compared" : ""}`, async () => {
      for (const least of [0, 0.05, 2]) {
        const { whole, mirror, asked } = both(counted(3, compared), direction, start, least);
        const expected = rows(whole);
        assert.ok(expected.length > 5);
        let got = rows(mirror);
        while (await mirror.settled()) got = rows(mirror);
        assert.deepEqual(got, expected);
        assert.equal(asked() > 0, least > 0, `asked ${asked()} times at ${least}`);
      }
    });
  }
}

test("a picture needs no second question, and a narrower one shows the same boxes", () => {
  const { whole, mirror, asked } = both(counted(5, false), "down", null, 0.6 / 200);
  const boxes = (of) => layout(of, 0, 200, null).map(({ node, ...at }) => [of.way(node).join(" "), at]).sort();
  assert.deepEqual(boxes(mirror), boxes(whole));
  assert.equal(asked(), 0);
});

test("all below a node comes at once, up to so many nodes", async () => {
  const { whole, mirror } = both(counted(5, false), "down", null, 2);
  await mirror.all(0, 30_000);
  assert.deepEqual(rows(mirror), rows(whole));
  const few = both(counted(5, false), "down", null, 2).mirror;
  await few.all(0, 1);
  assert.ok(few.children(0).some((child) => few.isInner(child)) && few.children(0).filter((child) => few.isInner(child)).every((child) => !few.has(child)));
});

test("what is asked for while something is fetched comes as well", async () => {
  const of = counted(3, false);
  const cutter = new Cutter(new Graph(of, "down", null));
  let release = () => {};
  const mirror = new Mirror(of, "down", null, cutter.grow({ below: [0], least: 2, most: Infinity }), 2, async (growth) => {
    await new Promise((resolve) => { release = resolve; });
    return cutter.grow(growth);
  });
  const inner = mirror.children(0).filter((node) => mirror.isInner(node));
  assert.ok(inner.length >= 3);
  for (const node of inner) {
    assert.deepEqual(mirror.children(node), []);
    // The question for the one before is on its way.
    await new Promise(setImmediate);
  }
  while (mirror.has(inner.at(-1)) === false) {
    release();
    await new Promise(setImmediate);
  }
  for (const node of inner) assert.ok(mirror.children(node).length > 0);
  assert.equal(await mirror.settled(), false);
});
