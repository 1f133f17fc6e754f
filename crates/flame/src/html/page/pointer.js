// Pointer input: hover shows a tooltip, a click zooms, a drag pans or selects a range, and the wheel scrolls or zooms.

// Shows a tooltip for what `picture.boxAt` found, or hides it if `hit` is null.
function showTooltip(event, hit) {
  const tip = $("tip"), { graph } = scene;
  if (!hit) {
    tip.hidden = true;
    return;
  }
  const name = document.createElement("b");
  let lines;
  if (hit.node !== undefined) {
    name.textContent = fullNameOf(graph, hit.node).slice(0, 1000);
    lines = detailsOf(graph, hit.node);
  } else {
    let samples = 0;
    for (let at = hit.first; at <= hit.last; at++) samples += graph.len[graph.order[at]];
    const count = hit.last - hit.first + 1;
    name.textContent = count === 1 ? nameOf(graph, graph.order[hit.first]).slice(0, 1000) : `${formatNumber(count)} boxes too small to draw`;
    lines = [`${formatCount(samples)}, ${formatPercent(samples, graph.len[0])} of all`, "click to zoom in"];
  }
  tip.replaceChildren(name, `\n${lines.join("\n")}`);
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  const x = Math.min(event.clientX + 14, innerWidth - width - 6);
  const y = event.clientY + 18 + height > innerHeight ? event.clientY - height - 12 : event.clientY + 18;
  tip.style.left = `${Math.max(4, x)}px`;
  tip.style.top = `${Math.max(4, y)}px`;
}

// The position of the pointer on the canvas.
function pointerPosition(event) {
  const rect = canvas.getBoundingClientRect();
  return [event.clientX - rect.left, event.clientY - rect.top];
}

let drag = null;
canvas.addEventListener("pointerdown", (event) => {
  if (event.button) return;
  const [x, y] = pointerPosition(event);
  drag = { x, y, low: scene.low, high: scene.high, select: event.ctrlKey || event.metaKey || event.shiftKey, moved: false };
});
addEventListener("pointermove", (event) => {
  const [x, y] = pointerPosition(event);
  if (drag) {
    if (!drag.moved && Math.abs(x - drag.x) < 5) return;
    if (!drag.moved) canvas.setPointerCapture(event.pointerId);
    drag.moved = true;
    showTooltip(event, null);
    if (drag.select) {
      scene.selection = [Math.min(x, drag.x), Math.max(x, drag.x)];
      redraw();
    } else {
      const shift = ((drag.x - x) * (drag.high - drag.low)) / picture.width;
      zoomToRange(drag.low + shift, drag.high + shift);
    }
    return;
  }
  const hit = event.target === canvas ? picture.boxAt(scene, x, y) : null, hover = hit?.node ?? -1;
  if (hover !== scene.hover) {
    scene.hover = hover;
    redraw();
  }
  if (event.pointerType !== "touch") showTooltip(event, hit);
  canvas.style.cursor = hit ? "pointer" : "default";
});
addEventListener("pointerup", (event) => {
  if (!drag) return;
  const [x, y] = pointerPosition(event), ended = drag;
  drag = null;
  if (ended.moved) {
    const selection = scene.selection, scale = (scene.high - scene.low) / picture.width;
    scene.selection = null;
    if (selection) zoomToRange(scene.low + selection[0] * scale, scene.low + selection[1] * scale);
    redraw();
    return;
  }
  const hit = picture.boxAt(scene, x, y), { graph } = scene;
  showTooltip(event, null);
  if (hit?.node !== undefined) {
    if (event.ctrlKey || event.metaKey || event.shiftKey) focusOn(hit.node);
    else {
      scene.focus = hit.node;
      zoomTo(hit.node);
    }
  } else if (hit) {
    const [first, last] = [graph.order[hit.first], graph.order[hit.last]];
    zoomToRange(graph.start[first], graph.start[last] + graph.len[last]);
  }
});
addEventListener("pointercancel", () => {
  drag = null;
  scene.selection = null;
});
canvas.addEventListener("pointerleave", (event) => {
  scene.hover = -1;
  showTooltip(event, null);
  redraw();
});
canvas.addEventListener("dblclick", (event) => {
  if (event.ctrlKey || !picture.boxAt(scene, ...pointerPosition(event))) reset();
});
canvas.addEventListener("wheel", (event) => {
  if (event.ctrlKey) {
    event.preventDefault();
    zoomBy(Math.exp(Math.max(-1, Math.min(1, event.deltaY / 240))), pointerPosition(event)[0]);
  } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
    event.preventDefault();
    const shift = ((event.deltaX || event.deltaY) * (scene.high - scene.low)) / picture.width;
    zoomToRange(scene.low + shift, scene.high + shift);
  }
}, { passive: false });
