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
        const faded = found && !found.hit[node] ? " class=\"f\"" : "", swatch = graph.swatch[node];
        const text = [fullNameOf(graph, node), ...detailsOf(graph, node)].join("\n");
        parts.push(`<path${faded} fill="${colors.fills[swatch]}" d="M${x.toFixed(1)} 4v-17h${w.toFixed(1)}v17z"><title>${xml(text)}</title></path>`);
        const name = shortenName(nameOf(graph, node), Math.floor((w - 6) / charWidth));
        if (name) parts.push(`<text x="${(x + 3).toFixed(1)}" fill="${colors.textColors[swatch]}">${xml(name)}</text>`);
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
  const height = rows * ROW + 40;
  const lines = rowParts.slice(0, rows).map((parts, row) => {
    const y = 30 + (scene.icicle ? row + 1 : rows - row) * ROW - 4;
    return `<g transform="translate(0 ${y})">${parts}</g>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">` +
    `<title>${xml(title)}</title><style>svg{background:${colors.page};font:${BOX_FONT}}.f{opacity:.3}` +
    `path{stroke:${colors.page};stroke-width:.6}text{pointer-events:none}</style>` +
    `<defs><pattern id="z" width="4" height="4" patternUnits="userSpaceOnUse"><path d="M0 0h4v4h-4z" fill="${colors.hatch[0]}"/><path d="M-1 1l2-2M0 4l4-4M3 5l2-2" style="stroke:${colors.hatch[1]};stroke-width:1"/></pattern></defs>` +
    `<text x="3" y="18" fill="${colors.text}" style="font:600 14px system-ui,sans-serif">${xml(title)}</text>${lines.join("\n")}</svg>\n`;
}

function download(name, type, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
