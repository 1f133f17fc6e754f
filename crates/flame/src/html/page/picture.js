// Draws the visible rows on the canvas, and finds the box at a point.
//
// Consecutive boxes narrower than a pixel (a run) are drawn as one hatched box. The time to draw a row therefore
// depends on its width in pixels, not on its number of boxes.

// The height of a row and the font, which `Picture.scale` sets.
let ROW = 18, BOX_FONT = "11px ui-monospace, Menlo, Consolas, monospace";

// Visits the boxes of a row between `low` and `high` on the cost axis, scaled to `width` pixels, from left to right.
// Calls `box(node, left, right)` for each box and `run(first, last, left, right)` for each run; `first` and `last` are
// indices in `graph.order`.
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
      // Boxes that end within this pixel belong to the run.
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

// Red, green and blue of a colour `#rrggbb` or `#rgb`.
function partsOf(color) {
  const digits = color.length === 4 ? [...color.slice(1)].map((digit) => digit + digit).join("") : color.slice(1);
  return [0, 2, 4].map((at) => parseInt(digits.slice(at, at + 2), 16));
}

// The colour of text on a colour that is drawn this strong on the page: black or white, whichever has more contrast (WCAG 2.1).
// The better one has 4.58 or more on every colour.
function textColorOn(color, page = color, opacity = 1) {
  const [ground, parts] = [partsOf(page), partsOf(color)];
  const [red, green, blue] = parts.map((part, at) => {
    const share = (part * opacity + ground[at] * (1 - opacity)) / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  const luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  return (luminance + 0.05) / 0.05 >= 1.05 / (luminance + 0.05) ? "#000" : "#fff";
}

// How strong boxes are drawn: around the zoomed one, and without a match of the search.
const AROUND = 0.55, UNMATCHED = 0.4;
// How strong the marks of status bits are, in the colour of the text.
const MARK_STRENGTH = 0.6;

// The colours of the light or dark theme.
function themeColors(dark) {
  const fills = data.swatches.map((swatch) => swatch[dark ? 1 : 0]), page = dark ? "#171717" : "#ffffff";
  const textColors = new Map();
  return {
    fills,
    page,
    // The colour of text on a swatch.
    textOn(swatch, opacity = 1) {
      const key = swatch * 100 + Math.round(opacity * 100) - 1;
      if (!textColors.has(key)) textColors.set(key, textColorOn(fills[swatch], page, opacity));
      return textColors.get(key);
    },
    text: dark ? "#ffffff" : "#000000",
    hatch: dark ? ["#242424", "#4d4d4d"] : ["#f2f2f2", "#c4c4c4"],
    hatchMixed: dark ? "#363636" : "#dddddd",
    stripe: dark ? "#46566a" : "#b3c3d4",
    found: dark ? "#ffe14d" : "#0b3cff",
  };
}

// Dash patterns of the status marks, which distinguish them without colour.
const DASHES = [[5, 3], [], [1, 3]];

class Picture {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d", { alpha: false });
  }

  // Rows are higher for fingers and on very wide screens.
  scale(width) {
    const [row, font] = matchMedia("(pointer: coarse)").matches ? [24, 12] : width >= 2400 ? [22, 13] : [18, 11];
    ROW = row;
    BOX_FONT = `${font}px ui-monospace, Menlo, Consolas, monospace`;
  }

  resize(width, height, ratio = window.devicePixelRatio || 1) {
    this.width = width;
    this.height = height;
    const [w, h] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
    if (this.canvas.width !== w || this.canvas.height !== h) Object.assign(this.canvas, { width: w, height: h });
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.context.font = BOX_FONT;
    this.charWidth = this.context.measureText("m".repeat(20)).width / 20;
    this.hatchPattern = null;
  }

  theme(dark) {
    this.colors = themeColors(dark);
    this.hatchPattern = null;
  }

  hatch() {
    if (!this.hatchPattern) {
      const tile = document.createElement("canvas");
      tile.width = tile.height = 4;
      const context = tile.getContext("2d");
      const [background, lines] = this.colors.hatch;
      context.fillStyle = background;
      context.fillRect(0, 0, 4, 4);
      context.strokeStyle = lines;
      context.beginPath();
      for (const [x, y, u, v] of [[-1, 1, 1, -1], [0, 4, 4, 0], [3, 5, 5, 3]]) {
        context.moveTo(x, y);
        context.lineTo(u, v);
      }
      context.stroke();
      this.hatchPattern = this.context.createPattern(tile, "repeat");
    }
    return this.hatchPattern;
  }

  // The y coordinate of the top of a row.
  rowTop(scene, row) {
    return (scene.icicle ? row : scene.graph.rows - 1 - row) * ROW - scene.scroll + scene.top;
  }

  // The row at a y coordinate; it may be out of range.
  rowAt(scene, y) {
    const line = Math.floor((y + scene.scroll - scene.top) / ROW);
    return scene.icicle ? line : scene.graph.rows - 1 - line;
  }

  // Draws a scene (see view.js).
  draw(scene) {
    const { context, width, height, colors } = this, { graph, low, high, found } = scene;
    this.scheme = scene.scheme;
    context.globalAlpha = 1;
    context.fillStyle = colors.page;
    context.fillRect(0, 0, width, height);
    context.textBaseline = "middle";
    const [topRow, bottomRow] = [this.rowAt(scene, 0), this.rowAt(scene, height - 1)];
    const from = Math.max(0, Math.min(topRow, bottomRow)), to = Math.min(graph.rows - 1, Math.max(topRow, bottomRow));
    const zoomDepth = graph.depth[scene.zoom];
    for (let row = from; row <= to; row++) {
      const y = this.rowTop(scene, row);
      const opacity = row < zoomDepth ? AROUND : 1;
      eachInRow(graph, row, low, high, width,
        (node, left, right) => {
          const hit = !found || found.hit[node];
          context.globalAlpha = hit ? opacity : UNMATCHED;
          this.box(graph, node, left, right, y, found && hit);
        },
        (first, last, left, right) => {
          const hits = found ? found.before[last + 1] - found.before[first] : 0;
          context.globalAlpha = !found || hits ? opacity : UNMATCHED;
          // Hatching is slow, and not visible where it is narrow.
          context.fillStyle = right - left < 4 ? colors.hatchMixed : this.hatch();
          context.fillRect(left, y, Math.max(1, right - left - 0.5), ROW - 1);
          if (!hits) return;
          // The height of the bar is the proportion of matching boxes.
          const barHeight = Math.max(3, ((ROW - 1) * hits) / (last + 1 - first));
          context.fillStyle = colors.found;
          context.fillRect(left, y + ROW - 1 - barHeight, Math.max(1, right - left - 0.5), barHeight);
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
    const { context, colors } = this, swatch = swatchOf(graph, node, this.scheme), opacity = context.globalAlpha;
    const ink = colors.textOn(swatch, opacity);
    const width = right - left - (right - left > 3 ? 0.7 : 0.2);
    context.fillStyle = colors.fills[swatch];
    context.fillRect(left, y, width, ROW - 1);
    if (swatch === ASLEEP_SWATCH) {
      context.fillStyle = colors.stripe;
      for (let line = 3; line < ROW - 1; line += 4) context.fillRect(left, y + line, width, 1);
    }
    if (found) {
      context.strokeStyle = colors.found;
      context.lineWidth = 2;
      context.strokeRect(left + 1, y + 1, Math.max(0.5, width - 2), ROW - 3);
    }
    const bit = STATUS.findIndex(([bit]) => graph.status[node] & bit);
    if (bit >= 0) {
      context.globalAlpha = opacity * MARK_STRENGTH;
      this.line(left, width, y + ROW - 1.75, ink, DASHES[bit]);
      context.globalAlpha = opacity;
    }
    if (isPending(graph, node)) this.line(left, width, y + 0.5, colors.text, [2, 2]);
    // A box that extends beyond the left edge has its label at the edge.
    const visible = left + width - Math.max(left, 0), columns = Math.floor((visible - 6) / this.charWidth);
    const text = columns < 3 ? "" : labelOf(graph, node, columns);
    if (text) {
      if (swatch === ASLEEP_SWATCH) {
        context.fillStyle = colors.fills[swatch];
        context.fillRect(Math.max(left, 0), y, text.length * this.charWidth + 6, ROW - 1);
      }
      // Weak boxes have readable text, too.
      context.globalAlpha = 1;
      context.fillStyle = ink;
      // A limit of the width is slow, and needed only for letters that may be wide.
      if (/^[\x20-\x7e…]*$/.test(text)) context.fillText(text, Math.max(left, 0) + 3, y + ROW / 2);
      else context.fillText(text, Math.max(left, 0) + 3, y + ROW / 2, visible - 4);
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

  outline(scene, node, lineWidth) {
    const { graph, low, high } = scene, scale = this.width / (high - low);
    const left = Math.max(0, (graph.start[node] - low) * scale);
    const right = Math.min(this.width, (graph.start[node] + graph.len[node] - low) * scale);
    if (right < 0 || left > this.width) return;
    this.context.strokeStyle = this.colors.text;
    this.context.lineWidth = lineWidth;
    this.context.strokeRect(left + lineWidth / 2, this.rowTop(scene, graph.depth[node]) + lineWidth / 2, Math.max(2, right - left - lineWidth), ROW - 1 - lineWidth);
  }

  // Finds the box or run at a point: `{ node }`, `{ first, last }` (indices in `order`) or null.
  boxAt(scene, x, y) {
    const row = this.rowAt(scene, y), { graph, low, high } = scene;
    if (row < 0 || row >= graph.rows || y < 0) return null;
    const scale = this.width / (high - low);
    let result = null;
    const index = firstEndingAfter(graph, row, low + x / scale);
    const node = graph.order[index];
    if (index < graph.row[row + 1] && graph.start[node] <= low + x / scale && graph.len[node] * scale >= 1) return { node };
    eachInRow(graph, row, low, high, this.width, () => {}, (first, last, left, right) => {
      if (x >= left - 1 && x <= right + 1) result = { first, last };
    });
    return result;
  }
}
