// The legend: colours by their share of the samples, and marks.

// The most colours in the legend; the others are counted.
const MOST_COLORS = 14;

// The own samples of each meaning of a colour, most first: `[meaning, swatch, samples]`.
function meaningsOf(graph, scheme) {
  graph.meanings ??= [];
  if (graph.meanings[scheme]) return graph.meanings[scheme];
  const bySwatch = new Float64Array(data.swatches.length), used = new Uint8Array(data.swatches.length);
  for (let node = 0; node < graph.count; node++) {
    const swatch = swatchOf(graph, node, scheme);
    bySwatch[swatch] += graph.own[node];
    used[swatch] = 1;
  }
  const byMeaning = new Map();
  for (const [swatch, [, , meaning]] of data.swatches.entries()) {
    if (!meaning || !used[swatch]) continue;
    const entry = byMeaning.get(meaning);
    if (entry) entry[2] += bySwatch[swatch];
    else byMeaning.set(meaning, [meaning, swatch, bySwatch[swatch]]);
  }
  return (graph.meanings[scheme] = [...byMeaning.values()].sort((a, b) => b[2] - a[2]));
}

// The entries of the legend of a graph: text, fill (or "none"), and mark (-1: none).
function legendOf(shownGraph, scheme, dark) {
  const graph = shownGraph.original ?? shownGraph, total = graph.len[0];
  const all = meaningsOf(graph, scheme), entries = all.slice(0, MOST_COLORS).map(([meaning, swatch, samples]) => ({
    text: data.difference || !samples ? meaning : `${meaning} ${formatPercent(samples, total)}`,
    fill: data.swatches[swatch][dark ? 1 : 0], mark: STATUS.findIndex(([, text]) => text === meaning),
    asleep: swatch === ASLEEP_SWATCH,
  }));
  if (all.length > MOST_COLORS) {
    const rest = all.slice(MOST_COLORS).reduce((sum, [, , samples]) => sum + samples, 0);
    entries.push({ text: `${all.length - MOST_COLORS} more ${formatPercent(rest, total)}`, fill: "none", mark: -1 });
  }
  let bits = 0;
  for (let node = 0; node < graph.count; node++) bits |= graph.status[node];
  for (const [number, [bit, meaning]] of STATUS.entries()) {
    if (bits & bit && !all.some(([text]) => text === meaning)) entries.push({ text: meaning, fill: "none", mark: number });
  }
  return entries;
}

function showLegend() {
  if (!scene.graph) return;
  const dark = isDark(), svg = (name, parent, attributes) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    parent.append(element);
    return element;
  };
  $("legend").replaceChildren(...legendOf(scene.graph, state.scheme, dark).map(({ text, fill, mark, asleep }) => {
    const item = document.createElement("li"), sample = svg("svg", item, { width: 18, height: 12, "aria-hidden": "true" });
    svg("rect", sample, { width: 18, height: 12, fill, stroke: "currentColor", "stroke-width": 0.5 });
    if (asleep) svg("path", sample, { d: "M0 3h18M0 6h18M0 9h18", stroke: themeColors(dark).stripe });
    if (mark >= 0) svg("path", sample, { d: "M0 10h18", "stroke-width": 2, stroke: fill === "none" ? "currentColor" : textColorOn(fill), "stroke-opacity": MARK_STRENGTH, "stroke-dasharray": DASHES[mark].join(" ") || "none" });
    item.append(text);
    return item;
  }));
}
