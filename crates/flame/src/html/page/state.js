// What the reader looks at, and the same as the part of a link behind `#`, so that links carry it.

const state = {
  view: 0,
  inverted: data.inverted,
  icicle: data.icicle,
  // The box that fills the width, and the stretch of the cost axis when it is another one.
  zoom: 0,
  range: null,
  // Boxes of the inverted graph beyond which it was worked out, in order: numbers of boxes depend on it.
  grown: [],
  query: "",
  regex: false,
};

function stateAsHash() {
  const parts = new URLSearchParams();
  if (state.view) parts.set("view", state.view);
  if (state.inverted !== data.inverted) parts.set("inverted", Number(state.inverted));
  if (state.icicle !== data.icicle) parts.set("icicle", Number(state.icicle));
  if (state.grown.length) parts.set("grown", state.grown.join("."));
  if (state.zoom) parts.set("zoom", state.zoom);
  if (state.range) parts.set("range", state.range.map((end) => Number(end.toPrecision(12))).join(","));
  if (state.query) parts.set("search", state.query);
  if (state.regex) parts.set("regex", 1);
  return parts.toString();
}

// Takes what makes sense of a link; numbers are checked again against the graph.
function stateFromHash(hash) {
  const parts = new URLSearchParams(hash.replace(/^#/, ""));
  const whole = (text) => (/^\d{1,15}$/.test(text ?? "") ? Number(text) : 0);
  const flag = (name, otherwise) => (parts.has(name) ? parts.get(name) === "1" : otherwise);
  state.view = Math.min(whole(parts.get("view")), data.views.length - 1);
  state.inverted = flag("inverted", data.inverted);
  state.icicle = flag("icicle", data.icicle);
  state.grown = (parts.get("grown") ?? "").split(".").filter(Boolean).map(whole);
  state.zoom = whole(parts.get("zoom"));
  const range = (parts.get("range") ?? "").split(",").map(Number);
  state.range = range.length === 2 && range.every(Number.isFinite) && range[0] < range[1] ? range : null;
  state.query = parts.get("search") ?? "";
  state.regex = flag("regex", false);
}

// Puts the state into the address; `step` makes it one that the browser's Back undoes. What is not a step waits for
// a pause: browsers count such calls, and refuse when there are too many.
let remembering = 0;

function rememberState(step) {
  clearTimeout(remembering);
  if (!step) {
    remembering = setTimeout(() => putHash("replaceState"), 200);
    return;
  }
  putHash("pushState");
}

function putHash(how) {
  const hash = stateAsHash();
  if (hash === location.hash.slice(1)) return;
  try {
    history[how](null, "", `#${hash}`);
  } catch { /* a link less */ }
}
