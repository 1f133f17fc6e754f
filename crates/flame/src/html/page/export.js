// Exports the current view as SVG: all rows, with the current zoom, theme and matches.

function xml(text) {
  return text.replace(/[<>&"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

function viewToSvg(picture, scene, title) {
  const { graph, low, high, found } = scene, { colors, width, charWidth } = picture, zoomDepth = graph.depth[scene.zoom];
  const rowParts = [], middle = Math.round(ROW / 2) - 5, top = middle + 1 - ROW, bottom = middle;
  const area = (x, w) => `d="M${x.toFixed(1)} ${bottom}v${1 - ROW}h${w.toFixed(1)}v${ROW - 1}z"`;
  const fading = (opacity) => (opacity < 1 ? ` fill-opacity="${opacity}"` : "");
  // Lines along a box, in the colour of its text.
  const line = (x, w, y, color, opacity, dashes) =>
    `<path class="m" stroke="${color}" stroke-opacity="${opacity.toFixed(2)}" stroke-dasharray="${dashes.join(" ") || "none"}" d="M${x.toFixed(1)} ${y}h${w.toFixed(1)}"/>`;
  let rows = 0;
  for (let row = 0; row < graph.rows; row++) {
    const parts = [], opacity = row < zoomDepth ? AROUND : 1;
    eachInRow(graph, row, low, high, width,
      (node, left, right) => {
        const [x, w] = [Math.max(0, left), Math.min(right, width) - Math.max(0, left)];
        if (w <= 0) return;
        const hit = !found || found.hit[node], strength = hit ? opacity : UNMATCHED, swatch = swatchOf(graph, node, scene.scheme);
        const isAsleep = swatch === ASLEEP_SWATCH, ink = colors.textOn(swatch, strength);
        const text = [fullNameOf(graph, node), ...detailsOf(graph, node)].join("\n");
        parts.push(`<path${fading(strength)} fill="${isAsleep ? "url(#a)" : colors.fills[swatch]}" ${area(x, w)}><title>${xml(text)}</title></path>`);
        if (found && hit) parts.push(`<path class="n" d="M${(x + 1).toFixed(1)} ${bottom - 1}v${3 - ROW}h${Math.max(0.5, w - 2).toFixed(1)}v${ROW - 3}z"/>`);
        const bit = STATUS.findIndex(([bit]) => graph.status[node] & bit);
        if (bit >= 0) parts.push(line(x, w, bottom - 0.75, ink, strength * MARK_STRENGTH, DASHES[bit]));
        if (isPending(graph, node)) parts.push(line(x, w, top + 0.5, colors.text, strength, [2, 2]));
        const name = labelOf(graph, node, Math.floor((w - 6) / charWidth));
        if (!name) return;
        if (isAsleep) parts.push(`<path class="g" fill="${colors.fills[swatch]}" d="M${x.toFixed(1)} ${bottom}v${1 - ROW}h${(name.length * charWidth + 6).toFixed(1)}v${ROW - 1}z"/>`);
        parts.push(`<text x="${(x + 3).toFixed(1)}" fill="${ink}">${xml(name)}</text>`);
      },
      (first, last, left, right) => {
        const count = last - first + 1, hits = found ? found.before[last + 1] - found.before[first] : 0, w = Math.max(1, right - left);
        const strength = !found || hits ? opacity : UNMATCHED;
        parts.push(`<path${fading(strength)} fill="url(#z)" ${area(left, w)}><title>${count === 1 ? "1 box" : `${formatNumber(count)} boxes`} too small to draw</title></path>`);
        // The height of the bar is the proportion of matching boxes.
        if (hits) parts.push(`<path class="g" fill="${colors.found}" d="M${left.toFixed(1)} ${bottom}v${-Math.max(3, ((ROW - 1) * hits) / count).toFixed(1)}h${w.toFixed(1)}V${bottom}z"/>`);
      });
    if (parts.length) rows = row + 1;
    rowParts.push(parts.join(""));
  }
  // The legend, in lines below the boxes.
  let x = 3, lines = 0;
  const legend = legendOf(graph, scene.scheme, isDark()).map(({ text, fill, mark, asleep }) => {
    const needed = 34 + text.length * charWidth;
    if (x > 3 && x + needed > width) [x, lines] = [3, lines + 1];
    const y = rows * ROW + 50 + lines * 18, left = x;
    x += needed;
    const dashes = mark < 0 ? "" : line(left, 18, y, fill === "none" ? colors.text : textColorOn(fill), MARK_STRENGTH, DASHES[mark]);
    return `<path class="k" fill="${asleep ? "url(#a)" : fill}" d="M${left.toFixed(1)} ${y + 2}v-12h18v12z"/>${dashes}<text x="${(left + 23).toFixed(1)}" y="${y}" fill="${colors.text}">${xml(text)}</text>`;
  });
  const height = rows * ROW + 62 + lines * 18;
  const groups = rowParts.slice(0, rows).map((parts, row) => `<g transform="translate(0 ${30 + (scene.icicle ? row + 1 : rows - row) * ROW - bottom})">${parts}</g>`);
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">` +
    `<title>${xml(title)}</title><style>svg{background:${colors.page};font:${BOX_FONT}}` +
    `path{stroke:${colors.page};stroke-width:.6}.n{fill:none;stroke:${colors.found};stroke-width:2}.m{fill:none;stroke-width:1.5}.g{stroke:none}.n,.m,.g{pointer-events:none}` +
    `.k{stroke:${colors.text};stroke-width:.5}text{pointer-events:none;white-space:pre}</style>` +
    `<defs><pattern id="z" width="4" height="4" patternUnits="userSpaceOnUse"><path d="M0 0h4v4h-4z" fill="${colors.hatch[0]}"/><path d="M-1 1l2-2M0 4l4-4M3 5l2-2" style="stroke:${colors.hatch[1]};stroke-width:1"/></pattern>` +
    `<pattern id="a" width="4" height="4" patternUnits="userSpaceOnUse"><path d="M0 0h4v4h-4z" fill="${colors.fills[ASLEEP_SWATCH]}"/><path d="M0 2.5h4" style="stroke:${colors.stripe};stroke-width:1"/></pattern></defs>` +
    `<text x="3" y="18" fill="${colors.text}" style="font:600 14px system-ui,sans-serif">${xml(title)}</text>${groups.join("\n")}${legend.join("")}</svg>\n`;
}

function download(name, type, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
