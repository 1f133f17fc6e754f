// The inverted graph: functions with own samples are children of the root, and callers are children of their callees.
//
// The inverted graph has one box per call path to each function, so it may be far larger than the original graph.
// `expandCallers` therefore expands callers level by level, up to a limit. The picture marks boxes whose callers are
// not expanded yet; zooming into such a box expands them.

// The maximum number of original boxes that one expansion visits.
const MAX_VISITS = 2_000_000;

// Inverts a graph. `pending` maps each unexpanded box to its original boxes and their samples.
function invert(graph) {
  const keys = new Map(), keyOf = new Uint32Array(frames.count);
  for (let frame = 0; frame < frames.count; frame++) {
    const key = frames.key(frame);
    if (!keys.has(key)) keys.set(key, keys.size);
    keyOf[frame] = keys.get(key);
  }
  const boxes = {
    start: [graph.start[0]], len: [graph.len[0]], depth: [0], parent: [0],
    frame: [graph.frame[0]], status: [graph.status[0]], swatch: [graph.swatch[0]], mixed: [0],
  };
  const result = { inverted: true, original: graph, boxes, keyOf, keys: keys.size, pending: new Map() };
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
  return expandCallers(result, [0]);
}

// Expands the callers of `roots` level by level, up to a limit. The first level is always expanded.
function expandCallers(graph, roots) {
  const { boxes, original, keyOf, pending } = graph;
  // `groupOf[key]` is valid for the box `groupedFor[key]`.
  const groupOf = new Int32Array(graph.keys), groupedFor = new Int32Array(graph.keys).fill(-1);
  let level = roots.map((node) => [node, pending.get(node)]), visited = 0;
  for (const [node] of level) pending.delete(node);
  while (level.length) {
    const size = level.reduce((sum, [, { at }]) => sum + at.length, 0);
    if (visited > 0 && visited + size > MAX_VISITS) {
      for (const [node, entries] of level) pending.set(node, entries);
      break;
    }
    visited += size;
    const nextLevel = [];
    for (const [node, { at, weight }] of level) {
      // Group the entries by function.
      const groups = [];
      for (let i = 0; i < at.length; i++) {
        const key = keyOf[original.frame[at[i]]];
        if (groupedFor[key] !== node) {
          groupedFor[key] = node;
          groupOf[key] = groups.length;
          groups.push({ first: at[i], heaviest: 0, callerCount: 0, weight: 0, status: 0, mixed: 0 });
        }
        const group = groups[groupOf[key]], box = at[i];
        group.weight += weight[i];
        group.status |= original.status[box];
        if (original.parent[box]) group.callerCount++;
        if (frames.line(original.frame[box]) !== frames.line(original.frame[group.first])) group.mixed = 1;
        if (weight[i] > group.heaviest) {
          group.heaviest = weight[i];
          group.first = box;
        }
      }
      for (const group of groups) {
        group.at = new Uint32Array(group.callerCount);
        group.weights = new Float64Array(group.callerCount);
        group.callerCount = 0;
      }
      for (let i = 0; i < at.length; i++) {
        const group = groups[groupOf[keyOf[original.frame[at[i]]]]], caller = original.parent[at[i]];
        if (!caller) continue;
        group.at[group.callerCount] = caller;
        group.weights[group.callerCount++] = weight[i];
      }
      // Heaviest first; ties keep the order of the original graph.
      groups.sort((a, b) => b.weight - a.weight || a.first - b.first);
      let start = boxes.start[node];
      for (const group of groups) {
        const number = boxes.start.length;
        boxes.start.push(start);
        boxes.len.push(group.weight);
        boxes.depth.push(boxes.depth[node] + 1);
        boxes.parent.push(node);
        boxes.frame.push(original.frame[group.first]);
        boxes.status.push(group.status);
        boxes.swatch.push(original.swatch[group.first]);
        boxes.mixed.push(group.mixed);
        start += group.weight;
        if (group.callerCount) nextLevel.push([number, { at: group.at, weight: group.weights }]);
      }
    }
    level = nextLevel;
  }
  const columns = newGraph(boxes.start.length);
  for (const name of ["start", "len", "depth", "parent", "frame", "status", "swatch"]) {
    columns[name].set(boxes[name]);
  }
  return indexGraph(Object.assign(graph, columns, { mixed: boxes.mixed }));
}

// The unexpanded boxes in the subtree of a box, itself included.
function pendingWithin(graph, node) {
  if (!graph.inverted || !graph.pending.size) return [];
  const end = graph.start[node] + graph.len[node];
  return [...graph.pending.keys()].filter(
    (box) => graph.depth[box] >= graph.depth[node] && graph.start[box] >= graph.start[node] && graph.start[box] < end,
  );
}
