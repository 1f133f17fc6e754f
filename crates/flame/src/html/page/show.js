// What the page shows: brings state, graphs and picture together.

const $ = (id) => document.getElementById(id);
const main = $("scroll"), canvas = $("graph"), picture = new Picture(canvas);
// Graphs that were made so far, by view and way round.
const made = new Map();
// What is drawn: `low` and `high` move during a zoom.
const scene = { graph: null, low: 0, high: 1, zoom: 0, icicle: false, scroll: 0, top: 0, found: null, focus: -1, hover: -1, selection: null };
const darkSystem = matchMedia("(prefers-color-scheme: dark)"), calm = matchMedia("(prefers-reduced-motion: reduce)");
// Where a movement ends.
let goal = [0, 1];
let theme = "auto", awaited = 0, moving = 0, heard = 0;
// Taller than this no browser makes an element; deeper graphs scroll in larger steps.
const TALLEST = 8_000_000;

function graphOf(view, isInverted) {
  const name = `${view}.${isInverted}`;
  if (!made.has(name)) made.set(name, isInverted ? inverted(graphOf(view, false)) : unpack(data.views[view]));
  return made.get(name);
}

// ---- drawing

function redraw() {
  awaited ||= requestAnimationFrame(() => {
    awaited = 0;
    scene.scroll = scrolled();
    picture.draw(scene);
  });
}

function contentHeight() {
  return scene.graph.rows * ROW + 8;
}

function scrolled() {
  const room = contentHeight() - main.clientHeight, slides = main.scrollHeight - main.clientHeight;
  return room <= 0 || slides <= 0 ? 0 : (main.scrollTop / slides) * room;
}

function scrollTo(offset) {
  const room = contentHeight() - main.clientHeight, slides = main.scrollHeight - main.clientHeight;
  main.scrollTop = room <= 0 ? 0 : (Math.max(0, Math.min(offset, room)) / room) * slides;
  redraw();
}

function layout() {
  const height = main.clientHeight, content = contentHeight();
  $("tall").style.height = `${Math.min(Math.max(content, height), TALLEST)}px`;
  canvas.style.height = `${height}px`;
  picture.resize(main.clientWidth, height);
  // A flame graph that does not fill the page stands on its ground.
  scene.top = content < height && !scene.icicle ? height - content + 4 : 4;
  redraw();
}

// Scrolls so that a row is in sight, near the ground where `ground`.
function bringIntoSight(row, ground) {
  const y = (scene.icicle ? row : scene.graph.rows - 1 - row) * ROW + 4, height = main.clientHeight, offset = scrolled();
  if (ground) {
    const above = 3 * ROW;
    if (y < offset + ROW || y > offset + height - 2 * ROW || scene.zoom === 0) scrollTo(scene.icicle ? y - above : y - height + above + ROW);
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
  const other = darkSystem.matches ? "light" : "dark";
  theme = { auto: other, [other]: other === "dark" ? "light" : "dark" }[theme] ?? "auto";
  try {
    localStorage.setItem("stackglass-theme", theme);
  } catch { /* pages from disk may not have any */ }
  showTheme();
}

// ---- what is shown

// Brings everything in line with the state. `step`: the browser's Back undoes it.
function show({ step = false, still = false, keepScroll = false } = {}) {
  let graph = graphOf(state.view, state.inverted);
  if (graph.inverted) {
    for (const node of state.grown) {
      const seeds = pendingWithin(graph, node < graph.count ? node : 0);
      if (seeds.length && !graph.grown?.has(node)) {
        graph = grow(graph, seeds);
        (graph.grown ??= new Set()).add(node);
      }
    }
  }
  if (state.zoom >= graph.count) state.zoom = 0;
  const [first, last] = spanOf(graph, 0);
  if (state.range && (state.range[0] < first || state.range[1] > last * (1 + 1e-9))) state.range = null;
  const other = scene.graph !== graph, flipped = scene.icicle !== state.icicle;
  Object.assign(scene, { graph, icicle: state.icicle, zoom: state.zoom });
  if (other) Object.assign(scene, { focus: -1, hover: -1 });
  $("view").value = String(state.view);
  $("inverted").setAttribute("aria-pressed", String(state.inverted));
  $("icicle").setAttribute("aria-pressed", String(state.icicle));
  $("query").value = state.query;
  $("regex").checked = state.regex;
  showFound();
  showPath();
  layout();
  if ((other || flipped || still) && !keepScroll) scrollTo(scene.icicle ? 0 : contentHeight());
  const [low, high] = state.range ?? spanOf(graph, state.zoom);
  moveTo(low, high, still || other);
  if (!keepScroll && state.zoom) bringIntoSight(graph.depth[state.zoom], true);
  showDetails(scene.focus >= 0 ? scene.focus : state.zoom);
  rememberState(step);
}

function spanOf(graph, node) {
  return [graph.start[node], graph.start[node] + Math.max(graph.len[node], 1e-9)];
}

// Moves to another stretch of the cost axis, in a few frames.
function moveTo(low, high, still) {
  cancelAnimationFrame(moving);
  goal = [low, high];
  const from = [scene.low, scene.high], begin = performance.now(), lasts = 180;
  if (still || calm.matches || (from[0] === low && from[1] === high)) {
    [scene.low, scene.high] = [low, high];
    redraw();
    return;
  }
  const frame = (now) => {
    const part = Math.min(1, Math.max(0, (now - begin) / lasts)), eased = 1 - (1 - part) ** 3;
    scene.low = from[0] + (low - from[0]) * eased;
    scene.high = from[1] + (high - from[1]) * eased;
    if (part < 1) moving = requestAnimationFrame(frame);
    else [scene.low, scene.high] = [low, high];
    scene.scroll = scrolled();
    picture.draw(scene);
  };
  moving = requestAnimationFrame(frame);
}

function zoomTo(node) {
  const graph = scene.graph;
  if (pendingWithin(graph, node).length) state.grown = [...state.grown, node];
  Object.assign(state, { zoom: node, range: null });
  if (scene.focus >= 0) scene.focus = node;
  show({ step: true });
  say(node ? `Zoomed to ${nameOf(graph, node)}, ${percent(graph.len[node], graph.len[0])}` : "The whole graph");
}

// Shows a stretch of the cost axis; the zoom goes out to the innermost box that holds it.
function zoomToRange(low, high) {
  const graph = scene.graph, [first, last] = spanOf(graph, 0), least = (last - first) / 1e9;
  let node = state.zoom;
  const size = Math.min(Math.max(high - low, least), last - first);
  low = Math.min(Math.max(low, first), last - size);
  high = low + size;
  while (node && (low < graph.start[node] || high > graph.start[node] + graph.len[node])) node = graph.parent[node];
  Object.assign(state, { zoom: node, range: size >= last - first ? null : [low, high] });
  cancelAnimationFrame(moving);
  [scene.low, scene.high, scene.zoom] = [low, high, node];
  goal = [low, high];
  showPath();
  showFound();
  rememberState(false);
  redraw();
}

function zoomBy(factor, x) {
  const at = scene.low + ((scene.high - scene.low) * x) / picture.width;
  zoomToRange(at - (at - scene.low) * factor, at + (scene.high - at) * factor);
}

// To the nearest box outwards that is wider; at the root, ends the search.
function zoomOut() {
  const { graph } = scene;
  if (state.range) return zoomTo(state.zoom);
  if (!state.zoom) return state.query ? find("", false) : undefined;
  let node = graph.parent[state.zoom];
  while (node && graph.len[node] <= graph.len[state.zoom]) node = graph.parent[node];
  zoomTo(node);
}

function reset() {
  Object.assign(state, { zoom: 0, range: null, query: "", regex: false });
  scene.focus = -1;
  show({ step: true });
  scrollTo(scene.icicle ? 0 : contentHeight());
  say("The whole graph");
}

function turn(name) {
  if (name === "inverted") Object.assign(state, { zoom: 0, range: null, grown: [] });
  state[name] = !state[name];
  show({ step: true });
  say(`${name} ${state[name] ? "on" : "off"}`);
}

function find(query, isRegex) {
  Object.assign(state, { query, regex: isRegex });
  if ($("query").value !== query) $("query").value = query;
  $("regex").checked = isRegex;
  showFound();
  rememberState(false);
  redraw();
}

// What the search finds in a graph, kept until either changes.
function searched(graph) {
  const asked = `${graph.count} ${state.regex} ${state.query}`;
  if (graph.asked !== asked) Object.assign(graph, { asked, answer: search(graph, state.query, state.regex) });
  return graph.answer;
}

function showFound() {
  const { graph } = scene, found = searched(graph), output = $("found");
  scene.found = found?.error ? null : found;
  output.classList.toggle("wrong", Boolean(found?.error));
  if (!found || found.error) {
    output.textContent = found?.error ?? "";
    output.title = output.textContent;
    return;
  }
  // The same share whichever way round; the inverted graph may not be complete.
  const samples = graph.inverted ? searched(graph.of).samples : found.samples;
  let text = `${percent(samples, graph.len[0])} matched`;
  if (state.zoom) {
    const within = matchedWithin(graph, found, state.zoom);
    text += `, ${percent(within, graph.len[state.zoom])} of the zoom`;
  }
  output.textContent = text;
  output.title = `${counted(samples)} in ${thousands(found.boxes)} boxes`;
}

function showPath() {
  const { graph } = scene, list = $("path"), path = pathTo(graph, state.zoom);
  // The root and the last few.
  const hidden = Math.max(0, path.length - 5);
  const shown = path.map((node, at) => [node, at]).filter(([, at]) => at === 0 || at >= hidden);
  list.replaceChildren(...shown.map(([node, at]) => {
    const item = document.createElement("li"), button = document.createElement("button");
    const more = hidden > 1 && at === hidden;
    button.type = "button";
    button.textContent = more ? `… ${hidden - 1} more` : nameOf(graph, node).slice(0, 200);
    button.title = `${nameOf(graph, node).slice(0, 400)}\n${percent(graph.len[node], graph.len[0])}`;
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
  $("lines").textContent = linesOf(graph, node).join(" · ");
  $("copy").hidden = false;
}

function say(text) {
  $("said").textContent = text.slice(0, 400);
}

// The focused box, for the eye and for screen readers.
function focusOn(node) {
  const { graph } = scene;
  scene.focus = node;
  const item = $(`box${(heard ^= 1)}`);
  item.setAttribute("aria-label", [fullNameOf(graph, node).slice(0, 400), ...linesOf(graph, node)].join(", "));
  item.setAttribute("aria-level", graph.depth[node] + 1);
  item.setAttribute("aria-selected", "true");
  $(`box${heard ^ 1}`).removeAttribute("aria-selected");
  canvas.setAttribute("aria-activedescendant", item.id);
  if (graph.start[node] + graph.len[node] <= goal[0] || graph.start[node] >= goal[1]) {
    Object.assign(state, { zoom: graph.parent[node], range: null });
    show({ step: true });
  }
  bringIntoSight(graph.depth[node]);
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
  (navigator.clipboard?.writeText(text) ?? Promise.reject()).catch(fallback).then(() => say("Name copied"));
}

function saveSvg() {
  const name = data.title.replace(/[^\p{L}\p{N}._-]+/gu, "-").slice(0, 80) || "flame-graph";
  save(`${name}.svg`, "image/svg+xml", pictureAsSvg(picture, scene, `${data.title} – ${data.views[state.view].label}`));
}
