// What the page holds: names, frames, colours and packed graphs; and graphs as the page works with them.
//
// A graph is a set of columns, one entry a box; a parent always stands before its children. `order` holds all boxes
// row by row, from left to right, so that what is on the screen is found by bisection, however much there is.

const data = JSON.parse(document.getElementById("data").textContent);

const INLINED = 1, FOREIGN = 2, UNKNOWN = 4;
const STATUS = [[1, "dynamic call"], [2, "memory management"], [4, "runtime start"]];

const frames = {
  count: data.frames.length / 6,
  name: (frame) => data.strings[data.frames[frame * 6]],
  full: (frame) => data.strings[data.frames[frame * 6 + 1]],
  file: (frame) => data.strings[data.frames[frame * 6 + 2]],
  line: (frame) => data.frames[frame * 6 + 3],
  module: (frame) => data.strings[data.frames[frame * 6 + 4]],
  is: (frame, kind) => (data.frames[frame * 6 + 5] & kind) !== 0,
  // One number for all lines of a function.
  key: (frame) => `${data.frames[frame * 6]}.${data.frames[frame * 6 + 2]}.${data.frames[frame * 6 + 4]}`,
};

function columns(count) {
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

// A graph as the file has it; pack.rs says how that is.
function unpack(view) {
  const text = atob(view.data);
  const graph = columns(view.nodes);
  let at = 0;
  const number = () => {
    let value = 0, weight = 1;
    for (;;) {
      const byte = text.charCodeAt(at++);
      value += (byte & 127) * weight;
      if (!(byte & 128)) return value;
      weight *= 128;
    }
  };
  const path = [], next = [0];
  for (let node = 0, depth = -1; node < graph.count; node++) {
    depth += 1 - number();
    const look = number() * 4, zigzag = number(), len = number();
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
  return finished(graph);
}

// Adds what follows from the columns: own samples, and the order by rows.
function finished(graph) {
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

// First place in a row whose box ends behind a position of the cost axis.
function firstEndingAfter(graph, row, position, from = graph.row[row]) {
  let low = from, high = graph.row[row + 1];
  while (low < high) {
    const middle = (low + high) >>> 1, node = graph.order[middle];
    if (graph.start[node] + graph.len[node] > position) high = middle;
    else low = middle + 1;
  }
  return low;
}

// Boxes from the root to a box, without the root's own end.
function pathTo(graph, node) {
  const path = [node];
  while (node) path.push((node = graph.parent[node]));
  return path.reverse();
}
