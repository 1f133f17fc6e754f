// Boxes in links: a box is named by the functions on its path from the root, so that a link also works on the page of another
// recording of the program.
//
// A link has a short hash of each function, `*N` after it if it repeats N times, and the name of the last one for readers.

// Longer paths are not written to links.
const MAX_LINK = 6000;

// FNV-1a of the name of a frame, or of its module if it has no name, in base 36.
function frameHash(frame) {
  const known = frameHash.known ??= new Map();
  let hash = known.get(frame);
  if (hash === undefined) {
    let value = 0x811c9dc5;
    for (const c of frames.is(frame, UNKNOWN) ? frames.module(frame) : frames.name(frame)) value = Math.imul(value ^ c.codePointAt(0), 0x01000193);
    known.set(frame, (hash = (value >>> 0).toString(36)));
  }
  return hash;
}

function pathToLink(graph, node) {
  const parts = [];
  let count = 0, last = "";
  const end = () => count && parts.push(count > 1 ? `${last}*${count}` : last);
  for (const box of pathTo(graph, node).slice(1)) {
    const hash = frameHash(graph.frame[box]);
    if (hash !== last) {
      end();
      count = 0;
      last = hash;
    }
    count++;
  }
  end();
  const link = parts.join(".");
  return link.length <= MAX_LINK ? link : "";
}

// The hashes of a link, or null if it is malformed.
function linkToPath(link) {
  const path = [];
  for (const part of link.split(".")) {
    const [, hash, count] = /^([0-9a-z]{1,7})(?:\*(\d{1,6}))?$/.exec(part) ?? [];
    if (!hash || path.length > 1_000_000) return null;
    for (let i = Number(count ?? 1); i > 0; i--) path.push(hash);
  }
  return path;
}

// Most boxes that are followed at once: several boxes can have the same path.
const MOST_FOLLOWED = 64;

// The box that a path leads to, or the last box on the way if the path ends earlier. Pending boxes are expanded. If
// `isLenient`, parts of the path that are not there are skipped.
function* followPath(graph, path, isLenient = false) {
  let nodes = [0], steps = 0;
  for (const hash of path) {
    const next = [];
    for (const node of nodes) {
      if (isPending(graph, node)) yield* expandCallers(graph, [node], graph.len[node] * FINEST);
      for (const child of childrenOf(graph, node)) {
        if (next.length < MOST_FOLLOWED && frameHash((graph.boxes ?? graph).frame[child]) === hash) next.push(child);
      }
    }
    if (!next.length && !isLenient) break;
    if (next.length) nodes = next;
    if (!(++steps & 0xff)) yield steps / path.length;
  }
  return { node: nodes[0], complete: steps === path.length };
}

// The boxes directly below a box.
function* childrenOf(graph, node) {
  const { boxes, order, row } = graph;
  if (boxes) {
    for (let at = boxes.firstChild[node]; at >= 0 && at < boxes.start.length && boxes.parent[at] === node; at++) yield at;
    return;
  }
  const below = graph.depth[node] + 1, end = graph.start[node] + graph.len[node];
  if (below >= graph.rows) return;
  for (let at = firstEndingAfter(graph, below, graph.start[node]); at < row[below + 1] && graph.start[order[at]] < end; at++) {
    if (graph.parent[order[at]] === node) yield order[at];
  }
}
