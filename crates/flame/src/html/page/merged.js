// Merges graphs into one: boxes with the same path become one box. So the page hides foreign frames, shows samples asleep
// beside those on a CPU, merges the lines of a function, and compares two graphs.
//
// A merged graph of two sides has the samples of each in `a` and `b`; `len` is the sum of those that the picture shows.

// What a box stands for, as a number for each frame.
function frameKeys(keyOf) {
  const keys = new Map(), numbers = new Uint32Array(frames.count);
  for (let frame = 0; frame < frames.count; frame++) {
    const key = keyOf(frame);
    if (!keys.has(key)) keys.set(key, keys.size);
    numbers[frame] = keys.get(key);
  }
  return { numbers, count: keys.size };
}

// Whether siblings of a graph have the same key, so that merging changes it.
function hasEqualSiblings(graph, keyOf) {
  const { numbers, count } = frameKeys(keyOf), seenIn = new Int32Array(count).fill(-1);
  // The children of a box stand side by side in their row.
  for (const node of graph.order) {
    const key = numbers[graph.frame[node]];
    if (node && seenIn[key] === graph.parent[node]) return true;
    seenIn[key] = node ? graph.parent[node] : -1;
  }
  return false;
}

// Merges the graphs `sides` (one or two; null for an empty one), in steps (work.js). Options:
// keyOf: what identifies a box among its siblings; foreign: foreign frames have boxes; factor: of the second side;
// shows: which sides count for the width; asleep: samples of the second side get boxes `asleep`.
function* mergeGraphs(sides, { keyOf, foreign = true, factor = 1, shows = [true, true], asleep = false }) {
  const keys = frameKeys(keyOf), asleepKey = keys.count;
  // At most one box for each box of a side, and as many for samples asleep.
  let most = 1;
  for (const [side, graph] of sides.entries()) if (graph) most += graph.count * (asleep && side ? 2 : 1);
  const look = new Uint32Array(most), status = new Uint8Array(most), parent = new Uint32Array(most), mixed = new Uint8Array(most);
  const heaviest = new Float64Array(most).fill(-1), own = sides.map(() => new Float64Array(most)), note = new Uint32Array(most);
  const firstChild = new Int32Array(most).fill(-1), lastChild = new Int32Array(most).fill(-1), next = new Int32Array(most).fill(-1);
  const keyOfBox = new Uint32Array(most);
  // A hash table of boxes by parent and key.
  const bits = Math.max(4, Math.ceil(Math.log2(most * 2))), table = new Int32Array(2 ** bits).fill(-1), mask = 2 ** bits - 1;
  yield 0.4;
  // The root is there already.
  let count = 1;
  const childOf = (above, key) => {
    let slot = (Math.imul(above, 0x9e3779b1) + Math.imul(key, 0x85ebca6b)) >>> (32 - bits);
    for (; table[slot] >= 0; slot = (slot + 1) & mask) {
      const box = table[slot];
      if (parent[box] === above && keyOfBox[box] === key) return box;
    }
    const box = (table[slot] = count++);
    parent[box] = above;
    keyOfBox[box] = key;
    if (lastChild[above] < 0) firstChild[above] = box;
    else next[lastChild[above]] = box;
    lastChild[above] = box;
    return box;
  };
  const describe = (box, graph, node, weight) => {
    if (heaviest[box] >= 0) {
      const before = data.looks[look[box] * LOOK], frame = graph.frame[node];
      if (before !== frame && frames.line(before) !== frames.line(frame)) mixed[box] = 1;
      if (note[box] !== graph.note[node]) note[box] = 0;
    } else note[box] = graph.note[node];
    if (weight > heaviest[box]) {
      heaviest[box] = weight;
      look[box] = graph.look[node];
    }
  };
  for (const [side, graph] of sides.entries()) {
    if (!graph) continue;
    const boxOf = new Uint32Array(graph.count), weight = side ? factor : 1;
    describe(0, graph, 0, graph.len[0]);
    // No generator, because engines compile those late.
    const merge = (from, to) => {
      for (let node = from; node < to; node++) {
        const above = boxOf[graph.parent[node]], frame = graph.frame[node];
        let box = 0;
        if (node && !foreign && frames.is(frame, FOREIGN)) box = above;
        else if (node) {
          box = childOf(above, keys.numbers[frame]);
          describe(box, graph, node, graph.len[node]);
        }
        boxOf[node] = box;
        if (box) status[box] |= graph.status[node];
        if (graph.own[node] > 0) {
          const place = asleep && side && node ? childOf(box, asleepKey) : box;
          if (place !== box) {
            look[place] = ASLEEP_LOOK;
            heaviest[place] = 0;
          }
          own[side][place] += graph.own[node] * weight;
        }
      }
    };
    for (let node = 0; node < graph.count; node += 0x4000) {
      merge(node, Math.min(graph.count, node + 0x4000));
      yield 0.4 + (0.4 * (node / graph.count + side)) / sides.length;
    }
  }
  // Children have larger numbers than their parents.
  for (const column of own) {
    for (let box = count - 1; box > 0; box--) column[parent[box]] += column[box];
    yield 0.8;
  }
  const graph = newGraph(count), newNumber = new Uint32Array(count), fill = new Float64Array(count);
  const [a, b] = own.map(() => new Float64Array(count));
  graph.mixed = new Uint8Array(count);
  let number = 0, box = 0;
  const layOut = (most) => {
    for (let steps = 0; box >= 0 && steps < most; steps++) {
      const at = number++, above = newNumber[parent[box]], first = own[0][box], second = b ? own[1][box] : 0;
      newNumber[box] = at;
      a[at] = first;
      if (b) b[at] = second;
      const len = b ? (shows[0] ? first : 0) + (shows[1] ? second : 0) : first;
      graph.len[at] = len;
      graph.parent[at] = above;
      if (at) {
        graph.depth[at] = graph.depth[above] + 1;
        graph.start[at] = fill[above];
        fill[above] += len;
      }
      fill[at] = graph.start[at];
      graph.look[at] = look[box];
      graph.frame[at] = data.looks[look[box] * LOOK];
      graph.status[at] = status[box];
      graph.note[at] = note[box];
      graph.mixed[at] = mixed[box];
      if (firstChild[box] >= 0) box = firstChild[box];
      else {
        while (box > 0 && next[box] < 0) box = parent[box];
        box = box > 0 ? next[box] : -1;
      }
    }
  };
  while (box >= 0) {
    layOut(0x4000);
    yield 0.9;
  }
  if (b) Object.assign(graph, { a, b, shows });
  return yield* indexGraph(graph);
}
