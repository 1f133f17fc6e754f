// The bytes of blocks that are alive, over time: above the lanes, in the same time. Drag selects a range, as there.

import { signal, useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { inFrame, prepare, themed } from "../canvas.ts";
import { aliveAt, type Live, largest } from "../kernel/live.ts";
import { client, head, loaded } from "../recording.ts";
import { bytes } from "../sizes.ts";
import { change, dragged, state } from "../state.ts";
import { visible, wall } from "./view.ts";
import { exact } from "./zoom.ts";

const HEIGHT = 36;
// A shorter drag is a click, CSS pixels.
const LEAST = 3;

const live = signal<Live | null>(null);
const pointed = signal<{ clock: number; x: number; y: number } | null>(null);

// `width`: that of the lanes.
export function Memory({ width }: { width: number }) {
  useSignalEffect(() => {
    if (loaded.value && head.value.allocations?.slices) void client.ask({ kind: "live" }).then((answer) => { live.value = answer; });
  });
  const of = live.value;
  // It takes its place before it is known.
  if (!of) return head.value.allocations?.slices ? <div class="memory" /> : null;
  const { most, at } = largest(of);
  const last = of.bytes[of.bytes.length - 1];
  return (
    <div class="memory">
      <div class="lane"><span class="name">memory alive</span><span class="detail">max {bytes(most)}</span></div>
      <div class="plot">
        <Picture of={of} width={width} label={`Memory alive: at most ${bytes(most)} at ${exact(at, 1e6)}, ${bytes(last)} at the end`} />
      </div>
      <div class="hidden"><table>
        <caption>Memory alive</caption>
        <thead><tr><th scope="col">until</th><th scope="col">bytes</th></tr></thead>
        <tbody>{Array.from(of.end, (end, slice) => <tr key={slice}><td>{exact(end, 1e6)}</td><td>{bytes(of.bytes[slice])}</td></tr>)}</tbody>
      </table></div>
      <Tip of={of} />
    </div>
  );
}

function Picture({ of, width, label }: { of: Live; width: number; label: string }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const draw = useRef(() => {});
  const redraw = useRef(inFrame(() => draw.current()));
  const begin = useRef<number | null>(null);
  draw.current = () => {
    const target = canvas.current;
    if (!target || width <= 0) return;
    const context = prepare(target, width, HEIGHT);
    const [from, to] = visible.value, { most } = largest(of);
    const x = (clock: number) => ((clock - from) / (to - from)) * width;
    const y = (value: number) => HEIGHT - 1 - (most > 0 ? (value / most) * (HEIGHT - 4) : 0);
    context.fillStyle = themed("--memory");
    // Between two moments it is as at the first one, as in the reports.
    of.bytes.forEach((value, slice) => {
      const left = Math.max(0, x(of.end[slice])), right = Math.min(width, x(of.end[slice + 1] ?? of.end[slice]));
      if (right > left) context.fillRect(left, y(value), right - left, HEIGHT - 1 - y(value));
    });
    const range = dragged.value ?? state.value.range;
    if (range) {
      const [left, right] = range.map(x);
      context.fillStyle = themed("--outside");
      if (left > 0) context.fillRect(0, 0, left, HEIGHT);
      if (right < width) context.fillRect(right, 0, width - right, HEIGHT);
      context.fillStyle = themed("--strong");
      context.fillRect(Math.round(left), 0, 1, HEIGHT);
      context.fillRect(Math.round(right), 0, 1, HEIGHT);
    }
    if (pointed.value) {
      context.fillStyle = themed("--dim");
      context.fillRect(Math.round(x(pointed.value.clock)), 0, 1, HEIGHT);
    }
  };
  useSignalEffect(() => {
    void [visible.value, dragged.value, state.value, pointed.value];
    redraw.current();
  });
  useEffect(() => {
    redraw.current();
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    const themeChanged = () => redraw.current();
    scheme.addEventListener("change", themeChanged);
    return () => scheme.removeEventListener("change", themeChanged);
  }, [width]);
  const clockAt = (event: PointerEvent) => {
    const [from, to] = visible.value;
    const { left } = canvas.current!.getBoundingClientRect();
    return from + Math.max(0, Math.min(1, (event.clientX - left) / width)) * (to - from);
  };
  return (
    <canvas ref={canvas} role="img" aria-label={label}
      onPointerDown={(event) => {
        if (event.button !== 0) return;
        event.currentTarget.setPointerCapture(event.pointerId);
        begin.current = clockAt(event);
      }}
      onPointerMove={(event) => {
        const clock = clockAt(event), first = begin.current;
        pointed.value = { clock, x: event.clientX, y: event.clientY };
        if (first === null) return;
        const [from, to] = visible.value;
        const [left, right] = [Math.round(Math.min(first, clock)), Math.round(Math.max(first, clock))];
        if (dragged.value || right - left > ((to - from) / width) * LEAST) dragged.value = [left, Math.max(right, left + 1)];
      }}
      onPointerUp={() => {
        begin.current = null;
        const range = dragged.value;
        dragged.value = null;
        if (range) change({ range: [Math.max(0, range[0]), Math.min(Math.round(wall.value), range[1])] });
      }}
      onPointerCancel={() => { begin.current = dragged.value = null; }}
      onPointerLeave={() => { pointed.value = null; }} />
  );
}

function Tip({ of }: { of: Live }) {
  const at = pointed.value;
  const known = at && aliveAt(of, at.clock);
  if (!at || !known) return null;
  return (
    <div class="tip" style={{ left: `${Math.max(4, Math.min(at.x + 14, innerWidth - 330))}px`, top: `${at.y + 16}px` }}>
      <strong>{bytes(known.bytes)}</strong> alive at {exact(known.end, 1e6)}
    </div>
  );
}
