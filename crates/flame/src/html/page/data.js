// The embedded data and the graphs decoded from it.
//
// A graph is a set of columns with one entry per box. Parents precede their children. `order` lists the boxes by row
// and from left to right, so a binary search finds the visible boxes of a row.

const data = JSON.parse(document.getElementById("data").textContent);

const INLINED = 1, FOREIGN = 2, UNKNOWN = 4;
const STATUS = [[1, "dynamic call"], [2, "memory management"], [4, "runtime start"]];

const frames = {
  count: data.frames.length / 6,
  name: (frame) => data.strings[data.frames[frame * 6]],
  fullName: (frame) => data.strings[data.frames[frame * 6 + 1]],
  file: (frame) => data.strings[data.frames[frame * 6 + 2]],
  line: (frame) => data.frames[frame * 6 + 3],
  module: (frame) => data.strings[data.frames[frame * 6 + 4]],
  is: (frame, kind) => (data.frames[frame * 6 + 5] & kind) !== 0,
  // Identifies a function, whatever the line.
  key: (frame) => `${data.frames[frame * 6]}.${data.frames[frame * 6 + 2]}.${data.frames[frame * 6 + 4]}`,
};

function newGraph(count) {
  return {
    count,
    start: new Float64Array(count),
    len: new Float64Array(count),
    depth: new Uint32Array(count),
    parent: new Uint32Array(count),
    frame: new Uint32Array(count),
    status: new Uint8Array(count),
    swatch: new Uint32Array(count),
    note: new Uint32Array(count),
  };
}

// Decodes a packed graph (format: pack.rs).
function unpack(view) {
  const text = atob(view.data);
  const graph = newGraph(view.nodes);
  let at = 0;
  const readNumber = () => {
    let value = 0, factor = 1;
    for (;;) {
      const byte = text.charCodeAt(at++);
      value += (byte & 127) * factor;
      if (!(byte & 128)) return value;
      factor *= 128;
    }
  };
  const path = [], next = [0];
  for (let node = 0, depth = -1; node < graph.count; node++) {
    depth += 1 - readNumber();
    const look = readNumber() * 4, zigzag = readNumber(), len = readNumber();
    const gap = zigzag % 2 ? -(zigzag + 1) / 2 : zigzag / 2;
    const start = next[depth] + gap;
    graph.start[node] = start;
    graph.len[node] = len;
    graph.depth[node] = depth;
    graph.parent[node] = depth ? path[depth - 1] : 0;
    graph.frame[node] = view.looks[look];
    graph.status[node] = view.looks[look + 1];
    graph.swatch[node] = view.looks[look + 2];
    graph.note[node] = view.looks[look + 3];
    path[depth] = node;
    next[depth] = start + len;
    next[depth + 1] = start;
  }
  return indexGraph(graph);
}

// Adds the derived columns: own samples, and the boxes by row. `order[row[r]]` is the first box of row `r`; `rank` is
// the inverse of `order`.
function indexGraph(graph) {
  const { count, start, len, depth, parent } = graph;
  const own = Float64Array.from(len);
  let rows = 0;
  for (let node = 0; node < count; node++) {
    if (node) own[parent[node]] -= len[node];
    if (depth[node] >= rows) rows = depth[node] + 1;
  }
  const row = new Uint32Array(rows + 1);
  for (let node = 0; node < count; node++) {
    if (own[node] < 0) own[node] = 0;
    row[depth[node] + 1]++;
  }
  for (let at = 0; at < rows; at++) row[at + 1] += row[at];
  const order = new Uint32Array(count), fill = row.slice();
  for (let node = 0; node < count; node++) order[fill[depth[node]]++] = node;
  const rank = new Uint32Array(count);
  for (let at = 0; at < rows; at++) {
    let sorted = true;
    for (let i = row[at] + 1; i < row[at + 1] && sorted; i++) sorted = start[order[i - 1]] <= start[order[i]];
    if (!sorted) order.subarray(row[at], row[at + 1]).sort((a, b) => start[a] - start[b] || a - b);
  }
  for (let i = 0; i < count; i++) rank[order[i]] = i;
  return Object.assign(graph, { own, rows, row, order, rank });
}

// The index in `order` of the first box in a row that ends after a position on the cost axis.
function firstEndingAfter(graph, row, position, from = graph.row[row]) {
  let low = from, high = graph.row[row + 1];
  while (low < high) {
    const middle = (low + high) >>> 1, node = graph.order[middle];
    if (graph.start[node] + graph.len[node] > position) high = middle;
    else low = middle + 1;
  }
  return low;
}

// The boxes from the root to a box, both included.
function pathTo(graph, node) {
  const path = [node];
  while (node) path.push((node = graph.parent[node]));
  return path.reverse();
}
