// Exports the current view as SVG: all rows, with the current zoom, theme and matches.

function xml(text) {
  return text.replace(/[<>&"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

function viewToSvg(picture, scene, title) {
  const { graph, low, high, found } = scene, { colors, width, charWidth } = picture;
  const rowParts = [];
  let rows = 0;
  for (let row = 0; row < graph.rows; row++) {
    const parts = [];
    eachInRow(graph, row, low, high, width,
      (node, left, right) => {
        const [x, w] = [Math.max(0, left), Math.min(right, width) - Math.max(0, left)];
        if (w <= 0) return;
        const faded = found && !found.hit[node] ? " class=\"f\"" : "", swatch = swatchOf(graph, node, scene.scheme);
        const text = [fullNameOf(graph, node), ...detailsOf(graph, node)].join("\n");
        parts.push(`<path${faded} fill="${swatch === ASLEEP_SWATCH ? "url(#a)" : colors.fills[swatch]}" d="M${x.toFixed(1)} 4v-17h${w.toFixed(1)}v17z"><title>${xml(text)}</title></path>`);
        const name = labelOf(graph, node, Math.floor((w - 6) / charWidth));
        if (name) parts.push(`<text x="${(x + 3).toFixed(1)}" fill="${colors.textColors[swatch]}">${xml(name)}</text>`);
        if (found && found.hit[node]) parts.push(`<path class="n" stroke="${colors.found}" d="M${(x + 1).toFixed(1)} 3v-15h${Math.max(0.5, w - 2).toFixed(1)}v15z"/>`);
        const bit = STATUS.findIndex(([bit]) => graph.status[node] & bit);
        if (bit >= 0) parts.push(`<path stroke="${colors.marks[bit]}" stroke-width="2" stroke-dasharray="${DASHES[bit].join(" ") || "none"}" d="M${x.toFixed(1)} 2.5h${w.toFixed(1)}"/>`);
      },
      (first, last, left, right) => {
        const count = last - first + 1;
        parts.push(`<path fill="url(#z)" d="M${left.toFixed(1)} 4v-17h${(right - left).toFixed(1)}v17z"><title>${count} boxes too small to draw</title></path>`);
      });
    if (parts.length) rows = row + 1;
    rowParts.push(parts.join(""));
  }
  // The legend, in lines below the boxes.
  let x = 3, line = 0;
  const legend = legendOf(graph, scene.scheme, isDark()).map(({ text, fill, mark, asleep }) => {
    const needed = 34 + text.length * charWidth;
    if (x > 3 && x + needed > width) [x, line] = [3, line + 1];
    const y = rows * ROW + 50 + line * ROW, left = x;
    x += needed;
    const dashes = mark < 0 ? "" : `<path stroke="${colors.marks[mark]}" stroke-width="2" stroke-dasharray="${DASHES[mark].join(" ") || "none"}" d="M${left.toFixed(1)} ${y}h18"/>`;
    return `<path class="k" fill="${asleep ? "url(#a)" : fill}" d="M${left.toFixed(1)} ${y + 2}v-12h18v12z"/>${dashes}<text x="${(left + 23).toFixed(1)}" y="${y}" fill="${colors.text}">${xml(text)}</text>`;
  });
  const height = rows * ROW + 62 + line * ROW;
  const lines = rowParts.slice(0, rows).map((parts, row) => {
    const y = 30 + (scene.icicle ? row + 1 : rows - row) * ROW - 4;
    return `<g transform="translate(0 ${y})">${parts}</g>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">` +
    `<title>${xml(title)}</title><style>svg{background:${colors.page};font:${BOX_FONT}}.f{opacity:.3}` +
    `path{stroke:${colors.page};stroke-width:.6}.n{fill:none;stroke:${colors.found};stroke-width:2}.k{stroke:${colors.text};stroke-width:.5}text{pointer-events:none}</style>` +
    `<defs><pattern id="z" width="4" height="4" patternUnits="userSpaceOnUse"><path d="M0 0h4v4h-4z" fill="${colors.hatch[0]}"/><path d="M-1 1l2-2M0 4l4-4M3 5l2-2" style="stroke:${colors.hatch[1]};stroke-width:1"/></pattern>` +
    `<pattern id="a" width="4" height="4" patternUnits="userSpaceOnUse"><path d="M0 0h4v4h-4z" fill="${colors.fills[ASLEEP_SWATCH]}"/><path d="M0 2.5h4" style="stroke:${colors.stripe};stroke-width:1"/></pattern></defs>` +
    `<text x="3" y="18" fill="${colors.text}" style="font:600 14px system-ui,sans-serif">${xml(title)}</text>${lines.join("\n")}${legend.join("")}</svg>\n`;
}

function download(name, type, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
