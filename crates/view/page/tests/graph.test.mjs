// Graphs that grow where somebody looks, against sums over stacks.

import assert from "node:assert/strict";
import { test } from "node:test";
import { module } from "./columns.mjs";

const { Graph, childrenOf } = await module("graph.ts");
const { layout } = await module("layout.ts");
const { difference, shareError } = await module("compare.ts");

function random(seed) {
  let state = seed;
  return (n) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * n);
  };
}

function counted(seed, withOther = false) {
  const below = random(seed);
  const parent = [-1], func = [0], depth = [0], known = new Map();
  for (let i = 0; i < 50; i++) {
    let at = 0;
    for (let level = below(7); level >= 0; level--) {
      const of = 1 + below(5), key = `${at} ${of}`;
      if (!known.has(key)) {
        known.set(key, parent.length);
        parent.push(at);
        func.push(of);
        depth.push(depth[at] + 1);
      }
      at = known.get(key);
    }
  }
  const counts = () => {
    const own = Float64Array.from(parent, () => below(3) * below(100)), total = own.slice();
    const hits = Float64Array.from(own, (time) => Math.ceil(time / 10));
    for (let box = parent.length - 1; box > 0; box--) {
      total[parent[box]] += total[box];
      hits[parent[box]] += hits[box];
    }
    return { own, total, hits, samples: hits[0], funcOwn: null, funcTotal: null, funcHits: null };
  };
  const tree = { parent: Int32Array.from(parent), func: Int32Array.from(func), depth: Int32Array.from(depth) };
  return { ...counts(), tree, ...childrenOf(tree), other: withOther ? counts() : null };
}

function stackOf({ parent, func }, box) {
  const stack = [];
  for (let at = box; at > 0; at = parent[at]) stack.push(func[at]);
  return stack.reverse();
}

// All nodes: [way, total, own, hits].
function nodes(graph) {
  const all = [], left = [0];
  while (left.length) {
    const node = left.pop();
    assert.equal(graph.isInner(node), graph.children(node).length > 0);
    all.push([graph.way(node).join(), graph.total[node], graph.own[node], graph.hits[node]]);
    left.push(...graph.children(node));
  }
  return new Map(all.map(([way, ...figures]) => [way, figures]));
}

// The sum over boxes of what each prefix of a list has.
function expected(of, listOf) {
  const all = new Map();
  for (let box = 0; box < of.own.length; box++) {
    const list = listOf(box);
    if (!list || of.own[box] <= 0) continue;
    for (let length = 0; length <= list.length; length++) {
      const key = list.slice(0, length).join();
      all.set(key, (all.get(key) ?? 0) + of.own[box]);
    }
  }
  return all;
}

const totals = (graph) => new Map([...nodes(graph)].map(([way, [total]]) => [way, total]).sort());
const sorted = (map) => new Map([...map].sort());

test("downwards and upwards", () => {
  for (let seed = 1; seed <= 30; seed++) {
    const of = counted(seed);
    const down = new Graph(of, "down"), up = new Graph(of, "up");
    assert.deepEqual(totals(down), sorted(expected(of, (box) => stackOf(of.tree, box))));
    assert.deepEqual(totals(up), sorted(expected(of, (box) => stackOf(of.tree, box).reverse())));
    // What is below a node and its own time are its time.
    for (let node = 0; node < down.total.length; node++) {
      assert.equal(down.children(node).reduce((sum, child) => sum + down.total[child], down.own[node]), down.total[node]);
      assert.equal(down.hits[node] >= down.children(node).reduce((sum, child) => sum + down.hits[child], 0), true);
    }
    assert.equal(up.children(0).reduce((sum, node) => sum + up.own[node], 0), of.total[0] - of.own[0]);
  }
});

test("callers and callees of a function count its outermost calls", () => {
  for (let seed = 1; seed <= 30; seed++) {
    const of = counted(seed);
    for (let func = 1; func <= 5; func++) {
      const down = new Graph(of, "down", func), up = new Graph(of, "up", func);
      const cut = (box) => {
        const stack = stackOf(of.tree, box), at = stack.indexOf(func);
        return at < 0 ? null : [stack.slice(0, at).reverse(), stack.slice(at + 1)];
      };
      assert.deepEqual(totals(down), sorted(new Map([["", 0], ...expected(of, (box) => cut(box)?.[1])])));
      assert.deepEqual(totals(up), sorted(new Map([["", 0], ...expected(of, (box) => cut(box)?.[0])])));
    }
  }
});

test("boxes lie side by side, the callees above their caller", () => {
  const of = counted(3, true);
  for (const direction of ["down", "up"]) {
    const graph = new Graph(of, direction);
    const rank = Int32Array.from([0, 5, 3, 4, 1, 2]);
    for (const order of [rank, null]) {
      const boxes = layout(graph, 0, 1000, order);
      const by = new Map(boxes.map((box) => [box.node, box]));
      for (const { node, x, width, row } of boxes.slice(1)) {
        const above = by.get(graph.parent[node]);
        assert.ok(x >= above.x - 1e-6 && x + width <= above.x + above.width + 1e-6 && row === above.row + 1);
        const next = boxes.filter((box) => graph.parent[box.node] === graph.parent[node] && box.x > x + 1e-9);
        for (const box of next) assert.ok(order ? order[graph.func[box.node]] > order[graph.func[node]] : box.width <= width + 1e-9);
      }
    }
    // A zoomed node has the whole width, and so have its callers.
    const inner = graph.children(0).find((node) => graph.isInner(node));
    const zoomed = layout(graph, inner, 1000, null);
    assert.deepEqual(zoomed.slice(0, 2).map(({ node, x, width }) => [node, x, width]), [[0, 0, 1000], [inner, 0, 1000]]);
    assert.deepEqual(graph.reach([[graph.func[inner]], [99]]), inner);
    assert.deepEqual(graph.find([[graph.func[inner]], [99]]), -1);
  }
});

test("differences have errors", () => {
  assert.ok(Math.abs(shareError(0.5, 100) - 0.098) < 1e-9);
  const small = difference(55, 100, 100, 50, 100, 100), large = difference(5500, 10000, 10000, 5000, 10000, 10000);
  assert.ok(small.noise && !large.noise);
  assert.ok(Math.abs(large.delta - 0.05) < 1e-12 && large.before === 0.5);
  assert.ok(difference(0, 0, 0, 0, 0, 0).noise);
});
