// Time order: the stacks of one thread from left to right in order of time, callees below callers.

import { computed, effect, signal, useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { inFrame, prepare, themed } from "../canvas.ts";
import { latest } from "../client.ts";
import type { Order } from "../kernel/order.ts";
import { shortened } from "../layout.ts";
import { timeMeasure } from "../model.ts";
import { client, counted, found, head, loaded, shapeNumber } from "../recording.ts";
import { change, chosen, state } from "../state.ts";
import { select } from "../target.ts";
import { tickStep, time } from "../units.ts";
import { Grid } from "./grid.tsx";
import { openMenu } from "./menu.tsx";
import { hovered, Tip } from "./tip.tsx";

const ROW = 19, AXIS = 20;

// The thread that is shown: the only chosen one, or of those that are chosen, the one with the most CPU time.
const thread = computed(() => {
  const times = loaded.value?.times;
  const all = state.value.threads ?? head.value.threads.map((_, i) => i + 1);
  return times ? all.reduce((most, one) => (times.cpu[one] > times.cpu[most] ? one : most), all[0] ?? 0) : 0;
});
const range = computed<[number, number]>(() => state.value.range ?? [0, head.value.wall]);
const width = signal(1000);
const shown = signal<{ order: Order; range: [number, number]; counted: NonNullable<typeof counted.value> } | null>(null);
const asTable = signal(false);

const ask = latest(async (asked: { thread: number; range: [number, number]; least: number; shape: number; counted: NonNullable<typeof counted.value> }) => {
  const { range, counted } = asked;
  const order = await client.ask({ kind: "order", measure: timeMeasure(state.peek().measure), thread: asked.thread, range, least: asked.least, shape: asked.shape });
  // It may be of another reading.
  if (counted.reading !== loaded.peek()?.reading) return;
  shown.value = { order, range, counted };
});

export function TimeOrder() {
  useEffect(() => effect(() => {
    if (!counted.value || thread.value === 0) return;
    const [from, to] = range.value;
    ask({ thread: thread.value, range: [from, to], least: (to - from) / (2 * width.value), shape: shapeNumber.value, counted: counted.value });
  }), []);
  const { threads, processes } = head.value;
  const of = threads[thread.value - 1];
  const all = threads.map((_, i) => i + 1).sort((a, b) => (loaded.value ? loaded.value.times.cpu[b] - loaded.value.times.cpu[a] : 0));
  const nameOf = (number: number) => {
    const { name, tid, process } = threads[number - 1];
    return `${name || "thread"} ${tid}${processes.length > 1 ? ` (${processes[process]?.name})` : ""}`;
  };
  if (!of) return <p class="wait">There is no thread.</p>;
  return (
    <div class="column">
      <div class="bar">
        <label>thread <select value={thread.value} onChange={(event) => change({ threads: [Number(event.currentTarget.value)] })}>
          {all.slice(0, 1000).map((number) => <option key={number} value={number}>{nameOf(number)}</option>)}
        </select></label>
        <label><input type="checkbox" checked={asTable.value} onChange={(event) => { asTable.value = event.currentTarget.checked; }} /> as a table</label>
        {shown.value && shown.value.order.left > 0 && <span class="dim">{shown.value.order.left} calls are too short to be shown: select a shorter time</span>}
      </div>
      {asTable.value ? <Table /> : <Chart />}
    </div>
  );
}

const way = (tree: { parent: Int32Array; func: Int32Array }, box: number) => {
  const funcs: number[] = [];
  for (let at = box; at > 0; at = tree.parent[at]) funcs.push(tree.func[at]);
  return funcs.reverse();
};

function Chart() {
  const div = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const draw = useRef(() => {});
  const redraw = useRef(inFrame(() => draw.current()));
  draw.current = () => {
    const [outer, target, all] = [div.current, canvas.current, shown.value];
    if (!outer || !target || !loaded.value) return;
    width.value = Math.max(outer.clientWidth, 50);
    if (!all) return;
    const { order, range: [from, to], counted: { tree } } = all;
    const { funcs } = loaded.value;
    const deepest = order.depth.reduce((most, depth) => Math.max(most, depth), 0);
    const height = Math.max(AXIS + (deepest + 1) * ROW, outer.clientHeight);
    const context = prepare(target, width.value, height);
    const scale = width.value / Math.max(to - from, 1);
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    const step = tickStep(((to - from) / width.value) * 90);
    for (let clock = Math.ceil(from / step) * step; clock <= to; clock += step) {
      context.fillStyle = themed("--line");
      context.fillRect((clock - from) * scale, 0, 1, height);
      context.fillStyle = themed("--dim");
      context.fillText(clock === 0 ? "0" : time(clock), (clock - from) * scale + 4, AXIS / 2);
    }
    context.font = "12px ui-monospace, monospace";
    const letter = context.measureText("m").width;
    const matches = found.value instanceof Uint8Array ? found.value : null;
    for (let i = 0; i < order.box.length; i++) {
      const func = tree.func[order.box[i]];
      const x = (order.begin[i] - from) * scale, w = (order.end[i] - order.begin[i]) * scale, y = AXIS + order.depth[i] * ROW;
      context.fillStyle = head.value.categories[funcs[func].category].color;
      context.fillRect(x, y, Math.max(w - 0.5, 0.4), ROW - 1);
      if (matches && !matches[func]) {
        context.fillStyle = themed("--outside");
        context.fillRect(x, y, Math.max(w - 0.5, 0.4), ROW - 1);
      }
      if (func === chosen.value) {
        context.strokeStyle = themed("--strong");
        context.lineWidth = 1.5;
        context.strokeRect(x + 0.75, y + 0.75, Math.max(w - 2, 0.5), ROW - 2.5);
      }
      const room = Math.floor((w - 6) / letter);
      if (room >= 3) {
        context.fillStyle = "#111";
        context.fillText(shortened(funcs[func].name, room), x + 3, y + ROW / 2);
      }
    }
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
    void [shown.value, chosen.value, found.value, loaded.value];
    redraw.current();
  });
  const callAt = (event: MouseEvent): number => {
    const all = shown.value;
    if (!all) return -1;
    const { left, top, width } = canvas.current!.getBoundingClientRect();
    const { order, range: [from, to] } = all;
    const clock = from + ((event.clientX - left) / width) * (to - from), depth = Math.floor((event.clientY - top - AXIS) / ROW);
    for (let i = 0; i < order.box.length; i++) if (order.depth[i] === depth && clock >= order.begin[i] && clock < order.end[i]) return i;
    return -1;
  };
  const selectAt = (event: MouseEvent) => {
    const call = callAt(event), all = shown.value!;
    if (call < 0) return select(null);
    const { tree } = all.counted, box = all.order.box[call];
    select({ func: tree.func[box], way: way(tree, box), direction: "down" });
  };
  return (
    <div class="flame icicle order" ref={div} tabIndex={0} role="img" aria-label="Stacks in order of time; the switch “as a table” shows the same as a table">
      <canvas ref={canvas} aria-hidden="true"
        onMouseMove={(event) => {
          const call = callAt(event), all = shown.value;
          hovered.value = call < 0 || !all ? null : {
            func: all.counted.tree.func[all.order.box[call]], x: event.clientX, y: event.clientY,
            place: { func: all.counted.tree.func[all.order.box[call]], way: way(all.counted.tree, all.order.box[call]), direction: "down" },
            figures: [`${time(all.order.end[call] - all.order.begin[call])} from ${time(all.order.begin[call])}`],
          };
        }}
        onMouseLeave={() => { hovered.value = null; }}
        onClick={selectAt}
        onContextMenu={(event) => {
          event.preventDefault();
          selectAt(event);
          openMenu(event.clientX, event.clientY);
        }}
        onDblClick={(event) => {
          const call = callAt(event), all = shown.value;
          if (call >= 0 && all) change({ range: [all.order.begin[call], all.order.end[call]] });
        }} />
      <Tip />
    </div>
  );
}

// The same calls, by their beginning.
const calls = computed(() => {
  const order = shown.value?.order;
  if (!order) return [];
  return [...order.box.keys()].sort((a, b) => order.begin[a] - order.begin[b] || order.depth[a] - order.depth[b]);
});
const activeCall = signal(-1);

function Table() {
  const all = shown.value;
  if (!all || !loaded.value) return <p class="wait">counting …</p>;
  const { funcs } = loaded.value;
  const { order, counted: { tree } } = all;
  return (
    <Grid kind="grid" label="Calls in order of time" columns="calls" count={calls.value.length} active={activeCall.value}
      headings={[{ text: "from", number: true }, { text: "time", number: true }, { text: "depth", number: true }, { text: "function" }]}
      activate={(index) => {
        activeCall.value = index;
        const box = order.box[calls.value[index]];
        select({ func: tree.func[box], way: way(tree, box), direction: "down" });
      }}
      onMenu={(_, x, y) => openMenu(x, y)}
      row={(index) => {
        const call = calls.value[index];
        return {
          key: call, selected: index === activeCall.value,
          cells: [
            time(order.begin[call]), time(order.end[call] - order.begin[call]), String(order.depth[call] + 1),
            <span style={{ paddingLeft: `${Math.min(order.depth[call] * 11, 180 + order.depth[call] * 3)}px` }}>{funcs[tree.func[order.box[call]]].name}</span>,
          ],
        };
      }} />
  );
}
