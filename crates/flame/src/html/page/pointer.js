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

function hideTooltip() {
  pointedAt = null;
  $("tip").hidden = true;
}

// Where the pointer is, while the tooltip is shown.
let pointedAt = null;

// Hides the tooltip, or shows what is under the pointer now. Called whenever the picture changes.
function updateTooltip() {
  if (!pointedAt) return;
  const hit = picture.boxAt(scene, ...pointerPosition(pointedAt)), hover = hit?.node ?? -1;
  if (hover !== scene.hover) {
    scene.hover = hover;
    redraw();
  }
  showTooltip(pointedAt, hit);
}

// The position of the pointer on the canvas.
function pointerPosition(event) {
  const rect = canvas.getBoundingClientRect();
  return [event.clientX - rect.left, event.clientY - rect.top];
}

// The fingers on the canvas, and a pinch of two of them: their distance, and the position between them on the cost axis.
const fingers = new Map();
let pinch = null;

function startPinch() {
  const [[x, y], [u, v]] = fingers.values();
  drag = null;
  pinch = { distance: Math.max(20, Math.hypot(u - x, v - y)), size: scene.high - scene.low, at: scene.low + ((scene.high - scene.low) * (x + u)) / 2 / picture.width };
}

function movePinch() {
  const [[x, y], [u, v]] = fingers.values(), size = (pinch.size * pinch.distance) / Math.max(20, Math.hypot(u - x, v - y));
  const low = pinch.at - (size * (x + u)) / 2 / picture.width;
  zoomToRange(low, low + size);
}

function liftFinger(event) {
  fingers.delete(event.pointerId);
  if (fingers.size < 2) pinch = null;
}

let drag = null;
canvas.addEventListener("pointerdown", (event) => {
  if (event.button || isPreparing()) return;
  const [x, y] = pointerPosition(event);
  if (event.pointerType === "touch") {
    fingers.set(event.pointerId, [x, y]);
    if (fingers.size === 2) startPinch();
    if (fingers.size > 1) return;
  }
  drag = { x, y, low: scene.low, high: scene.high, select: event.ctrlKey || event.metaKey || event.shiftKey, moved: false };
});
addEventListener("pointermove", (event) => {
  const [x, y] = pointerPosition(event);
  if (fingers.has(event.pointerId)) {
    fingers.set(event.pointerId, [x, y]);
    if (pinch) return movePinch();
  }
  if (drag) {
    if (!drag.moved && Math.abs(x - drag.x) < 5) return;
    if (!drag.moved) canvas.setPointerCapture(event.pointerId);
    drag.moved = true;
    hideTooltip();
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
  if (event.pointerType !== "touch") {
    pointedAt = event.target === canvas ? { clientX: event.clientX, clientY: event.clientY } : null;
    showTooltip(event, hit);
  }
  canvas.style.cursor = hit ? "pointer" : "default";
});
addEventListener("pointerup", (event) => {
  liftFinger(event);
  if (!drag) return;
  const [x, y] = pointerPosition(event), ended = drag;
  drag = null;
  if (ended.moved) {
    const selection = scene.selection, scale = (scene.high - scene.low) / picture.width;
    scene.selection = null;
    if (selection) zoomToRange(scene.low + selection[0] * scale, scene.low + selection[1] * scale, true);
    redraw();
    return;
  }
  const hit = picture.boxAt(scene, x, y), { graph } = scene;
  hideTooltip();
  if (hit?.node !== undefined) {
    if (event.ctrlKey || event.metaKey || event.shiftKey) focusOn(hit.node);
    else {
      scene.focus = hit.node;
      zoomTo(hit.node);
    }
  } else if (hit) zoomIntoRun(hit, x);
});
// Zooms about the pointer until the box under it is wide enough to be read.
function zoomIntoRun({ first, last }, x) {
  const { graph, low, high } = scene, position = low + ((high - low) * x) / picture.width;
  const node = graph.order[Math.min(last, Math.max(first, firstEndingAfter(graph, graph.depth[graph.order[first]], position, first)))];
  const size = Math.min((high - low) / 8, Math.max((graph.len[node] * picture.width) / 60, (high - low) / 4000));
  zoomToRange(position - (size * x) / picture.width, position + size * (1 - x / picture.width), true);
}
addEventListener("pointercancel", (event) => {
  liftFinger(event);
  drag = null;
  scene.selection = null;
});
canvas.addEventListener("pointerleave", (event) => {
  scene.hover = -1;
  hideTooltip();
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
