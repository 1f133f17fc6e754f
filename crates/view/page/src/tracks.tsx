// The time axis: the whole program, then each process with its threads. Drag selects a range, a click on a name selects threads.

import { signal, useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { inFrame, prepare, themed } from "./canvas.ts";
import { columnsOf } from "./kernel/bins.ts";
import type { Bins } from "./model.ts";
import { client, head, loaded } from "./recording.ts";
import { change, chosen, dragged, state } from "./state.ts";
import { percent, tickStep, time } from "./units.ts";

const ROW = 26, FIRST = 64, AXIS = 20, LABELS = 200;

interface Lane { label: string; detail: string; threads: number[] | null; height: number; level: number }

// Processes by the time that they used, and below each its threads.
function lanes(): Lane[] {
  const { times } = loaded.value!;
  const used = (threads: number[]) => threads.reduce((sum, thread) => sum + times.cpu[thread], 0);
  const all: Lane[] = [{ label: "whole program", detail: time(used(head.threads.map((_, i) => i + 1))), threads: null, height: FIRST, level: 0 }];
  const processes = head.processes.map((process, index) => {
    const threads = head.threads.flatMap((thread, i) => (thread.process === index ? [i + 1] : []));
    return { process, threads, cpu: used(threads) };
  });
  processes.sort((a, b) => b.cpu - a.cpu);
  for (const { process, threads, cpu } of processes) {
    if (head.processes.length > 1) {
      all.push({ label: `${process.name} ${process.pid}`, detail: time(cpu), threads, height: ROW, level: 1 });
    }
    threads.sort((a, b) => times.cpu[b] - times.cpu[a]);
    for (const thread of threads) {
      const { name, tid } = head.threads[thread - 1];
      all.push({ label: name || `thread ${tid}`, detail: time(times.cpu[thread]), threads: [thread], height: ROW, level: 2 });
    }
  }
  return all;
}

const scrolled = signal(0);
const pointed = signal<number | null>(null);

export function Tracks() {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const bins = useRef(new Map<string, Bins | null>());
  const all = useRef<Lane[]>([]);
  if (loaded.value && all.current.length === 0) all.current = lanes();
  const tops: number[] = [];
  let bottom = AXIS;
  for (const lane of all.current) {
    tops.push(bottom);
    bottom += lane.height;
  }

  const draw = useRef(() => {});
  const redraw = useRef(inFrame(() => draw.current()));
  draw.current = () => {
    const [div, target] = [box.current, canvas.current];
    if (!div || !target || !loaded.value) return;
    const [width, height] = [Math.max(div.clientWidth - LABELS, 50), div.clientHeight];
    const context = prepare(target, width, height);
    const top = div.scrollTop;
    const light = chosen.value;
    const parts = Math.max(1, Math.min(2000, Math.floor(width)));
    all.current.forEach((lane, index) => {
      const y = tops[index] - top;
      if (y + lane.height < 0 || y > height) return;
      const key = `${index} ${parts} ${light}`;
      const known = bins.current.get(key);
      if (known === undefined) {
        bins.current.set(key, null);
        void client.ask({ kind: "bins", lanes: [{ threads: lane.threads, waits: false }], range: [0, head.wall], parts, lit: light }).then((answer) => {
          bins.current.set(key, answer);
          redraw.current();
        });
      }
      const shown = known ?? [...bins.current].reverse().find(([other, value]) => value && other.startsWith(`${index} `))?.[1];
      if (shown) drawLane(context, lane, shown, y, width);
      context.fillStyle = themed("--line");
      context.fillRect(0, y + lane.height - 1, width, 1);
    });
    drawAxis(context, width, height);
  };

  useEffect(() => {
    const observer = new ResizeObserver(() => redraw.current());
    observer.observe(box.current!);
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    const themeChanged = () => redraw.current();
    scheme.addEventListener("change", themeChanged);
    return () => { observer.disconnect(); scheme.removeEventListener("change", themeChanged); };
  }, []);
  useSignalEffect(() => {
    void [state.value, dragged.value, chosen.value, pointed.value, loaded.value];
    redraw.current();
  });

  const at = (event: PointerEvent) => {
    const { left, width } = canvas.current!.getBoundingClientRect();
    return Math.max(0, Math.min(1, (event.clientX - left) / width)) * head.wall;
  };
  const begin = useRef<number | null>(null);
  const down = (event: PointerEvent) => {
    if (event.button !== 0) return;
    (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
    begin.current = at(event);
  };
  const move = (event: PointerEvent) => {
    pointed.value = at(event);
    if (begin.current === null) return;
    const range: [number, number] = [Math.min(begin.current, pointed.value), Math.max(begin.current, pointed.value)];
    if (range[1] - range[0] > head.wall / 500) dragged.value = range;
  };
  const up = () => {
    if (begin.current === null) return;
    begin.current = null;
    const range = dragged.value;
    dragged.value = null;
    if (range) change({ range });
    else change({ range: null });
  };
  const picked = state.value.threads;
  const isPicked = (lane: Lane) => (lane.threads === null ? picked === null : picked !== null && lane.threads.every((thread) => picked.includes(thread)));
  const pick = (lane: Lane, add: boolean) => {
    if (lane.threads === null) return change({ threads: null });
    if (!add) return change({ threads: isPicked(lane) && picked!.length === lane.threads.length ? null : lane.threads });
    const rest = (picked ?? []).filter((thread) => !lane.threads!.includes(thread));
    const threads = isPicked(lane) ? rest : [...rest, ...lane.threads].sort((a, b) => a - b);
    change({ threads: threads.length ? threads : null });
  };
  const shown = all.current.map((lane, index) => ({ lane, top: tops[index] }))
    .filter(({ top, lane }) => top + lane.height >= scrolled.value - 400 && top <= scrolled.value + 1600);
  return (
    <section class="tracks" aria-label="Threads over time" ref={box} tabIndex={0}
      onScroll={(event) => { scrolled.value = event.currentTarget.scrollTop; redraw.current(); }}>
      <div class="lanes" style={{ height: `${bottom}px` }}>
        <canvas ref={canvas} onPointerDown={down} onPointerMove={move} onPointerUp={up}
          onPointerLeave={() => { pointed.value = null; }} aria-hidden="true" />
        {shown.map(({ lane, top }) => (
          <button key={top} class={`lane level${lane.level}`} style={{ top: `${top}px`, height: `${lane.height}px` }}
            aria-pressed={isPicked(lane)} title={`${lane.label}: ${lane.detail} of CPU time. Click: only this; Ctrl-click: this as well`}
            onClick={(event) => pick(lane, event.ctrlKey || event.metaKey)}>
            <span class="name">{lane.label}</span><span class="detail">{lane.detail}</span>
          </button>
        ))}
      </div>
    </section>
  );
}

function drawLane(context: CanvasRenderingContext2D, lane: Lane, { parts, rows }: Bins, y: number, width: number) {
  const { categories } = head;
  const columns = columnsOf(categories.length).count;
  const step = head.wall / parts;
  const size = lane.height - 3;
  // Several threads may use several CPUs: the highest part fills the lane.
  let most = 1;
  if (lane.level < 2) {
    for (let part = 0; part < parts; part++) {
      let cpu = 0;
      for (let column = 0; column < categories.length; column++) cpu += rows[part * columns + column];
      most = Math.max(most, cpu / step);
    }
  }
  const lit = themed("--lit");
  for (let part = 0; part < parts; part++) {
    const x = (part * width) / parts, w = width / parts + 0.3;
    let base = y + lane.height - 1;
    const bar = (value: number, color: string) => {
      const height = (Math.min(value / step / most, 1) * size);
      if (height <= 0) return;
      context.fillStyle = color;
      context.fillRect(x, base - height, w, height);
      base -= height;
    };
    for (let column = 0; column < categories.length; column++) bar(rows[part * columns + column], categories[column].color);
    const light = rows[part * columns + columnsOf(categories.length).lit];
    if (light > 0) {
      const height = Math.min(light / step / most, 1) * size;
      context.fillStyle = lit;
      context.fillRect(x, y + lane.height - 1 - height, w, height);
    }
  }
}

function drawAxis(context: CanvasRenderingContext2D, width: number, height: number) {
  const x = (clock: number) => (clock / head.wall) * width;
  context.fillStyle = themed("--page");
  context.fillRect(0, 0, width, AXIS);
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  const step = tickStep((head.wall / width) * 90);
  for (let clock = 0; clock <= head.wall; clock += step) {
    context.fillStyle = themed("--line");
    context.fillRect(x(clock), 0, 1, height);
    context.fillStyle = themed("--dim");
    context.fillText(clock === 0 ? "0" : time(clock), x(clock) + 4, AXIS / 2);
  }
  const range = dragged.value ?? state.value.range;
  if (range) {
    context.fillStyle = themed("--outside");
    context.fillRect(0, AXIS, x(range[0]), height);
    context.fillRect(x(range[1]), AXIS, width, height);
    context.fillStyle = themed("--strong");
    context.fillRect(x(range[0]), 0, 1, height);
    context.fillRect(x(range[1]), 0, 1, height);
    const text = `${time(range[1] - range[0])}, ${percent(range[1] - range[0], head.wall)}`;
    context.fillText(text, Math.min(x(range[0]) + 4, width - 120), AXIS + 10);
  }
  if (pointed.value !== null && !dragged.value) {
    context.fillStyle = themed("--dim");
    context.fillRect(x(pointed.value), 0, 1, height);
  }
}
