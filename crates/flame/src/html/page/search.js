// Search: finds matching boxes and the samples in them. Nested matches count once.

// Returns a predicate, or the error text if the regular expression is invalid.
function matcher(query, isRegex) {
  // A lower-case query ignores case (smart case).
  const flags = query === query.toLowerCase() ? "iu" : "u";
  try {
    const regex = new RegExp(isRegex ? query : query.replace(/[.*+?^${}()|[\]\\\/]/g, "\\$&"), flags);
    return (text) => regex.test(text);
  } catch (error) {
    return String(error.message);
  }
}

// Searches a graph. In the result, `hit` marks matching boxes and `covered` marks boxes in or below one.
// `before[i]` counts the matches before index `i` of `order`, so counting the matches of a run takes one subtraction.
function search(graph, query, isRegex) {
  if (!query) return null;
  const matches = matcher(query, isRegex);
  if (typeof matches === "string") return { error: matches };
  const frameHits = new Uint8Array(frames.count);
  for (let frame = 0; frame < frames.count; frame++) {
    const file = frames.file(frame);
    frameHits[frame] =
      matches(frames.name(frame)) || matches(frames.fullName(frame)) || (file !== "" && matches(`${file}:${frames.line(frame)}`));
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

// The samples in the subtree of `branch` that matching boxes cover.
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
