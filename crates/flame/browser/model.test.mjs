// The viewer's graphs, inverted graphs, search and rows against slow and plain counting, on random graphs; no
// browser needed.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import vm from "node:vm";

const folder = new URL("../src/html/page/", import.meta.url);
const sources = ["work.js", "data.js", "merged.js", "changes.js", "inverted.js", "names.js", "format.js", "search.js", "picture.js", "keys.js", "links.js"]
  .map((name) => readFileSync(new URL(name, folder), "utf8"));

// The viewer's functions over some data.
function viewer(data) {
  const context = vm.createContext({
    document: { getElementById: () => ({ textContent: JSON.stringify(data) }) },
    atob: (text) => Buffer.from(text, "base64").toString("latin1"),
  });
  vm.runInContext(`${sources.join("\n")}
    this.viewer = {
      data, frames, expandCallers, mergeGraphs: (sides, options) => finish(mergeGraphs(sides, options)), pendingWithin, matchFrames, search, matchedWithin, eachInRow, textColorOn, AROUND, UNMATCHED, neighbour, shortenName, pathToLink, linkToPath,
      unpack: (view) => finish(unpack(view)), invert: (graph) => finish(invert(graph)), followPath: (graph, path) => finish(followPath(graph, path)),
    };`, context);
  return context.viewer;
}

function randomness(seed) {
  return (below) => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return Math.floor((seed / 2 ** 32) * below);
  };
}

// Random boxes as nested lists, and the same packed as pack.rs packs them.
function sample(seed, size) {
  const random = randomness(seed), names = ["a", "b::c", "read", "d::read::e", "x::parse"];
  const nodes = [{ depth: 0, look: 0, start: 0, len: size, parent: -1 }];
  const fill = (parent) => {
    let at = nodes[parent].start;
    const end = at + nodes[parent].len, depth = nodes[parent].depth + 1;
    while (at < end && depth < 12 && random(5)) {
      at += random(3) ? 0 : random(end - at + 1);
      const len = Math.min(end - at, random(4) ? 1 + random(end - at) : 0);
      nodes.push({ depth, look: 1 + random(10), start: at, len, parent });
      fill(nodes.length - 1);
      at += len;
      if (!len) break;
    }
  };
  fill(0);
  const bytes = [], next = [0];
  const number = (value) => {
    for (; value >= 128; value = Math.floor(value / 128)) bytes.push((value % 128) + 128);
    bytes.push(value);
  };
  nodes.forEach(({ depth, look, start, len }, at) => {
    number(at ? nodes[at - 1].depth + 1 - depth : 0);
    number(look);
    const gap = start - next[depth];
    number(gap < 0 ? -2 * gap - 1 : 2 * gap);
    number(len);
    next[depth] = start + len;
    next[depth + 1] = start;
  });
  // Ten frames of five functions, at two lines each.
  const strings = ["", "[unknown]", "f.rs", ...names];
  const frames = [1, 1, 0, -1, 0, 6];
  for (let frame = 0; frame < 10; frame++) frames.push(3 + (frame % 5), 3 + (frame % 5), 2, 1 + Math.floor(frame / 5), 0, 0);
  const looks = Array.from({ length: 11 }, (_, frame) => [frame, frame === 3 ? 2 : 0, 0, 0]).flat();
  const cpu = { nodes: nodes.length, data: Buffer.from(bytes).toString("base64") };
  const data = { title: "t", unit: "samples", schemes: ["kind"], swatches: [["#fff", "#000", ""]], views: [{ label: "all", cpu }], looks, frames, strings };
  nodes.forEach((node) => { node.name = node.look ? names[(node.look - 1) % 5] : ""; });
  const own = nodes.map(({ len }) => len);
  nodes.forEach(({ parent, len }) => { if (parent >= 0) own[parent] -= len; });
  return { nodes, own, page: viewer(data) };
}

const cases = Array.from({ length: 200 }, (_, seed) => sample(seed + 1, seed % 2 ? 1000 : 30));

test("boxes come back as they were packed, with their own samples", () => {
  for (const { nodes, own, page } of cases) {
    const graph = page.unpack(page.data.views[0].cpu);
    assert.deepEqual([...graph.start], nodes.map(({ start }) => start));
    assert.deepEqual([...graph.len], nodes.map(({ len }) => len));
    assert.deepEqual([...graph.parent].slice(1), nodes.map(({ parent }) => parent).slice(1));
    assert.deepEqual([...graph.own], own);
  }
});

test("the inverted graph counts each way to each function once", () => {
  for (const { nodes, own, page } of cases) {
    const graph = page.invert(page.unpack(page.data.views[0].cpu));
    // Ways from a function to its callers, and the samples that end in its first.
    const ways = new Map();
    nodes.forEach((_, node) => {
      let way = "";
      for (let at = node; at > 0 && own[node] > 0; at = nodes[at].parent) {
        way += `/${nodes[at].name}`;
        ways.set(way, (ways.get(way) ?? 0) + own[node]);
      }
    });
    const found = new Map(), wayOf = [""];
    for (let node = 1; node < graph.count; node++) {
      const parent = graph.parent[node];
      assert.ok(parent < node && graph.depth[node] === graph.depth[parent] + 1);
      assert.ok(graph.start[node] >= graph.start[parent]);
      assert.ok(graph.start[node] + graph.len[node] <= graph.start[parent] + graph.len[parent]);
      wayOf[node] = `${wayOf[parent]}/${page.frames.name(graph.frame[node])}`;
      assert.ok(!found.has(wayOf[node]), "one box a way");
      found.set(wayOf[node], graph.len[node]);
    }
    assert.deepEqual([...found].sort(), [...ways].sort());
  }
});

test("a link leads back to its box, also in an inverted graph that is not expanded yet", () => {
  for (const { nodes, page } of cases) {
    const graph = page.unpack(page.data.views[0].cpu), inverted = page.invert(graph), names = (graph, node) => {
      const path = [];
      for (; node; node = graph.parent[node]) path.push(page.frames.name(graph.frame[node]));
      return path.join("/");
    };
    for (const one of [graph, inverted]) {
      for (const node of [1, 3, one.count - 1].filter((node) => node > 0 && node < one.count && one.len[node])) {
        const again = one === graph ? graph : page.invert(graph);
        const { node: found, complete } = page.followPath(again, page.linkToPath(page.pathToLink(one, node)));
        // The first of several boxes with the same path.
        assert.ok(complete);
        assert.equal(names(again, found), names(one, node));
      }
    }
    assert.equal(page.followPath(graph, ["nowhere"]).complete, false);
  }
  assert.equal(cases[0].page.linkToPath("../x"), null);
  assert.deepEqual([...cases[0].page.linkToPath("a*3.b")], ["a", "a", "a", "b"]);
});

test("merged by function, each path has one box with the samples of all", () => {
  for (const { nodes, own, page } of cases) {
    const original = page.unpack(page.data.views[0].cpu);
    const graph = page.mergeGraphs([original, original], { keyOf: page.frames.key, factor: 2, shows: [true, false] });
    const paths = [""], expected = new Map(), found = new Map(), mergedPaths = [""];
    const add = (map, path, samples) => map.set(path, (map.get(path) ?? 0) + samples);
    nodes.forEach(({ name, parent }, node) => {
      if (node) paths[node] = `${paths[parent]}/${name}`;
      add(expected, paths[node], Math.max(0, own[node]));
    });
    for (let node = 0; node < graph.count; node++) {
      if (node) mergedPaths[node] = `${mergedPaths[graph.parent[node]]}/${page.frames.name(graph.frame[node])}`;
      assert.ok(!found.has(mergedPaths[node]), "one box a path");
      assert.ok(node === 0 || graph.start[node] + graph.len[node] <= graph.start[graph.parent[node]] + graph.len[graph.parent[node]]);
      assert.equal(graph.b[node], 2 * graph.a[node]);
      add(found, mergedPaths[node], graph.own[node]);
    }
    assert.deepEqual([...found].sort(), [...expected].sort());
  }
});

test("search counts samples, not boxes", () => {
  for (const { nodes, page } of cases) {
    for (const [query, isRegex] of [["read", false], ["^(a|read)$", true], ["f.rs:2", false], ["nothing", false]]) {
      const graph = page.unpack(page.data.views[0].cpu), found = page.search(graph, page.matchFrames(page.data.strings, page.data.frames, query, isRegex));
      const hits = ({ look, name }) =>
        look > 0 && (query === "f.rs:2" ? look > 5 : isRegex ? name === "a" || name === "read" : name.includes(query));
      const within = (branch) => {
        const samples = new Set();
        nodes.forEach((node, at) => {
          let inside = false, outer = false;
          for (let up = at; up >= 0; up = nodes[up].parent) inside ||= up === branch;
          for (let up = branch; up >= 0; up = nodes[up].parent) outer ||= hits(nodes[up]);
          if (inside && (outer || hits(node))) for (let i = 0; i < node.len; i++) samples.add(node.start + i);
        });
        return samples.size;
      };
      assert.equal(found.samples, within(0));
      assert.equal(found.boxes, nodes.filter(hits).length);
      for (const branch of [1, 2, 5].filter((branch) => branch < nodes.length && nodes[branch].len)) {
        assert.equal(page.matchedWithin(graph, found, branch), within(branch), `${query} in ${branch}`);
      }
    }
  }
});

test("a row shows every box, drawn or merged, once", () => {
  let runs = 0;
  for (const { page } of cases) {
    const graph = page.unpack(page.data.views[0].cpu);
    for (const [low, high, width] of [[0, graph.len[0], 50], [0, graph.len[0], 5000], [graph.len[0] / 3, graph.len[0] / 2, 77]]) {
      for (let row = 0; row < graph.rows; row++) {
        const seen = new Set(), scale = width / (high - low);
        let until = -Infinity;
        page.eachInRow(graph, row, low, high, width,
          (node, left) => {
            assert.ok(left >= until - 1.01, "from left to right");
            until = left;
            assert.ok(graph.len[node] * scale >= 1 && !seen.has(node));
            seen.add(node);
          },
          (first, last, left, right) => {
            runs++;
            assert.ok(right - left >= 0.99 || right >= width - 0.01, "a run can be seen");
            for (let at = first; at <= last; at++) {
              assert.ok(graph.len[graph.order[at]] * scale <= 1.000001 && !seen.has(graph.order[at]));
              seen.add(graph.order[at]);
            }
          });
        for (let at = graph.row[row]; at < graph.row[row + 1]; at++) {
          const node = graph.order[at], start = graph.start[node], end = start + graph.len[node];
          if (graph.len[node] && end > low && start < high) assert.ok(seen.has(node), "none is forgotten");
        }
      }
    }
  }
  assert.ok(runs > 100);
});

test("text is readable on every colour, also where boxes are drawn weaker", () => {
  const { textColorOn, AROUND, UNMATCHED } = viewer({ schemes: [""], strings: [""], frames: [], looks: [], swatches: [], views: [] });
  const parts = (color) => [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));
  const luminance = (color) => {
    const [red, green, blue] = color.map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05;
  };
  for (let number = 0; number < 4096; number++) {
    const color = `#${[...number.toString(16).padStart(3, "0")].map((digit) => digit + digit).join("")}`;
    for (const page of ["#ffffff", "#171717"]) for (const opacity of [1, AROUND, UNMATCHED]) {
      const drawn = parts(color).map((part, at) => part * opacity + parts(page)[at] * (1 - opacity));
      const text = textColorOn(color, page, opacity) === "#000" ? [0, 0, 0] : [255, 255, 255];
      const [one, two] = [luminance(drawn), luminance(text)];
      assert.ok(Math.max(one, two) / Math.min(one, two) >= 4.5, `${color} on ${page} at ${opacity}`);
    }
  }
});
