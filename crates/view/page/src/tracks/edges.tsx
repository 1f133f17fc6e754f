// The ends of the selected range: they are dragged, or moved with arrow keys. Without a range, keys begin one at the ends of what is visible.

import { change, dragged, state } from "../state.ts";
import { visible, wall } from "./view.ts";
import { exact, type Range } from "./zoom.ts";

const NAMES = ["Start of the range", "End of the range"];

// A range with one end moved. It may cross the other.
function moved(range: Range, end: number, to: number): Range {
  const other = range[1 - end];
  return to < other ? [to, other] : [other, to];
}

// Keys move an end at once; when they pause, it is a step.
const PAUSE = 400;
let timer = 0;

function set(range: Range): void {
  dragged.value = null;
  const [left, right] = range.map((clock) => Math.round(Math.max(0, Math.min(wall.value, clock))));
  if (left < right) change({ range: left === 0 && right >= wall.value ? null : [left, right] });
}

export function Edges({ width }: { width: number }) {
  const [from, to] = visible.value;
  const range = dragged.value ?? state.value.range;
  const known: Range = range ?? [from, to];
  const pixel = (to - from) / Math.max(width, 1);
  return (
    <>
      {known.map((clock, end) => {
        const keys = (event: KeyboardEvent) => {
          const by = event.shiftKey ? 50 : 5;
          const to = { ArrowLeft: clock - by * pixel, ArrowDown: clock - by * pixel, ArrowRight: clock + by * pixel, ArrowUp: clock + by * pixel, Home: 0, End: wall.value }[event.key];
          if (to === undefined) return;
          event.preventDefault();
          event.stopPropagation();
          const next: Range = end === 0 ? [Math.max(0, Math.min(to, known[1] - pixel)), known[1]] : [known[0], Math.min(wall.value, Math.max(to, known[0] + pixel))];
          dragged.value = next.map(Math.round) as Range;
          clearTimeout(timer);
          timer = setTimeout(() => set(next), PAUSE);
        };
        let still: Range | null = null;
        const follow = (event: PointerEvent) => {
          const target = event.currentTarget as HTMLElement;
          const { left } = target.parentElement!.getBoundingClientRect();
          if (still) dragged.value = moved(still, end, Math.round(Math.max(from, Math.min(to, from + (event.clientX - left) * pixel))));
        };
        const x = (clock - from) / pixel;
        return (
          <div key={end} class={`edge ${range ? "" : "unset"}`} role="slider" tabIndex={0} aria-label={NAMES[end]} aria-orientation="horizontal"
            aria-valuemin={0} aria-valuemax={Math.round(wall.value)} aria-valuenow={Math.round(clock)} aria-valuetext={exact(clock, pixel)}
            style={{ left: `${Math.max(-4, Math.min(width + 1, x - 4))}px`, display: x < -1 || x > width + 1 ? "none" : "block" }} onKeyDown={keys}
            onPointerDown={(event) => {
              if (event.button !== 0) return;
              event.preventDefault();
              event.stopPropagation();
              const target = event.currentTarget;
              target.focus({ preventScroll: true });
              target.setPointerCapture(event.pointerId);
              clearTimeout(timer);
              still = known;
              const done = () => {
                target.removeEventListener("pointermove", follow);
                if (dragged.value) set(dragged.value);
              };
              target.addEventListener("pointermove", follow);
              target.addEventListener("lostpointercapture", done, { once: true });
            }} />
        );
      })}
    </>
  );
}
