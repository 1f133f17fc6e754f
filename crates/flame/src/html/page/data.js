// The embedded data and the graphs decoded from it.
//
// A graph is a set of columns with one entry per box. Parents precede their children. `order` lists the boxes by row
// and from left to right, so a binary search finds the visible boxes of a row.

const data = JSON.parse(document.getElementById("data").textContent);

const INLINED = 1, FOREIGN = 2, UNKNOWN = 4, ASLEEP = 8;
const STATUS = [[1, "dynamic call"], [2, "memory management"], [4, "runtime start"]];

// A look is its frame, status bits and note, and a swatch for each colour scheme.
const LOOK = 3 + data.schemes.length;
// The boxes of samples asleep have a frame, a look and a swatch of their own.
const ASLEEP_SWATCH = data.swatches.push(["#dbe4ee", "#2a3340", "asleep"]) - 1;
const asleepName = data.strings.push("asleep") - 1;
const ASLEEP_LOOK = data.looks.length / LOOK;
data.looks.push(data.frames.length / 6, 0, 0, ...data.schemes.map(() => ASLEEP_SWATCH));
data.frames.push(asleepName, asleepName, 0, 0, 0, ASLEEP);

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
  // Identifies a line of a function.
  lineKey: (frame) => `${frames.key(frame)}.${frames.line(frame)}`,
  // Identifies a function in two versions of a program.
  nameKey: (frame) => `${data.frames[frame * 6]}.${frames.name(frame) ? "" : data.frames[frame * 6 + 4]}`,
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
    look: new Uint32Array(count),
    note: new Uint32Array(count),
  };
}

// Decodes a packed graph (format: pack.rs), in steps (work.js).
function* unpack({ nodes, data: packed }) {
  const text = atob(packed);
  const graph = newGraph(nodes);
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
  let depth = -1;
  // No generator, because engines compile those late.
  const read = (from, to) => {
    for (let node = from; node < to; node++) {
      depth += 1 - readNumber();
      const look = readNumber(), zigzag = readNumber(), len = readNumber();
      const gap = zigzag % 2 ? -(zigzag + 1) / 2 : zigzag / 2;
      const start = next[depth] + gap;
      graph.start[node] = start;
      graph.len[node] = len;
      graph.depth[node] = depth;
      graph.parent[node] = depth ? path[depth - 1] : 0;
      graph.look[node] = look;
      graph.frame[node] = data.looks[look * LOOK];
      // No call leads to the root.
      graph.status[node] = data.looks[look * LOOK + 1] & (node ? ~0 : ~1);
      graph.note[node] = data.looks[look * LOOK + 2];
      path[depth] = node;
      next[depth] = start + len;
      next[depth + 1] = start;
    }
  };
  for (let node = 0; node < graph.count; node += 0x4000) {
    read(node, Math.min(graph.count, node + 0x4000));
    yield (0.6 * node) / graph.count;
  }
  return yield* indexGraph(graph);
}

// The swatch of a box.
function swatchOf(graph, node, scheme) {
  return data.difference && graph.a ? changeSwatch(graph, node) : data.looks[graph.look[node] * LOOK + 3 + scheme];
}

// The samples of a packed graph: the length of its root.
function samplesOf(packed) {
  const bytes = packed ? atob(packed.data.slice(0, 48)) : "\0\0\0\0";
  let at = 0, value = 0;
  for (let number = 0; number < 4; number++) {
    value = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = bytes.charCodeAt(at++);
      value += (byte & 127) * factor;
      if (!(byte & 128)) break;
    }
  }
  return value;
}

// Adds the derived columns: own samples, and the boxes by row. In graphs of two sides, boxes of no
// length are in no row. `order[row[r]]` is the first box of row `r`; `rank` is
// the inverse of `order`.
function* indexGraph(graph) {
  const { count, start, len, depth, parent, a } = graph;
  // The loops are no generators, because engines compile those late.
  const ownOf = (column) => {
    if (!column) return undefined;
    const own = column.slice();
    for (let node = 1; node < count; node++) own[parent[node]] -= column[node];
    return own;
  };
  const rowsOf = () => {
    let rows = 0;
    for (let node = 0; node < count; node++) if (depth[node] >= rows) rows = depth[node] + 1;
    const row = new Uint32Array(rows + 1);
    for (let node = 0; node < count; node++) if (!a || len[node] > 0 || !node) row[depth[node] + 1]++;
    for (let at = 0; at < rows; at++) row[at + 1] += row[at];
    return row;
  };
  const orderOf = (row) => {
    const order = new Uint32Array(row.at(-1)), fill = row.slice();
    for (let node = 0; node < count; node++) if (!a || len[node] > 0 || !node) order[fill[depth[node]]++] = node;
    return order;
  };
  const sortRow = (order, from, to) => {
    for (let i = from + 1; i < to; i++) {
      if (start[order[i - 1]] <= start[order[i]]) continue;
      order.subarray(from, to).sort((one, other) => start[one] - start[other] || one - other);
      return;
    }
  };
  const rankOf = (order) => {
    const rank = new Uint32Array(count);
    for (let i = 0; i < order.length; i++) rank[order[i]] = i;
    return rank;
  };
  const own = ownOf(len);
  for (let node = 0; node < count; node++) if (own[node] < 0) own[node] = 0;
  yield 0.7;
  const row = rowsOf(), rows = row.length - 1;
  yield 0.75;
  const order = orderOf(row);
  yield 0.8;
  for (let at = 0; at < rows; at++) {
    sortRow(order, row[at], row[at + 1]);
    if (!(at & 0xff)) yield 0.85;
  }
  const rank = rankOf(order);
  yield 0.95;
  return Object.assign(graph, { ownA: ownOf(a), ownB: ownOf(graph.b), own, rows, row, order, rank });
}

// The index in `order` of the first box in a row that ends after a position on the cost axis.
function firstEndingAfter(graph, row, position, from = graph.row[row]) {
  const { start, len, order } = graph;
  let low = from, high = graph.row[row + 1];
  // The box is often near.
  for (let step = 1; low + step < high; step *= 2) {
    const node = order[low + step - 1];
    if (start[node] + len[node] > position) {
      high = low + step;
      break;
    }
    low += step;
  }
  while (low < high) {
    const middle = (low + high) >>> 1, node = order[middle];
    if (start[node] + len[node] > position) high = middle;
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
