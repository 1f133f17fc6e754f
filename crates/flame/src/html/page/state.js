// View state, and its encoding in the URL hash.

const state = {
  view: 0,
  inverted: data.inverted,
  icicle: data.icicle,
  // Samples asleep are shown, foreign frames have boxes, and lines have boxes.
  wall: data.wall,
  foreign: data.foreign,
  byLine: data.byLine,
  // The number of the colour scheme.
  scheme: 0,
  // The zoomed box, and the visible range of the cost axis if it differs from the span of that box.
  zoom: 0,
  range: null,
  // The path of the zoomed box, from a link, until `show` has found the box; null otherwise.
  link: null,
  query: "",
  regex: false,
};

// The parts of a URL hash that are 0 or 1, and what they set.
const SWITCHES = [["inverted", "inverted"], ["icicle", "icicle"], ["wall", "wall"], ["foreign", "foreign"], ["lines", "byLine"]];

function stateToHash() {
  const parts = new URLSearchParams();
  if (state.view) parts.set("view", state.view);
  for (const [name, key] of SWITCHES) if (state[key] !== data[key]) parts.set(name, Number(state[key]));
  if (state.scheme) parts.set("colors", data.schemes[state.scheme]);
  if (state.zoom) {
    parts.set("zoom", frames.name(scene.graph.frame[state.zoom]).slice(0, 80));
    parts.set("path", pathToLink(scene.graph, state.zoom));
  }
  if (state.range) parts.set("range", state.range.map((end) => Number(end.toPrecision(12))).join(","));
  if (state.query) parts.set("search", state.query);
  if (state.regex) parts.set("regex", 1);
  return parts.toString();
}

// Restores the valid parts of a URL hash. `show` finds the box of the path and checks the range.
function restoreState(hash) {
  const parts = new URLSearchParams(hash.replace(/^#/, ""));
  const integer = (text) => (/^\d{1,15}$/.test(text ?? "") ? Number(text) : 0);
  const flag = (name, fallback) => (parts.has(name) ? parts.get(name) === "1" : fallback);
  state.view = Math.min(integer(parts.get("view")), data.views.length - 1);
  for (const [name, key] of SWITCHES) state[key] = flag(name, data[key]);
  state.scheme = Math.max(0, data.schemes.indexOf(parts.get("colors")));
  state.zoom = 0;
  const path = parts.get("path");
  state.link = path ? { path: linkToPath(path) ?? [], name: (parts.get("zoom") ?? "").slice(0, 80) } : null;
  // Earlier versions wrote numbers of boxes.
  const isOld = !path && /^\d+$/.test(parts.get("zoom") ?? "");
  if (isOld) announce("This link is from an earlier version, and its zoom is ignored.", true);
  const range = (parts.get("range") ?? "").split(",").map(Number);
  state.range = !isOld && range.length === 2 && range.every(Number.isFinite) && range[0] < range[1] ? range : null;
  state.query = parts.get("search") ?? "";
  state.regex = flag("regex", false);
}

let saveTimer = 0;

// Writes the state to the URL, with a history entry if `step`. Other changes are written when they pause, because browsers
// limit the rate of such calls. A series of changes of the visible range is one history entry.
let rangeChanged = false;
function saveState(step, isRange = false) {
  clearTimeout(saveTimer);
  if (step) return writeHash("pushState");
  rangeChanged ||= isRange;
  saveTimer = setTimeout(() => writeHash(rangeChanged ? "pushState" : "replaceState"), 200);
}

function writeHash(method) {
  rangeChanged = false;
  const hash = stateToHash();
  if (hash === location.hash.slice(1)) return;
  try {
    history[method](null, "", `#${hash}`);
  } catch { /* The browser refused; the URL stays as it is. */ }
}
