// The picture: boxes of the rows on the screen, drawn from their spans.
//
// Boxes under a pixel are merged, visibly: a run of them is one hatched box. A row costs as much as it has pixels,
// however many boxes are in it.

const ROW = 18, LETTER_FONT = "11px ui-monospace, Menlo, Consolas, monospace";

// Calls `box(node, left, right)` and `run(first, last, left, right)` (places in `graph.order`) for what a row
// shows of the cost axis from `low` to `high`, in so many pixels.
function eachInRow(graph, row, low, high, width, box, run) {
  const scale = width / (high - low), end = graph.row[row + 1];
  let at = firstEndingAfter(graph, row, low);
  while (at < end) {
    const node = graph.order[at], start = graph.start[node];
    if (start >= high) return;
    const left = (start - low) * scale, right = (start + graph.len[node] - low) * scale;
    if (right - left >= 1) {
      box(node, Math.max(left, -1), Math.min(right, width + 1));
      at++;
      continue;
    }
    const first = at;
    let until = right;
    for (;;) {
      // All that ends within this pixel belongs to the run.
      at = Math.max(at + 1, firstEndingAfter(graph, row, low + (Math.floor(until) + 1) / scale, at));
      if (at >= end) break;
      const next = graph.order[at], from = (graph.start[next] - low) * scale;
      const last = graph.order[at - 1];
      until = Math.max(until, (graph.start[last] + graph.len[last] - low) * scale);
      if (graph.len[next] * scale >= 1 || from > until + 1) break;
      until = Math.max(until, from + graph.len[next] * scale);
    }
    const last = graph.order[at - 1];
    until = Math.max(until, (graph.start[last] + graph.len[last] - low) * scale);
    run(first, at - 1, left, Math.min(Math.max(until, left + 1), width));
  }
}

// Colours of the theme that is shown.
function themeColors(dark) {
  const ink = (color) => {
    const part = (at) => parseInt(color.length === 4 ? color[1 + at] + color[1 + at] : color.slice(1 + 2 * at, 3 + 2 * at), 16);
    return 299 * part(0) + 587 * part(1) + 114 * part(2) > 140_000 ? "#000" : "#fff";
  };
  const fills = data.swatches.map((swatch) => swatch[dark ? 1 : 0]);
  return {
    fills,
    inks: fills.map(ink),
    page: dark ? "#171717" : "#ffffff",
    text: dark ? "#ffffff" : "#000000",
    hatch: dark ? ["#242424", "#4d4d4d"] : ["#f2f2f2", "#c4c4c4"],
    found: dark ? "#ffe14d" : "#0b3cff",
    marks: dark ? ["#ff9c9c", "#e8b3f5", "#bbbbbb"] : ["#a00016", "#6a1b7c", "#555555"],
  };
}

// Dashes of the marks of status bits, which are told without colours.
const DASHES = [[5, 3], [], [1, 3]];

class Picture {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d", { alpha: false });
  }

  resize(width, height) {
    const ratio = window.devicePixelRatio || 1;
    this.width = width;
    this.height = height;
    const [w, h] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
    if (this.canvas.width !== w || this.canvas.height !== h) Object.assign(this.canvas, { width: w, height: h });
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.context.font = LETTER_FONT;
    this.letter = this.context.measureText("m".repeat(20)).width / 20;
    this.hatching = null;
  }

  theme(dark) {
    this.colors = themeColors(dark);
    this.hatching = null;
  }

  hatch() {
    if (!this.hatching) {
      const tile = document.createElement("canvas");
      tile.width = tile.height = 4;
      const context = tile.getContext("2d");
      const [ground, lines] = this.colors.hatch;
      context.fillStyle = ground;
      context.fillRect(0, 0, 4, 4);
      context.strokeStyle = lines;
      context.beginPath();
      for (const [x, y, u, v] of [[-1, 1, 1, -1], [0, 4, 4, 0], [3, 5, 5, 3]]) {
        context.moveTo(x, y);
        context.lineTo(u, v);
      }
      context.stroke();
      this.hatching = this.context.createPattern(tile, "repeat");
    }
    return this.hatching;
  }

  // Top of a row on the screen.
  y(scene, row) {
    return (scene.icicle ? row : scene.graph.rows - 1 - row) * ROW - scene.scroll + scene.top;
  }

  row(scene, y) {
    const line = Math.floor((y + scene.scroll - scene.top) / ROW);
    return scene.icicle ? line : scene.graph.rows - 1 - line;
  }

  // Draws a scene: graph, low and high end of the cost axis, icicle, scroll, top, zoom, found, focus, hover.
  draw(scene) {
    const { context, width, height, colors } = this, { graph, low, high, found } = scene;
    context.globalAlpha = 1;
    context.fillStyle = colors.page;
    context.fillRect(0, 0, width, height);
    context.textBaseline = "middle";
    const [one, other] = [this.row(scene, 0), this.row(scene, height - 1)];
    const from = Math.max(0, Math.min(one, other)), to = Math.min(graph.rows - 1, Math.max(one, other));
    const zoomDepth = graph.depth[scene.zoom];
    for (let row = from; row <= to; row++) {
      const y = this.y(scene, row);
      const aside = row < zoomDepth ? 0.55 : 1;
      eachInRow(graph, row, low, high, width,
        (node, left, right) => {
          const hit = !found || found.hit[node];
          context.globalAlpha = hit ? aside : 0.4;
          this.box(graph, node, left, right, y, found && hit);
        },
        (first, last, left, right) => {
          const hits = found ? found.before[last + 1] - found.before[first] : 0;
          context.globalAlpha = !found || hits ? aside : 0.4;
          context.fillStyle = this.hatch();
          context.fillRect(left, y, Math.max(1, right - left - 0.5), ROW - 1);
          if (!hits) return;
          // As high as the share of them that match.
          const high = Math.max(3, ((ROW - 1) * hits) / (last + 1 - first));
          context.fillStyle = colors.found;
          context.fillRect(left, y + ROW - 1 - high, Math.max(1, right - left - 0.5), high);
        });
    }
    context.globalAlpha = 1;
    if (scene.hover > 0) this.outline(scene, scene.hover, 1);
    if (scene.focus >= 0) this.outline(scene, scene.focus, 2);
    if (scene.selection) {
      context.fillStyle = colors.found;
      context.globalAlpha = 0.25;
      context.fillRect(scene.selection[0], 0, scene.selection[1] - scene.selection[0], height);
      context.globalAlpha = 1;
    }
  }

  box(graph, node, left, right, y, found) {
    const { context, colors } = this, swatch = graph.swatch[node];
    const width = right - left - (right - left > 3 ? 0.7 : 0.2);
    context.fillStyle = colors.fills[swatch];
    context.fillRect(left, y, width, ROW - 1);
    if (found) {
      context.strokeStyle = colors.found;
      context.lineWidth = 2;
      context.strokeRect(left + 1, y + 1, Math.max(0.5, width - 2), ROW - 3);
    }
    const bit = STATUS.findIndex(([bit]) => graph.status[node] & bit);
    if (bit >= 0) this.line(left, width, y + ROW - 1.75, colors.marks[bit], DASHES[bit]);
    if (graph.pending?.has(node)) this.line(left, width, y + 0.5, colors.text, [2, 2]);
    const text = label(nameOf(graph, node), Math.floor((width - 6) / this.letter));
    if (text) {
      context.fillStyle = colors.inks[swatch];
      context.fillText(text, Math.max(left, 0) + 3, y + ROW / 2, width - 4);
    }
  }

  line(left, width, y, color, dashes) {
    const { context } = this;
    context.strokeStyle = color;
    context.lineWidth = 1.5;
    context.setLineDash(dashes);
    context.beginPath();
    context.moveTo(left, y);
    context.lineTo(left + width, y);
    context.stroke();
    context.setLineDash([]);
  }

  outline(scene, node, thick) {
    const { graph, low, high } = scene, scale = this.width / (high - low);
    const left = Math.max(0, (graph.start[node] - low) * scale);
    const right = Math.min(this.width, (graph.start[node] + graph.len[node] - low) * scale);
    if (right < 0 || left > this.width) return;
    this.context.strokeStyle = this.colors.text;
    this.context.lineWidth = thick;
    this.context.strokeRect(left + thick / 2, this.y(scene, graph.depth[node]) + thick / 2, Math.max(2, right - left - thick), ROW - 1 - thick);
  }

  // What is at a point: `{ node }`, `{ first, last }` of a run, or nothing.
  at(scene, x, y) {
    const row = this.row(scene, y), { graph, low, high } = scene;
    if (row < 0 || row >= graph.rows || y < 0) return null;
    const scale = this.width / (high - low);
    let result = null;
    const place = firstEndingAfter(graph, row, low + x / scale);
    const node = graph.order[place];
    if (place < graph.row[row + 1] && graph.start[node] <= low + x / scale && graph.len[node] * scale >= 1) return { node };
    eachInRow(graph, row, low, high, this.width, () => {}, (first, last, left, right) => {
      if (x >= left - 1 && x <= right + 1) result = { first, last };
    });
    return result;
  }
}
