// The time axis: the whole program, then each process with its threads. Drag selects a range, a click on a name selects threads.

import { signal, useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { inFrame, prepare, themed } from "./canvas.ts";
import { latest } from "./client.ts";
import { client, loaded } from "./recording.ts";
import { chosen, dragged, state } from "./state.ts";
import { drawAxis } from "./tracks/axis.ts";
import { Bar } from "./tracks/bar.tsx";
import { Edges } from "./tracks/edges.tsx";
import { keys } from "./tracks/keys.ts";
import { isPicked, Labels, scrolled } from "./tracks/labels.tsx";
import { AXIS, visibleLanes } from "./tracks/lanes.ts";
import { Memory } from "./tracks/memory.tsx";
import { Pointers } from "./tracks/pointers.ts";
import { type Shown, Source, type Wanted } from "./tracks/source.ts";
import { LaneTable } from "./tracks/table.tsx";
import { Tip } from "./tracks/tip.tsx";
import { AT_ONCE, lanes, pointed, times, visible, wall } from "./tracks/view.ts";
import type { Range } from "./tracks/zoom.ts";

// Of lanes that are not selected.
const FAINT = 0.3;
const MOST_PARTS = 4096;

const width = signal(0);

const countTimes = latest(async (range: Range | null) => {
  times.value = range ? await client.ask({ kind: "threadTimes", range }) : loaded.value!.times;
});

export function Tracks() {
  const section = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const made = useRef<{ source: Source; redraw: () => void; pointers: Pointers } | null>(null);
  if (!made.current) {
    const redraw = inFrame(() => { if (section.current && canvas.current) draw(section.current, canvas.current, source); });
    const source: Source = new Source(redraw);
    made.current = { source, redraw, pointers: new Pointers(() => canvas.current!, source) };
  }
  const { source, redraw, pointers } = made.current;

  useEffect(() => {
    const box = section.current!;
    const measure = () => {
      scrolled.value = { top: box.scrollTop, height: box.clientHeight };
      width.value = canvas.current!.parentElement!.clientWidth;
      redraw();
    };
    const observer = new ResizeObserver(measure);
    observer.observe(box);
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    scheme.addEventListener("change", redraw);
    const wheel = (event: WheelEvent) => pointers.wheel(event);
    box.addEventListener("wheel", wheel, { passive: false });
    const forget = keys(box, pointers);
    return () => {
      observer.disconnect();
      scheme.removeEventListener("change", redraw);
      box.removeEventListener("wheel", wheel);
      forget();
    };
  }, []);
  useSignalEffect(() => {
    void [state.value, dragged.value, chosen.value, pointed.value, lanes.value, visible.value, scrolled.value, width.value];
    redraw();
  });
  const range = useRef("");
  useSignalEffect(() => {
    const wanted = dragged.value ?? state.value.range;
    if (!loaded.value) return;
    const key = `${wanted} ${loaded.value.reading}`;
    if (key === range.current && times.peek()) return;
    range.current = key;
    countTimes(wanted);
  });
  const all = lanes.value;
  const last = all[all.length - 1];
  const bottom = last ? last.top + last.height : AXIS;
  return (
    <section class="timeline" aria-label="Threads over time">
      <Bar />
      <Memory width={width.value} />
      <div class="tracks" ref={section}
        onScroll={(event) => { scrolled.value = { top: event.currentTarget.scrollTop, height: event.currentTarget.clientHeight }; }}>
        <div class="lanes" style={{ height: `${bottom}px` }}>
          <div class="plot" style={{ height: `${scrolled.value.height}px` }}>
            <canvas ref={canvas} aria-hidden="true" onPointerDown={(event) => pointers.down(event)} onPointerMove={(event) => pointers.move(event)}
              onPointerUp={(event) => pointers.up(event)} onPointerCancel={(event) => pointers.cancel(event)} onPointerLeave={() => { pointed.value = null; }} onDblClick={(event) => pointers.double(event)} />
            <Edges width={width.value} />
          </div>
          <Labels section={section} />
        </div>
        <LaneTable />
      </div>
      <Tip source={source} />
    </section>
  );
}

function draw(section: HTMLElement, canvas: HTMLCanvasElement, source: Source): void {
  if (!loaded.value) return;
  const [w, height, top] = [Math.max(canvas.parentElement!.clientWidth, 50), section.clientHeight, section.scrollTop];
  const ratio = window.devicePixelRatio || 1;
  const context = prepare(canvas, w, height);
  const [from, to] = visible.value;
  const wanted: Wanted = { range: [from, to], parts: Math.max(1, Math.min(MOST_PARTS, Math.round(w * ratio))), lit: chosen.value, reading: loaded.value.reading };
  const picked = state.value.threads;
  context.imageSmoothingEnabled = false;
  for (const lane of visibleLanes(lanes.value, top + AXIS, top + height)) {
    const y = lane.top - top;
    const shown = source.of(lane, wanted);
    const x = (clock: number) => ((clock - from) / (to - from)) * w;
    const [begin, end] = lane.alive.map((clock) => Math.max(0, Math.min(w, x(clock))));
    context.fillStyle = themed("--alive");
    context.fillRect(begin, y + 2, end - begin, lane.height - 3);
    if (shown) {
      const [left, right] = shown.range.map(x);
      const isFaint = picked !== null && !isPicked(lane, picked) && !lane.threads?.some((thread) => picked.includes(thread));
      context.globalAlpha = isFaint ? FAINT : 1;
      context.drawImage(source.picture(lane, shown, ratio), left, y + 2, right - left, lane.height - 3);
      context.globalAlpha = 1;
      if (lane.kind === "all") drawScale(context, w, y, shown);
    }
    context.fillStyle = themed("--line");
    context.fillRect(0, y + lane.height - 1, w, 1);
  }
  drawAxis(context, w, height, { visible: [from, to], wall: wall.value, range: dragged.value ?? state.value.range, moment: dragged.value ? null : pointed.value?.clock ?? null });
  source.ask(wanted);
}


// How many CPUs, or tasks, fill the height of the whole program.
function drawScale(context: CanvasRenderingContext2D, w: number, y: number, { scale, range, parts }: Shown): void {
  const text = `${((scale * parts) / (range[1] - range[0])).toFixed(1)} ${AT_ONCE}`;
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  const size = context.measureText(text).width;
  context.fillStyle = themed("--page");
  context.fillRect(w - size - 8, y + 3, size + 6, 16);
  context.fillStyle = themed("--dim");
  context.fillText(text, w - size - 5, y + 11);
}
