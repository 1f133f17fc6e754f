// Event handlers and start-up.

addEventListener("keydown", (event) => {
  const typing = event.target.matches?.("input[type=search], select, textarea"), { graph } = scene;
  if (event.ctrlKey || event.metaKey || event.altKey || $("help").open) return;
  if (typing) {
    if (event.key === "Escape" || event.key === "Enter") {
      if (event.key === "Escape") setQuery("", state.regex);
      event.preventDefault();
      canvas.focus();
    }
    return;
  }
  if (isPreparing()) {
    if (event.key === "Escape") cancelPreparing();
    else if ("if".includes(event.key)) toggle(event.key === "i" ? "inverted" : "icicle");
    return;
  }
  const direction = directionOf(event.key, scene.icicle), onButton = event.target.matches?.("button, input");
  if (direction) {
    if (event.target !== canvas && event.target !== document.body) return;
    canvas.focus();
    focusOn(neighbour(graph, scene.focus < 0 ? state.zoom : scene.focus, direction, ...targetRange));
  } else if (event.key === "Enter" || event.key === " ") {
    if (onButton) return;
    zoomTo(scene.focus >= 0 ? scene.focus : state.zoom);
  } else {
    const centre = scene.focus >= 0 ? (((graph.start[scene.focus] + graph.len[scene.focus] / 2) - scene.low) * picture.width) / (scene.high - scene.low) : picture.width / 2;
    const action = {
      Escape: zoomOut, Backspace: zoomOut, "/": () => { $("query").focus(); $("query").select(); }, "?": () => $("help").showModal(),
      i: () => toggle("inverted"), f: () => toggle("icicle"), l: () => toggle("byLine"),
      w: () => !$("wall").hidden && toggle("wall"), x: () => !$("foreign").hidden && toggle("foreign"),
      k: () => setScheme((state.scheme + 1) % data.schemes.length), t: nextTheme, r: reset, c: copyName, s: saveSvg,
      n: () => focusOn(nextMatch(graph, scene.found, Math.max(0, scene.focus), 1)),
      N: () => focusOn(nextMatch(graph, scene.found, Math.max(0, scene.focus), -1)),
      "+": () => zoomBy(0.7, centre), "=": () => zoomBy(0.7, centre), "-": () => zoomBy(1 / 0.7, centre),
    }[event.key];
    if (!action) return;
    action();
  }
  event.preventDefault();
});
canvas.addEventListener("focus", () => {
  if (scene.focus < 0 && canvas.matches(":focus-visible")) focusOn(state.zoom);
});
$("find").addEventListener("submit", (event) => event.preventDefault());
for (const id of ["query", "regex"]) $(id).addEventListener("input", () => {
  setQuery($("query").value, $("regex").checked);
});
$("view").addEventListener("change", () => {
  Object.assign(state, { view: Number($("view").value), zoom: 0, range: null });
  show({ step: true });
  announce(`${data.views[state.view].label}, ${formatCount(scene.graph.len[0])}`);
});
$("inverted").addEventListener("click", () => toggle("inverted"));
$("icicle").addEventListener("click", () => toggle("icicle"));
$("wall").addEventListener("click", () => toggle("wall"));
$("foreign").addEventListener("click", () => toggle("foreign"));
$("byline").addEventListener("click", () => toggle("byLine"));
$("scheme").addEventListener("change", () => setScheme(Number($("scheme").value)));
$("theme").addEventListener("click", nextTheme);
$("save").addEventListener("click", saveSvg);
$("reset").addEventListener("click", reset);
$("copy").addEventListener("click", copyName);
$("stop").addEventListener("click", cancelPreparing);
$("ask").addEventListener("click", () => $("help").showModal());
main.addEventListener("scroll", redraw);
addEventListener("popstate", () => {
  restoreState(location.hash);
  show();
});
addEventListener("hashchange", () => {
  if (location.hash.slice(1) === stateToHash()) return;
  restoreState(location.hash);
  show();
});
darkSystem.addEventListener("change", showTheme);

// ---- start-up

$("app").hidden = false;
$("title").textContent = $("title").title = data.title;
$("unit").textContent = data.unit;
if (data.difference) {
  [data.now, data.before] = data.views.slice(0, 2).map(({ cpu }) => cpu);
  const labels = data.views.map(({ label }) => label);
  data.views = [{ label: "before and now" }, { label: labels[0] }, { label: labels[1] }];
  [[true, true], [true, false], [false, true]].forEach((shows, number) => { data.views[number].shows = shows; });
}
$("wall").hidden = !data.views.some(({ cpu, asleep }) => cpu && asleep);
let [native, foreign] = [false, false];
for (let frame = 0; frame < frames.count; frame++) {
  if (frames.is(frame, UNKNOWN | ASLEEP)) continue;
  if (frames.is(frame, FOREIGN)) foreign = true;
  else native = true;
}
$("foreign").hidden = !(native && foreign) || Boolean(data.difference);
$("byline").hidden = Boolean(data.difference);
$("scheme").hidden = data.schemes.length < 2;
$("scheme").append(...data.schemes.map((name, number) => new Option(`Colours: ${name}`, String(number))));
data.views.forEach((view, number) => {
  const option = document.createElement("option");
  option.value = String(number);
  option.textContent = view.label;
  $("view").append(option);
});
$("view").hidden = data.views.length < 2;
try {
  theme = ["light", "dark"].find((name) => name === localStorage.getItem("stackglass-theme")) ?? "auto";
} catch { /* Storage is unavailable; follow the system theme. */ }
if (data.views.length) {
  restoreState(location.hash);
  scene.graph = null;
  showTheme();
  show({ instant: true });
} else {
  $("details").textContent = "This page contains no graphs.";
}
