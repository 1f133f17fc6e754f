// The inverted graph: functions with own samples are children of the root, and callers are children of their callees.
//
// The inverted graph has one box per call path to each function, so it may be far larger than the original graph.
// Callers are therefore expanded only where the picture can show them: level by level, in boxes that are wide enough, up to
// a limit. Boxes whose callers are not expanded yet are pending; zooming in expands them.
//
// Below each box of the inverted graph there are entries: boxes of the original graph whose own samples count there, one
// level further out with each level. A store has the entries of one level; a pending box has a range of a store.

// The maximum number of entries that one expansion visits.
const MAX_VISITS = 8_000_000;
// Boxes narrower than this part of the picture are not expanded.
const FINEST = 1 / 8192;

const ONLY = [0];

// Inverts a graph.
function* invert(graph) {
  const { numbers: keyOf, count: keys } = frameKeys(data.difference ? frames.nameKey : frames.key);
  const isEntry = (node) => graph.own[node] > 0 || (graph.a && (graph.ownA[node] > 0 || graph.ownB[node] > 0));
  let entries = 0;
  for (let node = 1; node < graph.count; node++) if (isEntry(node)) entries++;
  const store = newStore(graph, entries);
  for (let node = 1, entry = 0; node < graph.count; node++) {
    if (!isEntry(node)) continue;
    store.at[entry] = node;
    if (store.a) {
      store.a[entry] = graph.ownA[node];
      store.b[entry] = graph.ownB[node];
    }
    store.weight[entry++] = graph.own[node];
  }
  store.pending = 1;
  yield 0.05;
  const boxes = {
    start: [graph.start[0]], len: [graph.len[0]], depth: [0], parent: [0],
    frame: [graph.frame[0]], status: [graph.status[0]], look: [graph.look[0]], mixed: [0],
    a: graph.a && [graph.a[0]], b: graph.b && [graph.b[0]],
    // The store of a pending box, and its range there; -1 if the box is not pending.
    store: [0], from: [0], to: [entries],
    firstChild: [-1],
  };
  const result = { inverted: true, original: graph, boxes, shows: graph.shows, keyOf, keys, stores: [store] };
  return yield* expandCallers(result, [0], graph.len[0] * FINEST);
}

// Room for entries. In graphs of two sides, an entry has the samples of each.
function newStore(graph, size) {
  const column = () => new Float64Array(size);
  return { at: new Uint32Array(size), weight: column(), a: graph.a && column(), b: graph.b && column(), pending: 0, filled: 0 };
}

// The groups of entries that `expander` makes of one box, by number; they grow as necessary.
class Groups {
  constructor() {
    this.capacity = 0;
    this.grow();
  }

  grow() {
    this.capacity = Math.max(1024, this.capacity * 2);
    for (const [name, type] of [
      ["first", Uint32Array], ["heaviest", Float64Array], ["weight", Float64Array], ["a", Float64Array], ["b", Float64Array],
      ["callers", Uint32Array], ["status", Uint8Array], ["mixed", Uint8Array], ["fill", Uint32Array],
    ]) {
      const old = this[name];
      this[name] = new type(this.capacity);
      if (old) this[name].set(old);
    }
  }

  reset(number, node) {
    this.first[number] = node;
    this.heaviest[number] = this.weight[number] = this.a[number] = this.b[number] = 0;
    this.callers[number] = this.status[number] = this.mixed[number] = 0;
  }
}

// Returns a function that expands one box: it adds a box for each function among the entries, heaviest first, and moves the
// entries to `store`, one level further out. It is no generator, because engines compile those late.
function expander(graph, least) {
  const { boxes, original, keyOf, stores } = graph, { frame: frameOf, parent: parentOf, status: statusOf } = original, group = new Groups();
  // `groupOf[key]` is valid for the box `groupedFor[key]`.
  const groupOf = new Uint32Array(graph.keys), groupedFor = new Int32Array(graph.keys).fill(-1);
  return (box, store, storeNumber, nextLevel) => {
    const sourceNumber = boxes.store[box], source = stores[sourceNumber], { at, weight } = source;
    const from = boxes.from[box], to = boxes.to[box];
    let groups = 0;
    for (let i = from; i < to; i++) {
      const node = at[i], frame = frameOf[node], key = keyOf[frame];
      if (groupedFor[key] !== box) {
        groupedFor[key] = box;
        groupOf[key] = groups++;
        if (groups > group.capacity) group.grow();
        group.reset(groups - 1, node);
      }
      const number = groupOf[key], first = frameOf[group.first[number]];
      group.weight[number] += weight[i];
      if (source.a) {
        group.a[number] += source.a[i];
        group.b[number] += source.b[i];
      }
      group.status[number] |= statusOf[node];
      if (parentOf[node]) group.callers[number]++;
      if (frame !== first && frames.line(frame) !== frames.line(first)) group.mixed[number] = 1;
      if (weight[i] > group.heaviest[number]) {
        group.heaviest[number] = weight[i];
        group.first[number] = node;
      }
    }
    // Heaviest first; ties keep the order of the original graph.
    let order = ONLY;
    if (groups > 1) {
      order = new Uint32Array(groups);
      for (let number = 0; number < groups; number++) order[number] = number;
      order.sort((one, other) => group.weight[other] - group.weight[one] || group.first[one] - group.first[other]);
    }
    let start = boxes.start[box], { filled } = store;
    const depth = boxes.depth[box] + 1;
    boxes.firstChild[box] = boxes.start.length;
    for (let at = 0; at < groups; at++) {
      const number = order[at], first = group.first[number], callers = group.callers[number];
      const child = boxes.start.push(start) - 1;
      boxes.len.push(group.weight[number]);
      boxes.depth.push(depth);
      boxes.parent.push(box);
      boxes.frame.push(frameOf[first]);
      boxes.status.push(group.status[number]);
      boxes.look.push(original.look[first]);
      boxes.mixed.push(group.mixed[number] | (original.mixed ? original.mixed[first] : 0));
      if (boxes.a) {
        boxes.a.push(group.a[number]);
        boxes.b.push(group.b[number]);
      }
      boxes.store.push(callers ? storeNumber : -1);
      boxes.firstChild.push(-1);
      boxes.from.push(filled);
      group.fill[number] = filled;
      filled += callers;
      boxes.to.push(filled);
      start += group.weight[number];
      if (!callers) continue;
      store.pending++;
      if (group.weight[number] >= least) nextLevel.push(child);
    }
    store.filled = filled;
    for (let i = from; i < to; i++) {
      const caller = parentOf[at[i]];
      if (!caller) continue;
      const slot = group.fill[groupOf[keyOf[frameOf[at[i]]]]]++;
      store.at[slot] = caller;
      store.weight[slot] = weight[i];
      if (store.a) {
        store.a[slot] = source.a[i];
        store.b[slot] = source.b[i];
      }
    }
    boxes.store[box] = -1;
    if (!--source.pending) stores[sourceNumber] = null;
    return to - from + groups + 20;
  };
}

// Expands the callers of pending boxes level by level, as far as boxes have at least `least` samples. The first level is
// always expanded. The columns of the graph change at the end, all at once, also if this is stopped.
function* expandCallers(graph, roots, least) {
  const { boxes, original, stores } = graph, expand = expander(graph, least);
  const index = function* () {
    const columns = newGraph(boxes.start.length);
    for (const name of ["start", "len", "depth", "parent", "frame", "status", "look"]) columns[name].set(boxes[name]);
    columns.mixed = Uint8Array.from(boxes.mixed);
    if (boxes.a) Object.assign(columns, { a: Float64Array.from(boxes.a), b: Float64Array.from(boxes.b) });
    yield 0.9;
    Object.assign(graph, yield* indexGraph(columns));
  };
  let level = roots, visited = 0, sinceYield = 0, isIndexed = false;
  try {
    while (level.length) {
      let size = 0;
      for (const box of level) size += boxes.to[box] - boxes.from[box];
      if (visited > 0 && visited + size > MAX_VISITS) break;
      visited += size;
      const store = newStore(original, size), storeNumber = stores.push(store) - 1, nextLevel = [];
      for (const box of level) {
        sinceYield += expand(box, store, storeNumber, nextLevel);
        if (sinceYield > 30_000) {
          sinceYield = 0;
          yield (0.9 * visited) / MAX_VISITS;
        }
      }
      level = nextLevel;
    }
    yield* index();
    isIndexed = true;
  } finally {
    if (!isIndexed) finish(index());
  }
  return graph;
}

function isPending(graph, node) {
  return Boolean(graph.inverted) && graph.boxes.store[node] >= 0;
}

// The pending boxes that a picture of this range of the cost axis can show, and the samples that the narrowest one has.
function pendingWithin(graph, low, high) {
  const roots = [], least = (high - low) * FINEST;
  if (!graph.inverted) return { roots, least };
  const { store } = graph.boxes;
  for (let node = 0; node < graph.count; node++) {
    if (store[node] >= 0 && graph.len[node] >= least && graph.start[node] < high && graph.start[node] + graph.len[node] > low) roots.push(node);
  }
  return { roots, least };
}
