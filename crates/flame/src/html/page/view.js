// Updates the page from the view state.

const $ = (id) => document.getElementById(id);
const main = $("scroll"), canvas = $("graph"), picture = new Picture(canvas);
// Decoded graphs by view and orientation (inverted or not).
const graphs = new Map();
// The drawing parameters. `low` and `high` are the visible range of the cost axis; they change during an animation.
const scene = { graph: null, low: 0, high: 1, zoom: 0, icicle: false, scroll: 0, top: 0, found: null, focus: -1, hover: -1, selection: null };
const darkSystem = matchMedia("(prefers-color-scheme: dark)"), reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");
// The visible range when the animation ends.
let targetRange = [0, 1];
let theme = "auto", redrawRequest = 0, animation = 0, activeItem = 0;
// Browsers limit the height of elements. Deeper graphs scroll in larger steps.
const MAX_HEIGHT = 8_000_000;

function graphOf(view, isInverted) {
  const name = `${view}.${isInverted}`;
  if (!graphs.has(name)) graphs.set(name, isInverted ? invert(graphOf(view, false)) : unpack(data.views[view]));
  return graphs.get(name);
}

// ---- drawing

function redraw() {
  redrawRequest ||= requestAnimationFrame(() => {
    redrawRequest = 0;
    scene.scroll = scrollOffset();
    picture.draw(scene);
  });
}

function contentHeight() {
  return scene.graph.rows * ROW + 8;
}

function scrollOffset() {
  const overflow = contentHeight() - main.clientHeight, scrollRange = main.scrollHeight - main.clientHeight;
  return overflow <= 0 || scrollRange <= 0 ? 0 : (main.scrollTop / scrollRange) * overflow;
}

function scrollTo(offset) {
  const overflow = contentHeight() - main.clientHeight, scrollRange = main.scrollHeight - main.clientHeight;
  main.scrollTop = overflow <= 0 ? 0 : (Math.max(0, Math.min(offset, overflow)) / overflow) * scrollRange;
  redraw();
}

function layout() {
  const height = main.clientHeight, content = contentHeight();
  $("tall").style.height = `${Math.min(Math.max(content, height), MAX_HEIGHT)}px`;
  canvas.style.height = `${height}px`;
  picture.resize(main.clientWidth, height);
  // A flame graph smaller than the page is bottom-aligned.
  scene.top = content < height && !scene.icicle ? height - content + 4 : 4;
  redraw();
}

// Scrolls a row into view. `alignToRoot` places it near the edge of the root: the bottom of a flame graph, or the top
// of an icicle graph.
function scrollToRow(row, alignToRoot) {
  const y = (scene.icicle ? row : scene.graph.rows - 1 - row) * ROW + 4, height = main.clientHeight, offset = scrollOffset();
  if (alignToRoot) {
    const margin = 3 * ROW;
    if (y < offset + ROW || y > offset + height - 2 * ROW || scene.zoom === 0) scrollTo(scene.icicle ? y - margin : y - height + margin + ROW);
  } else if (y < offset + 4) scrollTo(y - ROW);
  else if (y > offset + height - ROW - 4) scrollTo(y - height + 2 * ROW);
}

function isDark() {
  return theme === "auto" ? darkSystem.matches : theme === "dark";
}

function showTheme() {
  document.documentElement.dataset.theme = isDark() ? "dark" : "light";
  $("theme").textContent = { auto: "Theme", light: "Light", dark: "Dark" }[theme];
  picture.theme(isDark());
  showLegend();
  redraw();
}

function nextTheme() {
  const opposite = darkSystem.matches ? "light" : "dark";
  theme = { auto: opposite, [opposite]: opposite === "dark" ? "light" : "dark" }[theme] ?? "auto";
  try {
    localStorage.setItem("stackglass-theme", theme);
  } catch { /* Storage may be unavailable, for example for local files. */ }
  showTheme();
}

// ---- view

// Updates everything from the state. `step` adds a history entry; `instant` skips the animation and resets scrolling.
function show({ step = false, instant = false } = {}) {
  let graph = graphOf(state.view, state.inverted);
  if (graph.inverted) {
    for (const node of state.expanded) {
      const roots = pendingWithin(graph, node < graph.count ? node : 0);
      if (roots.length && !graph.expanded?.has(node)) {
        graph = expandCallers(graph, roots);
        (graph.expanded ??= new Set()).add(node);
      }
    }
  }
  if (state.zoom >= graph.count) state.zoom = 0;
  const [first, last] = spanOf(graph, 0);
  if (state.range && (state.range[0] < first || state.range[1] > last * (1 + 1e-9))) state.range = null;
  const graphChanged = scene.graph !== graph, flipped = scene.icicle !== state.icicle;
  Object.assign(scene, { graph, icicle: state.icicle, zoom: state.zoom });
  if (graphChanged) Object.assign(scene, { focus: -1, hover: -1 });
  $("view").value = String(state.view);
  $("inverted").setAttribute("aria-pressed", String(state.inverted));
  $("icicle").setAttribute("aria-pressed", String(state.icicle));
  $("query").value = state.query;
  $("regex").checked = state.regex;
  showFound();
  showPath();
  layout();
  if (graphChanged || flipped || instant) scrollTo(scene.icicle ? 0 : contentHeight());
  const [low, high] = state.range ?? spanOf(graph, state.zoom);
  animateTo(low, high, instant || graphChanged);
  if (state.zoom) scrollToRow(graph.depth[state.zoom], true);
  showDetails(scene.focus >= 0 ? scene.focus : state.zoom);
  saveState(step);
}

function spanOf(graph, node) {
  return [graph.start[node], graph.start[node] + Math.max(graph.len[node], 1e-9)];
}

// Changes the visible range of the cost axis, animated unless `instant`.
function animateTo(low, high, instant) {
  cancelAnimationFrame(animation);
  targetRange = [low, high];
  const from = [scene.low, scene.high], startTime = performance.now(), duration = 180;
  if (instant || reducedMotion.matches || (from[0] === low && from[1] === high)) {
    [scene.low, scene.high] = [low, high];
    redraw();
    return;
  }
  const frame = (now) => {
    const progress = Math.min(1, Math.max(0, (now - startTime) / duration)), eased = 1 - (1 - progress) ** 3;
    scene.low = from[0] + (low - from[0]) * eased;
    scene.high = from[1] + (high - from[1]) * eased;
    if (progress < 1) animation = requestAnimationFrame(frame);
    else [scene.low, scene.high] = [low, high];
    scene.scroll = scrollOffset();
    picture.draw(scene);
  };
  animation = requestAnimationFrame(frame);
}

function zoomTo(node) {
  const graph = scene.graph;
  if (pendingWithin(graph, node).length) state.expanded = [...state.expanded, node];
  Object.assign(state, { zoom: node, range: null });
  if (scene.focus >= 0) scene.focus = node;
  show({ step: true });
  announce(node ? `Zoomed to ${nameOf(graph, node)}, ${formatPercent(graph.len[node], graph.len[0])}` : "Showing the whole graph");
}

// Shows a range of the cost axis. The zoomed box becomes its nearest ancestor that contains the range.
function zoomToRange(low, high) {
  const graph = scene.graph, [first, last] = spanOf(graph, 0), least = (last - first) / 1e9;
  let node = state.zoom;
  const size = Math.min(Math.max(high - low, least), last - first);
  low = Math.min(Math.max(low, first), last - size);
  high = low + size;
  while (node && (low < graph.start[node] || high > graph.start[node] + graph.len[node])) node = graph.parent[node];
  Object.assign(state, { zoom: node, range: size >= last - first ? null : [low, high] });
  cancelAnimationFrame(animation);
  [scene.low, scene.high, scene.zoom] = [low, high, node];
  targetRange = [low, high];
  showPath();
  showFound();
  saveState(false);
  redraw();
}

function zoomBy(factor, x) {
  const at = scene.low + ((scene.high - scene.low) * x) / picture.width;
  zoomToRange(at - (at - scene.low) * factor, at + (scene.high - at) * factor);
}

// Zooms to the nearest wider ancestor. At the root, clears the search.
function zoomOut() {
  const { graph } = scene;
  if (state.range) return zoomTo(state.zoom);
  if (!state.zoom) return state.query ? setQuery("", false) : undefined;
  let node = graph.parent[state.zoom];
  while (node && graph.len[node] <= graph.len[state.zoom]) node = graph.parent[node];
  zoomTo(node);
}

function reset() {
  Object.assign(state, { zoom: 0, range: null, query: "", regex: false });
  scene.focus = -1;
  show({ step: true });
  scrollTo(scene.icicle ? 0 : contentHeight());
  announce("Showing the whole graph");
}

function toggle(name) {
  if (name === "inverted") Object.assign(state, { zoom: 0, range: null, expanded: [] });
  state[name] = !state[name];
  show({ step: true });
  announce(`${name} ${state[name] ? "on" : "off"}`);
}

function setQuery(query, isRegex) {
  Object.assign(state, { query, regex: isRegex });
  if ($("query").value !== query) $("query").value = query;
  $("regex").checked = isRegex;
  showFound();
  saveState(false);
  redraw();
}

// The search result for a graph, cached until the query or the graph changes.
function cachedSearch(graph) {
  const searchKey = `${graph.count} ${state.regex} ${state.query}`;
  if (graph.searchKey !== searchKey) Object.assign(graph, { searchKey, searchResult: search(graph, state.query, state.regex) });
  return graph.searchResult;
}

function showFound() {
  const { graph } = scene, found = cachedSearch(graph), output = $("found");
  scene.found = found?.error ? null : found;
  output.classList.toggle("wrong", Boolean(found?.error));
  if (!found || found.error) {
    output.textContent = found?.error ?? "";
    output.title = output.textContent;
    return;
  }
  // Count in the original graph, because the inverted graph may be incomplete.
  const samples = graph.inverted ? cachedSearch(graph.original).samples : found.samples;
  let text = `${formatPercent(samples, graph.len[0])} matched`;
  if (state.zoom) {
    const within = matchedWithin(graph, found, state.zoom);
    text += `, ${formatPercent(within, graph.len[state.zoom])} of the zoomed box`;
  }
  output.textContent = text;
  output.title = `${formatCount(samples)} in ${formatNumber(found.boxes)} boxes`;
}

function showPath() {
  const { graph } = scene, list = $("path"), path = pathTo(graph, state.zoom);
  // Show the root and the last few boxes.
  const hidden = Math.max(0, path.length - 5);
  const shown = path.map((node, at) => [node, at]).filter(([, at]) => at === 0 || at >= hidden);
  list.replaceChildren(...shown.map(([node, at]) => {
    const item = document.createElement("li"), button = document.createElement("button");
    const more = hidden > 1 && at === hidden;
    button.type = "button";
    button.textContent = more ? `… ${hidden - 1} more` : nameOf(graph, node).slice(0, 200);
    button.title = `${nameOf(graph, node).slice(0, 400)}\n${formatPercent(graph.len[node], graph.len[0])}`;
    if (node === state.zoom) button.setAttribute("aria-current", "true");
    button.addEventListener("click", () => zoomTo(node));
    item.append(button);
    return item;
  }));
  list.scrollLeft = list.scrollWidth;
}

function showLegend() {
  const meanings = new Map();
  data.swatches.forEach(([light, dark, meaning]) => {
    if (meaning && !meanings.has(meaning)) meanings.set(meaning, isDark() ? dark : light);
  });
  for (const [, meaning] of STATUS) {
    if (!meanings.has(meaning) && usesStatus(meaning)) meanings.set(meaning, "none");
  }
  const svg = (name, parent, attributes) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    parent.append(element);
    return element;
  };
  const used = new Set();
  for (const view of data.views) for (let i = 2; i < view.looks.length; i += 4) used.add(data.swatches[view.looks[i]]?.[2]);
  const items = [...meanings].filter(([meaning, fill]) => fill === "none" || used.has(meaning)).map(([meaning, fill]) => {
    const item = document.createElement("li"), bit = STATUS.findIndex(([, text]) => text === meaning);
    const picture = svg("svg", item, { width: 18, height: 12, "aria-hidden": "true" });
    svg("rect", picture, { width: 18, height: 12, fill, stroke: "currentColor", "stroke-width": 0.5 });
    if (bit >= 0) svg("path", picture, { d: "M0 10h18", "stroke-width": 2, stroke: themeColors(isDark()).marks[bit], "stroke-dasharray": DASHES[bit].join(" ") || "none" });
    item.append(meaning);
    return item;
  });
  $("legend").replaceChildren(...items);
}

function usesStatus(meaning) {
  const [bit] = STATUS.find(([, text]) => text === meaning);
  return data.views.some((view) => view.looks.some((part, i) => i % 4 === 1 && part & bit));
}

function showDetails(node) {
  const { graph } = scene;
  $("name").textContent = fullNameOf(graph, node).slice(0, 4000);
  $("lines").textContent = detailsOf(graph, node).join(" · ");
  $("copy").hidden = false;
}

function announce(text) {
  $("said").textContent = text.slice(0, 400);
}

// Focuses a box. Screen readers announce a change of the active descendant, so two elements alternate.
function focusOn(node) {
  const { graph } = scene;
  scene.focus = node;
  const item = $(`box${(activeItem ^= 1)}`);
  item.setAttribute("aria-label", [fullNameOf(graph, node).slice(0, 400), ...detailsOf(graph, node)].join(", "));
  item.setAttribute("aria-level", graph.depth[node] + 1);
  item.setAttribute("aria-selected", "true");
  $(`box${activeItem ^ 1}`).removeAttribute("aria-selected");
  canvas.setAttribute("aria-activedescendant", item.id);
  if (graph.start[node] + graph.len[node] <= targetRange[0] || graph.start[node] >= targetRange[1]) {
    Object.assign(state, { zoom: graph.parent[node], range: null });
    show({ step: true });
  }
  scrollToRow(graph.depth[node]);
  showDetails(node);
  redraw();
}

function copyName() {
  const text = fullNameOf(scene.graph, scene.focus >= 0 ? scene.focus : scene.hover > 0 ? scene.hover : state.zoom);
  const fallback = () => {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  };
  (navigator.clipboard?.writeText(text) ?? Promise.reject()).catch(fallback).then(() => announce("Name copied"));
}

function saveSvg() {
  const name = data.title.replace(/[^\p{L}\p{N}._-]+/gu, "-").slice(0, 80) || "flame-graph";
  download(`${name}.svg`, "image/svg+xml", viewToSvg(picture, scene, `${data.title} – ${data.views[state.view].label}`));
}
