// The inverted graph: functions at the root by their own samples, their callers above them.
//
// It is worked out level by level and may be far larger than the graph it is made of (a box for each way that leads
// to each function), so it stops when enough is done. Boxes whose callers are not worked out yet are marked;
// zooming into them goes on.

const ENOUGH = 2_000_000;

function inverted(graph) {
  const keys = new Map(), keyOf = new Uint32Array(frames.count);
  for (let frame = 0; frame < frames.count; frame++) {
    const key = frames.key(frame);
    if (!keys.has(key)) keys.set(key, keys.size);
    keyOf[frame] = keys.get(key);
  }
  const growing = {
    start: [graph.start[0]], len: [graph.len[0]], depth: [0], parent: [0],
    frame: [graph.frame[0]], status: [graph.status[0]], swatch: [graph.swatch[0]], mixed: [0],
  };
  const result = { inverted: true, of: graph, growing, keyOf, keys: keys.size, pending: new Map() };
  let entries = 0;
  for (let node = 1; node < graph.count; node++) if (graph.own[node] > 0) entries++;
  const at = new Uint32Array(entries), weight = new Float64Array(entries);
  for (let node = 1, entry = 0; node < graph.count; node++) {
    if (graph.own[node] > 0) {
      at[entry] = node;
      weight[entry++] = graph.own[node];
    }
  }
  result.pending.set(0, { at, weight });
  return grow(result, [0]);
}

// Works out what is above these boxes, as far as is enough.
function grow(graph, seeds) {
  const { growing, of, keyOf, pending } = graph;
  const slot = new Int32Array(graph.keys), stamp = new Int32Array(graph.keys).fill(-1);
  let level = seeds.map((node) => [node, pending.get(node)]), done = 0;
  for (const [node] of level) pending.delete(node);
  while (level.length) {
    const size = level.reduce((sum, [, { at }]) => sum + at.length, 0);
    if (done > 0 && done + size > ENOUGH) {
      for (const [node, entries] of level) pending.set(node, entries);
      break;
    }
    done += size;
    const above = [];
    for (const [node, { at, weight }] of level) {
      // Entries by function.
      const groups = [];
      for (let i = 0; i < at.length; i++) {
        const key = keyOf[of.frame[at[i]]];
        if (stamp[key] !== node) {
          stamp[key] = node;
          slot[key] = groups.length;
          groups.push({ first: at[i], heaviest: 0, count: 0, further: 0, weight: 0, status: 0, mixed: 0 });
        }
        const group = groups[slot[key]], box = at[i];
        group.count++;
        group.weight += weight[i];
        group.status |= of.status[box];
        if (of.parent[box]) group.further++;
        if (frames.line(of.frame[box]) !== frames.line(of.frame[group.first])) group.mixed = 1;
        if (weight[i] > group.heaviest) {
          group.heaviest = weight[i];
          group.first = box;
        }
      }
      for (const group of groups) {
        group.at = new Uint32Array(group.further);
        group.weights = new Float64Array(group.further);
        group.further = 0;
      }
      for (let i = 0; i < at.length; i++) {
        const group = groups[slot[keyOf[of.frame[at[i]]]]], caller = of.parent[at[i]];
        if (!caller) continue;
        group.at[group.further] = caller;
        group.weights[group.further++] = weight[i];
      }
      // The heaviest first; those of one weight as the graph has them.
      groups.sort((a, b) => b.weight - a.weight || a.first - b.first);
      let start = growing.start[node];
      for (const group of groups) {
        const number = growing.start.length;
        growing.start.push(start);
        growing.len.push(group.weight);
        growing.depth.push(growing.depth[node] + 1);
        growing.parent.push(node);
        growing.frame.push(of.frame[group.first]);
        growing.status.push(group.status);
        growing.swatch.push(of.swatch[group.first]);
        growing.mixed.push(group.mixed);
        start += group.weight;
        if (group.further) above.push([number, { at: group.at, weight: group.weights }]);
      }
    }
    level = above;
  }
  const graphColumns = columns(growing.start.length);
  for (const name of ["start", "len", "depth", "parent", "frame", "status", "swatch"]) {
    graphColumns[name].set(growing[name]);
  }
  return finished(Object.assign(graph, graphColumns, { mixed: growing.mixed }));
}

// Boxes at or above a box whose callers are not worked out.
function pendingWithin(graph, node) {
  if (!graph.inverted || !graph.pending.size) return [];
  const end = graph.start[node] + graph.len[node];
  return [...graph.pending.keys()].filter(
    (box) => graph.depth[box] >= graph.depth[node] && graph.start[box] >= graph.start[node] && graph.start[box] < end,
  );
}
