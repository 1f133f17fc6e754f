// Formats names, numbers and details of boxes for display.

function formatPercent(part, whole) {
  const share = whole ? (part / whole) * 100 : 0;
  return `${share.toFixed(share >= 99.95 ? 0 : share >= 1 || !part ? 1 : 2)} %`;
}

function formatNumber(number) {
  const digits = String(Math.round(number));
  return digits.length < 5 ? digits : digits.replace(/\B(?=(\d{3})+$)/g, "\u00a0");
}

function fullUnit() {
  return state.wall ? data.wallUnit : data.unit;
}

// Formats a count with its unit, singular for 1. The root shows the full unit, other boxes its first word.
function formatCount(number, unit = fullUnit().split(" ")[0]) {
  return `${formatNumber(number)} ${Math.round(number) === 1 ? unit.replace(/([^mµ])s$/, "$1") : unit}`;
}

function nameOf(graph, node) {
  return node === 0 && frames.is(graph.frame[0], UNKNOWN) ? "all" : frames.name(graph.frame[node]);
}

// The label of a box in a picture: name, line if boxes stand for lines, and share if there is room.
function labelOf(graph, node, columns) {
  let name = nameOf(graph, node);
  const frame = graph.frame[node];
  if (state.byLine && !graph.mixed?.[node] && frames.line(frame) > 0) name += `:${frames.line(frame)}`;
  const text = shortenName(name, columns);
  if (text !== name || !node) return text;
  const share = formatPercent(graph.len[node], graph.len[0]);
  return columns >= name.length + share.length + 2 ? `${name}  ${share}` : text;
}

function locationOf(graph, node) {
  const frame = graph.frame[node];
  let place = frames.file(frame);
  if (place && frames.line(frame) > 0 && !graph.mixed?.[node]) place += `:${frames.line(frame)}`;
  if (graph.mixed?.[node]) place += ", several lines";
  if (!place) place = frames.module(frame);
  return frames.is(frame, INLINED) ? `${place} [inlined]` : place;
}

// The details of a box, one string per line.
function detailsOf(graph, node) {
  const total = graph.len[0], len = graph.len[node], own = graph.own[node], parent = graph.parent[node];
  const lines = [], place = locationOf(graph, node), isDifference = data.difference && graph.a;
  if (place) lines.push(place);
  if (isDifference) lines.push(describeChange(graph, node));
  // Where both sides of a comparison are shown, their sum is no number of samples.
  let counts = isDifference && graph.shows[0] && graph.shows[1] ? "" : `${node ? formatCount(len) : formatCount(len, fullUnit())}, `;
  counts += `${formatPercent(len, total)} of all`;
  if (node) counts += `, ${formatPercent(len, graph.len[parent])} of ${graph.inverted ? "its callee" : "its caller"}`;
  lines.push(counts);
  if (graph.b && !isDifference && graph.b[node] && !frames.is(graph.frame[node], ASLEEP)) {
    lines.push(`on CPU ${formatNumber(graph.a[node])}, asleep ${formatNumber(graph.b[node])}`);
  }
  if (!graph.inverted) lines.push(own ? `own ${formatNumber(own)}, ${formatPercent(own, total)}` : "own 0");
  else if (isPending(graph, node)) lines.push("zoom in to show its callers");
  // Only original graphs have notes.
  if (graph.note[node]) lines.push(data.strings[graph.note[node]]);
  const status = STATUS.filter(([bit]) => graph.status[node] & bit).map(([, meaning]) => meaning);
  if (status.length) lines.push(status.join(", "));
  return lines;
}

function fullNameOf(graph, node) {
  return nameOf(graph, node) === "all" ? "all" : frames.fullName(graph.frame[node]);
}
