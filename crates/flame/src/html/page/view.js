// Updates the page from the view state.

const $ = (id) => document.getElementById(id);
const main = $("scroll"), canvas = $("graph"), picture = new Picture(canvas);
// Decoded graphs by view and orientation (inverted or not).
const graphs = new Map();
// The drawing parameters. `low` and `high` are the visible range of the cost axis; they change during an animation.
const scene = { graph: null, low: 0, high: 1, zoom: 0, icicle: false, scroll: 0, top: 0, found: null, focus: -1, hover: -1, selection: null, height: 0, viewHeight: 0, scheme: 0 };
const darkSystem = matchMedia("(prefers-color-scheme: dark)"), reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");
// The visible range when the animation ends.
let targetRange = [0, 1];
let theme = "auto", redrawRequest = 0, animation = 0, activeItem = 0;
// Browsers limit the height of elements. Deeper graphs scroll in larger steps.
const MAX_HEIGHT = 8_000_000;
// A box with this share of all samples passes practically all on.
const TRUNK = 0.9;

// The graph that some state shows, in steps.
function* graphOf({ view, inverted, wall, foreign, byLine }) {
  const { cpu, asleep, shows } = data.views[view], name = [view, inverted, wall, foreign, byLine].join(".");
  let graph = graphs.get(name);
  if (graph) return graph;
  if (inverted) graph = yield* invert(yield* graphOf({ view, wall, foreign, byLine, inverted: false }));
  else if (data.difference) {
    const sides = [yield* rawGraph(data.now), yield* rawGraph(data.before)];
    graph = yield* mergeGraphs(sides, { keyOf: frames.nameKey, factor: data.difference.factor, shows });
  } else {
    const sides = [yield* rawGraph(cpu)];
    if ((wall || !cpu) && asleep) sides.push(yield* rawGraph(asleep));
    const shownAsIs = sides.length === 1 && (foreign || $("foreign").hidden);
    if (shownAsIs && (byLine || !hasEqualSiblings(sides[0], frames.key))) [graph] = sides;
    else graph = yield* mergeGraphs(sides, { keyOf: byLine ? frames.lineKey : frames.key, foreign, asleep: true });
  }
  graphs.set(name, graph);
  return graph;
}

function* rawGraph(packed) {
  if (!packed) return null;
  packed.graph ??= yield* unpack(packed);
  return packed.graph;
}

// ---- drawing

function redraw() {
  redrawRequest ||= requestAnimationFrame(() => {
    redrawRequest = 0;
    drawScene();
  });
}

function drawScene() {
  if (!scene.graph || isPrinting) return;
  scene.scroll = scrollOffset();
  picture.draw(scene);
  updateTooltip();
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

// Scrolls to where the graph begins to say something. In a program with a deep runtime, a screen of boxes at the root may have all
// samples: the box where they end is then near the edge.
function scrollToStart() {
  const { graph } = scene, height = main.clientHeight, margin = 4 * ROW;
  let trunk = 0;
  // Boxes are in the order of their paths.
  for (let node = 1; node < graph.count; node++) {
    if (graph.parent[node] === trunk && graph.len[node] >= graph.len[0] * TRUNK) trunk = node;
  }
  const rows = graph.depth[trunk], edge = scene.icicle ? 0 : contentHeight();
  if (rows * ROW < height / 2) return scrollTo(edge);
  scrollTo(scene.icicle ? rows * ROW - margin : (graph.rows - rows) * ROW + margin - height);
}

function layout() {
  if (isPrinting) return;
  picture.scale(innerWidth);
  const height = main.clientHeight, content = contentHeight();
  // The edge at the root stays where it is when the page or the graph changes its height.
  const fromRoot = scene.icicle ? scene.scroll : scene.height - scene.scroll - scene.viewHeight;
  Object.assign(scene, { height: content, viewHeight: height });
  $("tall").style.height = `${Math.min(Math.max(content, height), MAX_HEIGHT)}px`;
  canvas.style.height = `${height}px`;
  picture.resize(main.clientWidth, height);
  // A flame graph smaller than the page is bottom-aligned.
  scene.top = content < height && !scene.icicle ? height - content + 4 : 4;
  scrollTo(scene.icicle ? fromRoot : content - height - fromRoot);
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
  if (isPrinting) return false;
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

// Stops the work that is under way: preparing another graph, or expanding the one that is shown.
let stopWork = () => {};
// The state that is shown. It differs from `state` while a graph is prepared.
let shown = { ...state };
const isPreparing = () => !$("busy").hidden;

// Updates everything from the state. `step` adds a history entry; `instant` skips the animation and resets scrolling. If
// the graph takes long to prepare, the former one is shown meanwhile, with a progress bar.
function show(options = {}) {
  stopWork();
  const { link } = state;
  const prepare = function* () {
    const graph = yield* graphOf(state);
    return { graph, target: link && (yield* followPath(graph, link.path, link.isLenient)) };
  };
  showControls();
  let ended = false;
  const stop = runInSlices(prepare(), (progress) => {
    $("busy").hidden = false;
    $("progress").value = progress;
  }, ({ graph, target }) => {
    ended = true;
    $("busy").hidden = true;
    stopWork = () => {};
    if (target) {
      Object.assign(state, { zoom: target.node, link: null });
      if (!target.complete && !link.isLenient) announce(`There is no ${link.name || "such box"} at this place: its nearest caller is shown.`, true);
    }
    showGraph(graph, options);
  });
  if (ended) return;
  stopWork = () => {
    stop();
    $("busy").hidden = true;
  };
}

// Shows the former graph again.
function cancelPreparing() {
  stopWork();
  stopWork = () => {};
  if (!scene.graph) return;
  Object.assign(state, shown);
  showControls();
  announce("Stopped", true);
}

function showControls() {
  $("view").value = String(state.view);
  for (const [id, key] of [["inverted", "inverted"], ["icicle", "icicle"], ["wall", "wall"], ["foreign", "foreign"], ["byline", "byLine"]]) {
    $(id).setAttribute("aria-pressed", String(state[key]));
  }
  $("scheme").value = String(state.scheme);
  if ($("query").value !== state.query) $("query").value = state.query;
  $("regex").checked = state.regex;
  showViews();
}

// The list of views, with their shares of the samples of the first one.
function showViews() {
  const samples = data.views.map(({ cpu, asleep, shows }) => (shows ? 0 : samplesOf(cpu) + (state.wall || !cpu ? samplesOf(asleep) : 0)));
  [...$("view").options].forEach((option, number) => {
    const { label, cpu, apart } = data.views[number];
    const share = !number || apart || !samples[0] ? "" : `  ${!cpu && !state.wall ? "asleep" : formatPercent(samples[number], samples[0])}`;
    option.textContent = `${label}${share}`;
  });
}

function showGraph(graph, { step = false, instant = false }) {
  if (state.zoom >= graph.count) state.zoom = 0;
  const [first, last] = spanOf(graph, 0);
  if (state.range && (state.range[0] < first || state.range[1] > last * (1 + 1e-9))) state.range = null;
  const graphChanged = scene.graph !== graph, flipped = scene.icicle !== state.icicle;
  Object.assign(scene, { graph, icicle: state.icicle, zoom: state.zoom, scheme: state.scheme });
  if (graphChanged) Object.assign(scene, { focus: -1, hover: -1 });
  shown = { ...state };
  if (searched.query === state.query && searched.regex === state.regex) showFound();
  else startSearch();
  showPath();
  if (graphChanged || shownScheme !== state.scheme) {
    shownScheme = state.scheme;
    showLegend();
  }
  layout();
  if (graphChanged || flipped || instant) scrollToStart();
  const [low, high] = state.range ?? spanOf(graph, state.zoom);
  animateTo(low, high, instant || graphChanged);
  if (state.zoom) scrollToRow(graph.depth[state.zoom], true);
  showDetails(scene.focus >= 0 ? scene.focus : state.zoom);
  saveState(step);
  if (instant) {
    new ResizeObserver(layout).observe(main);
    drawScene();
    performance.mark("stackglass-open");
  }
  // A new graph is expanded for its whole width already.
  if (!graphChanged || state.zoom || state.range) expandVisible();
}

// Expands the callers of the boxes of an inverted graph that have become wide enough.
function expandVisible() {
  if (isPreparing()) return;
  const { graph } = scene;
  const { roots, least } = pendingWithin(graph, ...targetRange);
  if (!roots.length) return;
  stopWork();
  let ended = false;
  const stop = runInSlices(expandCallers(graph, roots, least), () => {}, () => {
    ended = true;
    stopWork = () => {};
    showExpanded();
  });
  if (ended) return;
  stopWork = () => {
    stop();
    stopWork = () => {};
    if (scene.graph === graph) showExpanded();
  };
}

// Updates the page after boxes were added to the graph.
function showExpanded() {
  showFound();
  layout();
  showDetails(scene.focus >= 0 ? scene.focus : state.zoom);
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
    drawScene();
  };
  animation = requestAnimationFrame(frame);
}

function zoomTo(node) {
  const graph = scene.graph;
  Object.assign(state, { zoom: node, range: null });
  if (scene.focus >= 0) scene.focus = node;
  show({ step: true });
  announce(node ? `Zoomed to ${nameOf(graph, node)}, ${formatPercent(graph.len[node], graph.len[0])}` : "Showing the whole graph");
}

// Shows a range of the cost axis; `step` adds a history entry at once. The zoomed box becomes its nearest ancestor that contains the range.
function zoomToRange(low, high, step = false) {
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
  saveState(step, true);
  redraw();
  clearTimeout(expandTimer);
  expandTimer = setTimeout(expandVisible, 150);
}

let expandTimer = 0, shownScheme = -1;

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
  scrollToStart();
  announce("Showing the whole graph");
}

function toggle(name) {
  if (name === "inverted") Object.assign(state, { zoom: 0, range: null });
  else if (name !== "icicle") {
    // The same box in another graph.
    const { graph } = scene, path = pathTo(graph, state.zoom).slice(1).map((node) => frameHash(graph.frame[node]));
    Object.assign(state, { range: null, zoom: 0, link: { path, isLenient: true } });
  }
  state[name] = !state[name];
  show({ step: true });
  const what = { inverted: "inverted", icicle: "icicle", wall: "samples asleep", foreign: "C frames", byLine: "lines" }[name];
  announce(`${what} ${state[name] ? "on" : "off"}`);
}

function setScheme(number) {
  state.scheme = number;
  show();
  announce(`Colours: ${data.schemes[number]}`);
}

function setQuery(query, isRegex) {
  Object.assign(state, { query, regex: isRegex });
  showControls();
  startSearch();
  saveState(false);
}

// The frames that match, and what was searched for. `answer` is `{ hits }`, `{ error }`, or null without a query.
let searched = { query: "", regex: false, answer: null };

function startSearch() {
  const { query, regex } = state;
  searched = { query, regex, answer: searched.answer, waiting: true };
  frameSearch.start(query, regex, (answer) => {
    searched = { query, regex, answer };
    if (!scene.graph) return;
    showFound();
    redraw();
  });
  if (searched.waiting) $("found").textContent = "searching …";
}

// The search result for a graph, cached until the query or the graph changes.
function cachedSearch(graph) {
  const { answer } = searched;
  if (!answer?.hits) return null;
  if (graph.searchAnswer !== answer || graph.searchResult.hit.length !== graph.count) {
    Object.assign(graph, { searchAnswer: answer, searchResult: search(graph, answer.hits) });
  }
  return graph.searchResult;
}

function showFound() {
  const { graph } = scene, output = $("found"), error = searched.answer?.error;
  const found = scene.found = cachedSearch(graph);
  if (searched.waiting) return;
  output.classList.toggle("wrong", Boolean(error));
  if (!found) {
    output.textContent = output.title = error ?? "";
    return;
  }
  // Count in the original graph, because the inverted graph may be incomplete.
  const samples = graph.inverted ? cachedSearch(graph.original).samples : found.samples;
  let text = `${formatPercent(samples, graph.len[0])} matched`;
  if (state.zoom) {
    const within = matchedWithin(graph, found, state.zoom);
    text += `, ${formatPercent(within, graph.len[state.zoom])} of the zoomed box`;
  }
  if (scene.focus >= 0 && found.hit[scene.focus]) {
    text += `, match ${formatNumber(found.before[graph.rank[scene.focus]] + 1)} of ${formatNumber(found.boxes)}`;
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

function showDetails(node) {
  const { graph } = scene;
  $("name").textContent = fullNameOf(graph, node).slice(0, 4000);
  $("lines").textContent = detailsOf(graph, node).join(" · ");
  $("copy").hidden = false;
}

// Tells screen readers, and others too if it is `visible`.
function announce(text, visible = false) {
  const said = $("said");
  said.textContent = text.slice(0, 400);
  said.classList.toggle("shown", visible);
  clearTimeout(announce.timer);
  if (visible) announce.timer = setTimeout(() => said.classList.remove("shown"), 3500);
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
  showFound();
  redraw();
}

// Copies the name of the hovered box, else of the focused or the zoomed one.
function copyName() {
  const { graph, hover, focus } = scene;
  const node = hover >= 0 ? hover : focus >= 0 ? focus : state.zoom, text = fullNameOf(graph, node);
  const fallback = () => {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const copied = document.execCommand("copy");
    area.remove();
    return copied;
  };
  (navigator.clipboard?.writeText(text) ?? Promise.reject()).then(() => true, fallback)
    .then((copied) => announce(copied ? `Copied: ${text}` : "This browser does not allow copying.", true));
}

function saveSvg() {
  const name = data.title.replace(/[^\p{L}\p{N}._-]+/gu, "-").slice(0, 80) || "flame-graph";
  download(`${name}.svg`, "image/svg+xml", viewToSvg(picture, scene, `${data.title} – ${data.views[state.view].label}`));
}
