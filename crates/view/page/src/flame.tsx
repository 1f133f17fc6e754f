// The flame graph of the selection. A click selects a function, a double click zooms in, Escape zooms out.

import { signal, useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { inFrame, prepare, themed } from "./canvas.ts";
import { counted, head, loaded } from "./recording.ts";
import { chosen, query, state } from "./state.ts";
import { percent, time } from "./units.ts";

const ROW = 19;
// Boxes narrower than this are not drawn, nor what is in them.
const NARROWEST = 0.4;

interface Box { box: number; x: number; width: number; row: number }

// The box that fills the width.
export const zoomed = signal(0);
const hovered = signal<{ box: number; x: number; y: number } | null>(null);

// Boxes to draw: the callers of the zoomed box over the whole width, then its branch.
export function layout(width: number): Box[] {
  const { tree, children, firstChild } = loaded.value!;
  const { total } = counted.value!;
  const boxes: Box[] = [];
  for (let box = zoomed.value; box >= 0; box = tree.parent[box]) boxes.push({ box, x: 0, width, row: tree.depth[box] });
  boxes.reverse();
  const whole = total[zoomed.value];
  if (whole <= 0) return boxes.slice(0, 1);
  const scale = width / whole;
  const open: Box[] = [boxes[boxes.length - 1]];
  for (let above = open.pop(); above; above = open.pop()) {
    let x = above.x;
    for (let i = firstChild[above.box]; i < firstChild[above.box + 1]; i++) {
      const box = children[i];
      const w = total[box] * scale;
      if (w >= NARROWEST) {
        const child = { box, x, width: w, row: above.row + 1 };
        boxes.push(child);
        open.push(child);
      }
      x += w;
    }
  }
  return boxes;
}

export function matches(name: string, text: string): boolean {
  return text !== "" && name.includes(text);
}

export function Flame() {
  const div = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const boxes = useRef<Box[]>([]);
  const rows = useRef(1);
  const draw = useRef(() => {});
  const redraw = useRef(inFrame(() => draw.current()));
  draw.current = () => {
    const [outer, target] = [div.current, canvas.current];
    if (!outer || !target || !loaded.value || !counted.value) return;
    const width = outer.clientWidth;
    boxes.current = layout(width);
    rows.current = boxes.current.reduce((most, box) => Math.max(most, box.row + 1), 1);
    const height = Math.max(rows.current * ROW, outer.clientHeight);
    const context = prepare(target, width, height);
    const { tree, funcs } = loaded.value;
    context.font = "12px ui-monospace, monospace";
    context.textBaseline = "middle";
    const letter = context.measureText("m").width;
    const strong = themed("--strong"), faint = themed("--outside");
    const text = query.value;
    for (const { box, x, width: w, row } of boxes.current) {
      const func = funcs[tree.func[box]];
      const y = state.value.icicle ? row * ROW : height - (row + 1) * ROW;
      context.fillStyle = box === 0 ? themed("--root") : head.categories[func.category].color;
      context.fillRect(x, y, Math.max(w - 0.5, 0.4), ROW - 1);
      if (text !== "" && !matches(func.name, text)) {
        context.fillStyle = faint;
        context.fillRect(x, y, Math.max(w - 0.5, 0.4), ROW - 1);
      }
      if (chosen.value !== null && tree.func[box] === chosen.value) {
        context.strokeStyle = strong;
        context.lineWidth = 1.5;
        context.strokeRect(x + 0.75, y + 0.75, Math.max(w - 2, 0.5), ROW - 2.5);
      }
      const room = Math.floor((w - 6) / letter);
      if (room >= 3) {
        context.fillStyle = "#111";
        context.fillText(shortened(func.name, room), x + 3, y + ROW / 2);
      }
    }
  };
  useEffect(() => {
    const observer = new ResizeObserver(() => redraw.current());
    observer.observe(div.current!);
    return () => observer.disconnect();
  }, []);
  useSignalEffect(() => {
    void [counted.value, loaded.value, zoomed.value, chosen.value, query.value, state.value];
    redraw.current();
  });
  const boxAt = (event: MouseEvent): Box | undefined => {
    const { left, top, height } = canvas.current!.getBoundingClientRect();
    const [x, y] = [event.clientX - left, event.clientY - top];
    const row = Math.floor((state.value.icicle ? y : height - y) / ROW);
    return boxes.current.find((box) => box.row === row && x >= box.x && x < box.x + Math.max(box.width, 1));
  };
  const keys = (event: KeyboardEvent) => {
    if (event.key === "Escape" && zoomed.value !== 0) {
      zoomed.value = 0;
      event.stopPropagation();
    }
  };
  return (
    <div class="flame" ref={div} tabIndex={0} onKeyDown={keys} aria-label="Flame graph; the tab Functions has the same as a table" role="img">
      <canvas ref={canvas}
        onMouseMove={(event) => {
          const found = boxAt(event);
          hovered.value = found ? { box: found.box, x: event.clientX, y: event.clientY } : null;
        }}
        onMouseLeave={() => { hovered.value = null; }}
        onClick={(event) => {
          const found = boxAt(event);
          const func = found && found.box !== 0 ? loaded.value!.tree.func[found.box] : null;
          chosen.value = func === chosen.value ? null : func;
        }}
        onDblClick={(event) => { zoomed.value = boxAt(event)?.box ?? 0; }} />
      <Tip />
    </div>
  );
}

// The last part of a path says the most.
function shortened(name: string, room: number): string {
  if (name.length <= room) return name;
  const last = name.slice(name.includes("::") ? name.lastIndexOf("::") + 2 : 0);
  return last.length <= room ? last : `${last.slice(0, Math.max(room - 1, 1))}…`;
}

function Tip() {
  const at = hovered.value;
  if (!at || !loaded.value || !counted.value) return null;
  const { tree, funcs } = loaded.value;
  const { own, total } = counted.value;
  const func = funcs[tree.func[at.box]];
  const left = Math.min(at.x + 14, innerWidth - 430);
  const below = at.y + 150 < innerHeight;
  return (
    <div class="tip" style={{ left: `${left}px`, top: below ? `${at.y + 16}px` : "auto", bottom: below ? "auto" : `${innerHeight - at.y + 8}px` }}>
      <strong>{func.full || func.name}</strong>
      {func.file && <div>{func.file}{func.line > 0 ? `:${func.line}` : ""}</div>}
      {func.module && <div class="dim">{func.module}</div>}
      <div>{time(total[at.box])}, {percent(total[at.box], total[0])} of the selection; own {time(own[at.box])}</div>
      {at.box !== 0 && <div class="dim">{head.categories[func.category].name}</div>}
    </div>
  );
}
