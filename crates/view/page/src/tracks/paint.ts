// The picture of a lane as pixels. Pure: it is painted once, and then only copied while lanes scroll.

// How a column of bins looks: a colour (0xAABBGGRR, as pixels lie in memory), and for some a second one in a texture.
export interface Look { color: number; second?: number; texture?: Texture }
export type Texture = "stripes" | "lines" | "dots" | "bars";

export interface Looks {
  // By category, then ready, then asleep by what it waits in.
  stacked: Look[];
  lit: number;
}

// Textures repeat each `6 * unit` pixels at most.
function isSecond(texture: Texture, x: number, y: number, unit: number): boolean {
  const [column, row] = [Math.floor(x / unit), Math.floor(y / unit)];
  switch (texture) {
    case "stripes": return (column + row) % 6 < 2;
    case "lines": return row % 4 === 0;
    case "dots": return column % 5 === 0 && row % 5 === 0;
    case "bars": return column % 4 === 0;
  }
}

// Paints `parts` columns of pixels, `height` high. `scale`: what fills the height, ns. The rows have `width` numbers each; after the
// stacked ones come the lit time, running and not.
export function paint(rows: Float32Array, width: number, parts: number, height: number, scale: number, looks: Looks, unit: number): Uint32Array {
  const pixels = new Uint32Array(parts * height);
  const stacked = looks.stacked.length;
  for (let part = 0; part < parts; part++) {
    const row = part * width;
    let sum = 0, filled = 0;
    for (let column = 0; column < stacked; column++) {
      const value = rows[row + column];
      if (value <= 0) continue;
      sum += value;
      // What is there shows as at least one pixel, if there is room.
      const reached = Math.min(height, Math.max(Math.round((sum / scale) * height), filled + 1));
      const { color, second, texture } = looks.stacked[column];
      for (let y = filled; y < reached; y++) {
        const at = (height - 1 - y) * parts + part;
        pixels[at] = texture && isSecond(texture, part, height - 1 - y, unit) ? second! : color;
      }
      filled = reached;
    }
    const lit = rows[row + stacked], waiting = rows[row + stacked + 1];
    const bar = lit > 0 ? Math.min(height, Math.max(1, Math.round((lit / scale) * height))) : 0;
    for (let y = 0; y < bar; y++) pixels[(height - 1 - y) * parts + part] = looks.lit;
    // Time off the CPU with the lit function on the stack: from the top, every other row.
    const hanging = waiting > 0 ? Math.min(height - bar, Math.max(1, Math.round((waiting / scale) * height))) : 0;
    for (let y = 0; y < hanging; y++) if (Math.floor(y / unit) % 3 === 0) pixels[y * parts + part] = looks.lit;
  }
  return pixels;
}

// What fills the height of a lane: a thread has one CPU, others the most CPUs that they used in a part.
export function scaleOf(rows: Float32Array, width: number, parts: number, categories: number, step: number, isThread: boolean): number {
  let most = step;
  if (isThread) return most;
  for (let part = 0; part < parts; part++) {
    let sum = 0;
    for (let column = 0; column < categories; column++) sum += rows[part * width + column];
    most = Math.max(most, sum);
  }
  return most;
}

// `rgb(1, 2, 3)` or `rgba(1, 2, 3, 0.5)` or `#010203` as a pixel.
export function pixel(color: string): number {
  const hex = /^#(..)(..)(..)$/.exec(color)?.slice(1).map((part) => parseInt(part, 16));
  const [red, green, blue, alpha = 1] = hex ?? (color.match(/[\d.]+/g) ?? ["0", "0", "0"]).map(Number);
  return ((Math.round(alpha * 255) << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}
