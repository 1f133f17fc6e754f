// What the pointer does: hovering tells, a click zooms, dragging moves or selects, the wheel scrolls or zooms.

function showTip(event, what) {
  const tip = $("tip"), { graph } = scene;
  if (!what) {
    tip.hidden = true;
    return;
  }
  const name = document.createElement("b");
  let lines;
  if (what.node !== undefined) {
    name.textContent = fullNameOf(graph, what.node).slice(0, 1000);
    lines = linesOf(graph, what.node);
  } else {
    let samples = 0;
    for (let at = what.first; at <= what.last; at++) samples += graph.len[graph.order[at]];
    const count = what.last - what.first + 1;
    name.textContent = count === 1 ? nameOf(graph, graph.order[what.first]).slice(0, 1000) : `${thousands(count)} boxes too small to draw`;
    lines = [`${counted(samples)}, ${percent(samples, graph.len[0])} of all`, "click to zoom in"];
  }
  tip.replaceChildren(name, `\n${lines.join("\n")}`);
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  const x = Math.min(event.clientX + 14, innerWidth - width - 6);
  const y = event.clientY + 18 + height > innerHeight ? event.clientY - height - 12 : event.clientY + 18;
  tip.style.left = `${Math.max(4, x)}px`;
  tip.style.top = `${Math.max(4, y)}px`;
}

function pointed(event) {
  const place = canvas.getBoundingClientRect();
  return [event.clientX - place.left, event.clientY - place.top];
}

let drag = null;
canvas.addEventListener("pointerdown", (event) => {
  if (event.button) return;
  const [x, y] = pointed(event);
  drag = { x, y, low: scene.low, high: scene.high, select: event.ctrlKey || event.metaKey || event.shiftKey, moved: false };
});
addEventListener("pointermove", (event) => {
  const [x, y] = pointed(event);
  if (drag) {
    if (!drag.moved && Math.abs(x - drag.x) < 5) return;
    if (!drag.moved) canvas.setPointerCapture(event.pointerId);
    drag.moved = true;
    showTip(event, null);
    if (drag.select) {
      scene.selection = [Math.min(x, drag.x), Math.max(x, drag.x)];
      redraw();
    } else {
      const by = ((drag.x - x) * (drag.high - drag.low)) / picture.width;
      zoomToRange(drag.low + by, drag.high + by);
    }
    return;
  }
  const what = event.target === canvas ? picture.at(scene, x, y) : null, hover = what?.node ?? -1;
  if (hover !== scene.hover) {
    scene.hover = hover;
    redraw();
  }
  if (event.pointerType !== "touch") showTip(event, what);
  canvas.style.cursor = what ? "pointer" : "default";
});
addEventListener("pointerup", (event) => {
  if (!drag) return;
  const [x, y] = pointed(event), was = drag;
  drag = null;
  if (was.moved) {
    const selection = scene.selection, scale = (scene.high - scene.low) / picture.width;
    scene.selection = null;
    if (selection) zoomToRange(scene.low + selection[0] * scale, scene.low + selection[1] * scale);
    redraw();
    return;
  }
  const what = picture.at(scene, x, y), { graph } = scene;
  showTip(event, null);
  if (what?.node !== undefined) {
    if (event.ctrlKey || event.metaKey || event.shiftKey) focusOn(what.node);
    else {
      scene.focus = what.node;
      zoomTo(what.node);
    }
  } else if (what) {
    const [first, last] = [graph.order[what.first], graph.order[what.last]];
    zoomToRange(graph.start[first], graph.start[last] + graph.len[last]);
  }
});
addEventListener("pointercancel", () => {
  drag = null;
  scene.selection = null;
});
canvas.addEventListener("pointerleave", (event) => {
  scene.hover = -1;
  showTip(event, null);
  redraw();
});
canvas.addEventListener("dblclick", (event) => {
  if (event.ctrlKey || !picture.at(scene, ...pointed(event))) reset();
});
canvas.addEventListener("wheel", (event) => {
  if (event.ctrlKey) {
    event.preventDefault();
    zoomBy(Math.exp(Math.max(-1, Math.min(1, event.deltaY / 240))), pointed(event)[0]);
  } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
    event.preventDefault();
    const by = ((event.deltaX || event.deltaY) * (scene.high - scene.low)) / picture.width;
    zoomToRange(scene.low + by, scene.high + by);
  }
}, { passive: false });
