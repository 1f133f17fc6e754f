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
      i: () => toggle("inverted"), f: () => toggle("icicle"), t: nextTheme, r: reset, c: copyName, s: saveSvg,
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
  announce($("found").textContent);
});
$("view").addEventListener("change", () => {
  Object.assign(state, { view: Number($("view").value), zoom: 0, range: null, expanded: [] });
  show({ step: true });
  announce(`${data.views[state.view].label}, ${formatCount(scene.graph.len[0])}`);
});
$("inverted").addEventListener("click", () => toggle("inverted"));
$("icicle").addEventListener("click", () => toggle("icicle"));
$("theme").addEventListener("click", nextTheme);
$("save").addEventListener("click", saveSvg);
$("reset").addEventListener("click", reset);
$("copy").addEventListener("click", copyName);
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
  new ResizeObserver(layout).observe(main);
  picture.draw(scene);
  performance.mark("stackglass-open");
} else {
  $("details").textContent = "This page contains no graphs.";
}
