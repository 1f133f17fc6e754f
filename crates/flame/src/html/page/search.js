// Search: which boxes match, and what share of all samples is in them, no sample counted twice.

// A function that says whether a text matches; a message when the expression is wrong.
function matcher(query, isRegex) {
  // Small letters match both, as in other search tools of programmers.
  const flags = query === query.toLowerCase() ? "iu" : "u";
  try {
    const regex = new RegExp(isRegex ? query : query.replace(/[.*+?^${}()|[\]\\\/]/g, "\\$&"), flags);
    return (text) => regex.test(text);
  } catch (error) {
    return String(error.message);
  }
}

// Marks matching boxes of a graph. `before` counts them in the order of rows, so that any stretch of a row is
// counted at once.
function search(graph, query, isRegex) {
  if (!query) return null;
  const matches = matcher(query, isRegex);
  if (typeof matches === "string") return { error: matches };
  const frameHits = new Uint8Array(frames.count);
  for (let frame = 0; frame < frames.count; frame++) {
    const file = frames.file(frame);
    frameHits[frame] =
      matches(frames.name(frame)) || matches(frames.full(frame)) || (file !== "" && matches(`${file}:${frames.line(frame)}`));
  }
  const hit = new Uint8Array(graph.count), covered = new Uint8Array(graph.count);
  let boxes = 0;
  for (let node = 1; node < graph.count; node++) {
    hit[node] = frameHits[graph.frame[node]];
    covered[node] = covered[graph.parent[node]] | hit[node];
    boxes += hit[node];
  }
  const before = new Uint32Array(graph.count + 1);
  for (let i = 0; i < graph.count; i++) before[i + 1] = before[i] + hit[graph.order[i]];
  return { hit, covered, before, boxes, samples: matchedWithin(graph, { hit, covered }, 0) };
}

// Samples of a branch that are in matching boxes.
function matchedWithin(graph, found, branch) {
  if (found.covered[branch]) return graph.len[branch];
  const from = graph.start[branch], to = from + graph.len[branch], depth = graph.depth[branch];
  let samples = 0;
  for (let node = 1; node < graph.count; node++) {
    if (!found.hit[node] || found.covered[graph.parent[node]] || graph.depth[node] <= depth) continue;
    if (graph.start[node] >= from && graph.start[node] < to) samples += graph.len[node];
  }
  return samples;
}
