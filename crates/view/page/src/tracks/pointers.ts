// Mouse, pen, touch and wheel over the lanes: dragging selects a range, a click the function there; Ctrl and the wheel, two
// fingers or a double click zoom; Shift and the wheel move.

import { change, chosen, dragged, state } from "../state.ts";
import { scrolled } from "./labels.tsx";
import { AXIS, type Lane, visibleLanes } from "./lanes.ts";
import type { Source } from "./source.ts";
import { functionAt } from "./tip.tsx";
import { lanes, pan, pointed, visible, wall, zoom } from "./view.ts";
import type { Range } from "./zoom.ts";

// A shorter drag is a click, CSS pixels.
const LEAST = 3;
// Heights of a line and a page, for wheels that count in these.
const LINE = 16, PAGE = 400;
// What a double click leaves visible.
const DOUBLE = 0.25;

export class Pointers {
  private readonly down_ = new Map<number, number>();
  private begin: number | null = null;

  constructor(private readonly canvas: () => HTMLCanvasElement, private readonly source: Source) {}

  get isDragging(): boolean {
    return this.begin !== null;
  }

  // Ends a drag without a selection.
  abandon(): void {
    this.begin = null;
    dragged.value = null;
  }

  private at({ clientX }: { clientX: number }): number {
    const { left, width } = this.canvas().getBoundingClientRect();
    const [from, to] = visible.value;
    return from + Math.max(0, Math.min(1, (clientX - left) / width)) * (to - from);
  }

  down(event: PointerEvent): void {
    if (event.button !== 0) return;
    (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
    this.down_.set(event.pointerId, event.clientX);
    if (this.down_.size > 1) this.abandon();
    else this.begin = this.at(event);
  }

  move(event: PointerEvent): void {
    if (this.down_.size > 1) return this.pinch(event);
    const clock = this.at(event);
    if (event.pointerType !== "touch") this.point(event, clock);
    if (this.begin === null) return;
    const [from, to] = visible.value;
    const range: Range = [Math.round(Math.min(this.begin, clock)), Math.round(Math.max(this.begin, clock))];
    const least = ((to - from) / this.canvas().clientWidth) * LEAST;
    if (dragged.value || range[1] - range[0] > least) dragged.value = range[0] < range[1] ? range : [range[0], range[0] + 1];
  }

  up(event: PointerEvent): void {
    this.down_.delete(event.pointerId);
    if (this.begin === null) return;
    const range = dragged.value;
    this.abandon();
    if (range) change({ range: [Math.max(0, range[0]), Math.min(Math.round(wall.value), range[1])] });
    else this.click(event, this.at(event));
  }

  // A click outside of the range takes that away. Any other selects the function that is there.
  private click(event: PointerEvent, clock: number): void {
    const { range } = state.value;
    if (range && (clock < range[0] || clock > range[1])) return change({ range: null });
    const lane = this.laneAt(event);
    if (!lane) return;
    void functionAt(lane, clock, this.source).then((func) => { chosen.value = func === chosen.value ? null : func; });
  }

  double(event: MouseEvent): void {
    zoom(DOUBLE, this.at(event));
  }

  cancel(event: PointerEvent): void {
    this.down_.delete(event.pointerId);
    this.abandon();
  }

  wheel(event: WheelEvent): void {
    const unit = event.deltaMode === 1 ? LINE : event.deltaMode === 2 ? PAGE : 1;
    const [x, y] = [event.deltaX * unit, event.deltaY * unit];
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      // Trackpads send many small distances when fingers are pinched, a wheel few large ones.
      zoom(Math.exp(Math.max(-60, Math.min(60, y)) * (Math.abs(y) < 50 ? 0.01 : 0.005)), this.at(event));
    } else if (event.shiftKey || Math.abs(x) > Math.abs(y)) {
      event.preventDefault();
      pan((event.shiftKey && x === 0 ? y : x) / this.canvas().clientWidth);
    }
  }

  // Zooms by the distance of two fingers, and moves with them.
  private pinch(event: PointerEvent): void {
    if (!this.down_.has(event.pointerId)) return;
    const [[one, x], [, other]] = [...this.down_].sort(([a]) => (a === event.pointerId ? -1 : 1));
    this.down_.set(one, event.clientX);
    const [before, after] = [Math.abs(x - other), Math.abs(event.clientX - other)];
    if (before > 10 && after > 10) zoom(before / after, this.at({ clientX: other }));
  }

  private laneAt(event: PointerEvent): Lane | undefined {
    const y = event.clientY - this.canvas().getBoundingClientRect().top;
    return y >= AXIS ? visibleLanes(lanes.value, scrolled.value.top + y, scrolled.value.top + y + 1)[0] : undefined;
  }

  private point(event: PointerEvent, clock: number): void {
    pointed.value = { lane: this.laneAt(event)?.key ?? "", clock, x: event.clientX, y: event.clientY };
  }
}
