// Draws the axis, the selected range and the moment below the pointer.

import { themed } from "../canvas.ts";
import { percent, time } from "../units.ts";
import { AXIS } from "./lanes.ts";
import { type Range, ticks } from "./zoom.ts";

const LABEL = 92;

export interface Marks { visible: Range; wall: number; range: Range | null; moment: number | null }

export function drawAxis(context: CanvasRenderingContext2D, width: number, height: number, { visible, wall, range, moment }: Marks): void {
  const [from, to] = visible;
  const x = (clock: number) => ((clock - from) / (to - from)) * width;
  context.fillStyle = themed("--page");
  context.fillRect(0, 0, width, AXIS);
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  for (const { clock, label } of ticks(visible, width / LABEL)) {
    context.fillStyle = themed("--line");
    context.fillRect(Math.round(x(clock)), 0, 1, height);
    context.fillStyle = themed("--dim");
    if (x(clock) + context.measureText(label).width + 4 <= width) context.fillText(label, Math.round(x(clock)) + 4, AXIS / 2 + 1);
  }
  if (from > 0 || to < wall) {
    // Where the visible part lies in the whole.
    context.fillStyle = themed("--line");
    context.fillRect(0, 0, width, 3);
    context.fillStyle = themed("--dim");
    context.fillRect((from / wall) * width, 0, Math.max(3, ((to - from) / wall) * width), 3);
  }
  if (range) {
    const [left, right] = range.map(x);
    context.fillStyle = themed("--outside");
    if (left > 0) context.fillRect(0, AXIS, left, height);
    if (right < width) context.fillRect(right, AXIS, width - right, height);
    context.fillStyle = themed("--strong");
    context.fillRect(Math.round(left), 0, 1, height);
    context.fillRect(Math.round(right), 0, 1, height);
    if (right > 0 && left < width) {
      const text = `${time(range[1] - range[0])}, ${percent(range[1] - range[0], wall)}`;
      const size = context.measureText(text).width;
      const at = Math.max(4, Math.min(Math.max(left, 0) + 4, width - size - 4));
      context.fillStyle = themed("--page");
      context.fillRect(at - 2, AXIS + 2, size + 4, 16);
      context.fillStyle = themed("--strong");
      context.fillText(text, at, AXIS + 10);
    }
  }
  if (moment !== null) {
    context.fillStyle = themed("--dim");
    context.fillRect(Math.round(x(moment)), 0, 1, height);
  }
}
