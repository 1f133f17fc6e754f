// Keyboard navigation. Arrow keys follow the picture: in a flame graph, the Up key moves to a callee.

// The neighbour in a direction, or the box itself if there is none. Neighbours in the same row overlap the visible
// range from `low` to `high`.
function neighbour(graph, node, direction, low, high) {
  const row = graph.depth[node];
  if (direction === "caller") return graph.parent[node];
  if (direction === "callee") {
    if (row + 1 >= graph.rows) return node;
    // The widest callee has the most samples.
    const end = graph.start[node] + graph.len[node];
    let best = node;
    for (let at = firstEndingAfter(graph, row + 1, graph.start[node]); at < graph.row[row + 2]; at++) {
      const child = graph.order[at];
      if (graph.start[child] >= end) break;
      if (graph.parent[child] === node && (best === node || graph.len[child] > graph.len[best])) best = child;
    }
    return best;
  }
  const visible = (at) => {
    const other = graph.order[at];
    return graph.start[other] < high && graph.start[other] + graph.len[other] > low;
  };
  const first = graph.row[row], last = graph.row[row + 1] - 1;
  let at = graph.rank[node];
  if (direction === "first") at = Math.min(last, firstEndingAfter(graph, row, low));
  else if (direction === "last") {
    at = Math.min(last, firstEndingAfter(graph, row, high));
    while (at > first && !visible(at)) at--;
  } else at += direction === "next" ? 1 : -1;
  return at >= first && at <= last && visible(at) ? graph.order[at] : node;
}

// The direction of a navigation key, or undefined.
function directionOf(key, icicle) {
  return {
    ArrowUp: icicle ? "caller" : "callee",
    ArrowDown: icicle ? "callee" : "caller",
    ArrowLeft: "previous",
    ArrowRight: "next",
    Home: "first",
    End: "last",
  }[key];
}

// The next match in row order, or the previous one if `step` is -1; it wraps around.
function nextMatch(graph, found, node, step) {
  if (!found?.boxes) return node;
  const { length } = graph.order;
  for (let i = 1; i <= length; i++) {
    const at = (graph.rank[node] + step * i + length * 2) % length;
    if (found.hit[graph.order[at]]) return graph.order[at];
  }
  return node;
}
