// View state, and its encoding in the URL hash.

const state = {
  view: 0,
  inverted: data.inverted,
  icicle: data.icicle,
  // The zoomed box, and the visible range of the cost axis if it differs from the span of that box.
  zoom: 0,
  range: null,
  // Expanded boxes of the inverted graph, in order (node numbers depend on it).
  expanded: [],
  query: "",
  regex: false,
};

function stateToHash() {
  const parts = new URLSearchParams();
  if (state.view) parts.set("view", state.view);
  if (state.inverted !== data.inverted) parts.set("inverted", Number(state.inverted));
  if (state.icicle !== data.icicle) parts.set("icicle", Number(state.icicle));
  if (state.expanded.length) parts.set("grown", state.expanded.join("."));
  if (state.zoom) parts.set("zoom", state.zoom);
  if (state.range) parts.set("range", state.range.map((end) => Number(end.toPrecision(12))).join(","));
  if (state.query) parts.set("search", state.query);
  if (state.regex) parts.set("regex", 1);
  return parts.toString();
}

// Restores the valid parts of a URL hash. `show` checks node numbers and ranges against the graph.
function restoreState(hash) {
  const parts = new URLSearchParams(hash.replace(/^#/, ""));
  const integer = (text) => (/^\d{1,15}$/.test(text ?? "") ? Number(text) : 0);
  const flag = (name, fallback) => (parts.has(name) ? parts.get(name) === "1" : fallback);
  state.view = Math.min(integer(parts.get("view")), data.views.length - 1);
  state.inverted = flag("inverted", data.inverted);
  state.icicle = flag("icicle", data.icicle);
  state.expanded = (parts.get("grown") ?? "").split(".").filter(Boolean).map(integer);
  state.zoom = integer(parts.get("zoom"));
  const range = (parts.get("range") ?? "").split(",").map(Number);
  state.range = range.length === 2 && range.every(Number.isFinite) && range[0] < range[1] ? range : null;
  state.query = parts.get("search") ?? "";
  state.regex = flag("regex", false);
}

let saveTimer = 0;

// Writes the state to the URL, with a history entry if `step`. Changes without a history entry are debounced, because
// browsers limit the rate of such calls.
function saveState(step) {
  clearTimeout(saveTimer);
  if (!step) {
    saveTimer = setTimeout(() => writeHash("replaceState"), 200);
    return;
  }
  writeHash("pushState");
}

function writeHash(method) {
  const hash = stateToHash();
  if (hash === location.hash.slice(1)) return;
  try {
    history[method](null, "", `#${hash}`);
  } catch { /* The browser refused; the URL stays as it is. */ }
}
