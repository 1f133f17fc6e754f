// A picture of a graph as boxes: a click selects, a double click zooms, arrow keys go from box to box.

import { useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { inFrame, prepare, themed } from "../canvas.ts";
import { difference, differenceColor } from "../compare.ts";
import { layout, shortened, type Box } from "../layout.ts";
import type { Mirror } from "../mirror.ts";
import type { Place } from "../model.ts";
import { found, head, loaded } from "../recording.ts";
import { chosen, state } from "../state.ts";
import { leastOf, nodeOf, select } from "../target.ts";
import { openMenu } from "./menu.tsx";
import { figures, hovered, Tip } from "./tip.tsx";

export const ROW = 19;

interface Props {
  graph: () => Mirror | null;
  // While another graph is awaited: what ends when it is here.
  comes?: () => Promise<void> | null;
  zoomed: () => number;
  // Whether the root is at the top.
  icicle: () => boolean;
  label: string;
  onZoom: (graph: Mirror, node: number) => void;
}

// The colour of a node.
export function boxColor(graph: Mirror, node: number): string {
  const { other, samples } = graph.counted;
  if (node === 0 && graph.func[0] === 0) return themed("--root");
  if (other) {
    return differenceColor(difference(graph.total[node], graph.whole, samples, graph.otherTotal[node], graph.otherWhole, other.samples));
  }
  return head.value.categories[loaded.value!.funcs[graph.func[node]].category].color;
}

export function FlameCanvas({ graph, comes, zoomed, icicle, label, onZoom }: Props) {
  const div = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const status = useRef<HTMLDivElement>(null);
  // What is drawn: numbers of nodes are those of this graph.
  const drawn = useRef<Mirror | null>(null);
  const laidOut = useRef("");
  const reading = useRef(0);
  const boxes = useRef<Box[]>([]);
  // The boxes of each row, from left to right.
  const rows = useRef<Box[][]>([]);
  const draw = useRef(() => {});
  const redraw = useRef(inFrame(() => draw.current()));
  // Lays the boxes out, if they are not yet as they should be.
  const lay = (shown: Mirror, width: number) => {
    const laid = `${zoomed()} ${width} ${state.value.order} ${shown.version.peek()}`;
    // To select something moves no box.
    if (drawn.current === shown && laidOut.current === laid) return;
    drawn.current = shown;
    laidOut.current = laid;
    shown.least = leastOf(shown, zoomed(), width);
    boxes.current = layout(shown, zoomed(), width, state.value.order === "name" ? loaded.value!.rank : null);
    rows.current = [];
    for (const box of boxes.current) (rows.current[box.row] ??= []).push(box);
    for (const row of rows.current) row.sort((a, b) => a.x - b.x);
  };
  draw.current = () => {
    const [outer, target, shown] = [div.current, canvas.current, graph()];
    if (!outer || !target || !loaded.value || !shown) return;
    const width = outer.clientWidth;
    lay(shown, width);
    const height = Math.max(rows.current.length * ROW, outer.clientHeight), heightBefore = target.clientHeight;
    const context = prepare(target, width, height);
    // Flames grow upwards: what is in sight stays there.
    if (reading.current !== shown.counted.reading) {
      if (!icicle() && reading.current > 0 && outer.scrollTop > 0) outer.scrollTop += height - heightBefore;
      reading.current = shown.counted.reading;
    }
    const { funcs } = loaded.value;
    context.font = "12px ui-monospace, monospace";
    context.textBaseline = "middle";
    const letter = context.measureText("m").width;
    const strong = themed("--strong"), faint = themed("--outside");
    const matches = found.value instanceof Uint8Array ? found.value : null;
    const place = nodeOf(shown);
    let last = "";
    const fill = (color: string) => { if (color !== last) context.fillStyle = last = color; };
    for (const { node, x, width: w, row } of boxes.current) {
      const func = shown.func[node];
      const y = icicle() ? row * ROW : height - (row + 1) * ROW;
      fill(boxColor(shown, node));
      context.fillRect(x, y, Math.max(w - 0.5, 0.4), ROW - 1);
      if (matches && !matches[func]) {
        fill(faint);
        context.fillRect(x, y, Math.max(w - 0.5, 0.4), ROW - 1);
      }
      if (chosen.value !== null && func === chosen.value) {
        context.strokeStyle = strong;
        context.lineWidth = node === place ? 3 : 1.5;
        context.strokeRect(x + 0.75, y + 0.75, Math.max(w - 2, 0.5), ROW - 2.5);
      }
      const room = Math.floor((w - 6) / letter);
      if (room >= 3) {
        fill("#111");
        context.fillText(shortened(funcs[func].name, room), x + 3, y + ROW / 2);
      }
    }
    // Screen readers hear what is selected.
    if (status.current) status.current.textContent = place > 0 ? `${funcs[shown.func[place]].name}: ${figures(shown, place)[0]}` : "";
  };
  useEffect(() => {
    const observer = new ResizeObserver(() => redraw.current());
    observer.observe(div.current!);
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    const themeChanged = () => redraw.current();
    scheme.addEventListener("change", themeChanged);
    return () => { observer.disconnect(); scheme.removeEventListener("change", themeChanged); };
  }, []);
  useSignalEffect(() => {
    void [graph()?.version.value, loaded.value, zoomed(), chosen.value, found.value, state.value, icicle()];
    redraw.current();
  });
  const boxAt = (event: MouseEvent): Box | undefined => {
    const { left, top, height } = canvas.current!.getBoundingClientRect();
    const [x, y] = [event.clientX - left, event.clientY - top];
    const row = Math.floor((icicle() ? y : height - y) / ROW);
    return rows.current[row]?.find((box) => x >= box.x && x < box.x + Math.max(box.width, 1));
  };
  const selectNode = (node: number) => {
    const shown = drawn.current;
    if (!shown) return;
    select(node === 0 && shown.func[0] === 0 ? null : { func: shown.func[node], way: shown.func[0] === 0 ? shown.way(node) : null, direction: shown.direction });
  };
  const keys = (event: KeyboardEvent) => {
    const shown = graph();
    if (!shown || !loaded.value || event.ctrlKey || event.altKey || event.metaKey) return;
    const handled = () => { event.preventDefault(); event.stopPropagation(); };
    // A key means the graph that was asked for before it.
    const coming = event.key.startsWith("Arrow") || event.key === "Enter" ? comes?.() : null;
    if (coming) {
      void coming.then(() => keys(event));
      return handled();
    }
    // What is to be drawn in the next frame counts already.
    lay(shown, div.current!.clientWidth);
    const at = boxes.current.find((box) => box.node === nodeOf(shown));
    if (event.key === "Escape" && zoomed() !== 0) {
      onZoom(shown, 0);
      return handled();
    }
    if (event.key === "Enter" && at) {
      onZoom(shown, at.node);
      return handled();
    }
    const next = neighbour(event.key, at, rows.current, shown, icicle());
    if (!next) return;
    handled();
    selectNode(next.node);
    const row = icicle() ? next.row * ROW : canvas.current!.clientHeight - (next.row + 1) * ROW;
    const top = canvas.current!.getBoundingClientRect().top - div.current!.getBoundingClientRect().top + row;
    if (top < 0) div.current!.scrollTop += top;
    else if (top + ROW > div.current!.clientHeight) div.current!.scrollTop += top + ROW - div.current!.clientHeight;
  };
  return (
    <div class={icicle() ? "flame icicle" : "flame"} ref={div} tabIndex={0} onKeyDown={keys} role="application" aria-roledescription="flame graph" aria-label={label}>
      <canvas ref={canvas} aria-hidden="true"
        onMouseMove={(event) => {
          const box = boxAt(event), shown = drawn.current;
          hovered.value = box && shown ? { func: shown.func[box.node], x: event.clientX, y: event.clientY, figures: figures(shown, box.node), place: placeOf(shown, box.node) } : null;
        }}
        onMouseLeave={() => { hovered.value = null; }}
        onClick={(event) => selectNode(boxAt(event)?.node ?? 0)}
        onContextMenu={(event) => {
          event.preventDefault();
          hovered.value = null;
          selectNode(boxAt(event)?.node ?? 0);
          openMenu(event.clientX, event.clientY);
        }}
        onDblClick={(event) => { if (drawn.current) onZoom(drawn.current, boxAt(event)?.node ?? 0); }} />
      <div class="hidden told" aria-live="polite" ref={status} />
      <Tip />
    </div>
  );
}

// Where a node is, in a graph of all.
function placeOf(graph: Mirror, node: number): Place | undefined {
  return graph.func[0] === 0 && node > 0 ? { func: graph.func[node], way: graph.way(node), direction: graph.direction } : undefined;
}

// The box that an arrow key leads to. Keys follow the picture.
function neighbour(key: string, at: Box | undefined, rows: Box[][], graph: Mirror, icicle: boolean): Box | undefined {
  const toward = { ArrowUp: icicle ? -1 : 1, ArrowDown: icicle ? 1 : -1, ArrowLeft: 0, ArrowRight: 0 }[key];
  if (toward === undefined) return undefined;
  if (!at) return rows[1]?.[0];
  if (toward === -1) return rows[at.row - 1]?.find((box) => box.node === graph.parent[at.node]);
  if (toward === 1) {
    const children = (rows[at.row + 1] ?? []).filter((box) => graph.parent[box.node] === at.node);
    return children.sort((a, b) => b.width - a.width)[0];
  }
  const row = rows[at.row];
  return row[row.indexOf(at) + (key === "ArrowLeft" ? -1 : 1)];
}
