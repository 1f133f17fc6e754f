// Names and numbers as the reader sees them.

function percent(part, whole) {
  const share = whole ? (part / whole) * 100 : 0;
  return `${share.toFixed(share >= 99.95 ? 0 : share >= 1 || !part ? 1 : 2)} %`;
}

function thousands(number) {
  const digits = String(Math.round(number));
  return digits.length < 5 ? digits : digits.replace(/\B(?=(\d{3})+$)/g, "\u00a0");
}

// So many samples, or whatever is counted; one of them is a sample. What more there is to say of the unit is told
// once, at the root.
function counted(number, unit = data.unit.split(" ")[0]) {
  return `${thousands(number)} ${Math.round(number) === 1 ? unit.replace(/s$/, "") : unit}`;
}

function nameOf(graph, node) {
  return node === 0 && frames.is(graph.frame[0], UNKNOWN) ? "all" : frames.name(graph.frame[node]);
}

// As much of a name as fits into so many letters: its last parts, if they do, else their beginning.
function label(name, letters) {
  if (letters < 3) return "";
  if (name.length <= letters) return name;
  let last = name;
  // Only so much is looked at: names may be of any length.
  const from = Math.max(0, name.length - Math.max(4 * letters, 400));
  for (let at = name.indexOf("::", from); at >= 0; at = name.indexOf("::", at + 1)) {
    const tail = name.slice(at + 2);
    if (!closes(tail)) continue;
    if (tail.length <= letters && tail.length >= 3) return tail;
    last = tail;
  }
  return `${(last.length >= 3 ? last : name).slice(0, letters - 1)}…`;
}

// Whether no bracket is closed in a text that was opened before it: what follows the `::` between brackets says
// nothing alone.
function closes(tail) {
  let open = 0, before = "";
  if (tail.startsWith("operator")) return true;
  for (const c of tail) {
    if ("<([{".includes(c)) open++;
    else if (")]}".includes(c) || (c === ">" && before !== "-" && before !== "=")) open--;
    if (open < 0) return false;
    before = c;
  }
  return true;
}

function placeOf(graph, node) {
  const frame = graph.frame[node];
  let place = frames.file(frame);
  if (place && frames.line(frame) > 0 && !graph.mixed?.[node]) place += `:${frames.line(frame)}`;
  if (graph.mixed?.[node]) place += ", several lines";
  if (!place) place = frames.module(frame);
  return frames.is(frame, INLINED) ? `${place} [inlined]` : place;
}

// What is known of a box, in lines.
function linesOf(graph, node) {
  const total = graph.len[0], len = graph.len[node], own = graph.own[node], parent = graph.parent[node];
  const lines = [];
  const place = placeOf(graph, node);
  if (place) lines.push(place);
  let counts = `${node ? counted(len) : counted(len, data.unit)}, ${percent(len, total)} of all`;
  if (node) counts += `, ${percent(len, graph.len[parent])} of ${graph.inverted ? "what it calls" : "its caller"}`;
  lines.push(counts);
  if (!graph.inverted) lines.push(own ? `own ${thousands(own)}, ${percent(own, total)}` : "own 0");
  else if (graph.pending.has(node)) lines.push("its callers are worked out when you zoom into it");
  // Notes are of the graph as it is.
  if (graph.note[node]) lines.push(data.strings[graph.note[node]]);
  const status = STATUS.filter(([bit]) => graph.status[node] & bit).map(([, meaning]) => meaning);
  if (status.length) lines.push(status.join(", "));
  return lines;
}

function fullNameOf(graph, node) {
  return nameOf(graph, node) === "all" ? "all" : frames.full(graph.frame[node]);
}
