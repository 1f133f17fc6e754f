// All functions of the selection as a table, and for the selected one its callers above it and its callees below.

import { computed, signal } from "@preact/signals";
import { difference, shareError } from "../compare.ts";
import { cutText } from "../cuts.ts";
import type { Mirror } from "../mirror.ts";
import { mirrored } from "../mirrors.ts";
import { amount } from "../measures.ts";
import { isMetric } from "../model.ts";
import { count } from "../sizes.ts";
import { counted, found, head, loaded } from "../recording.ts";
import { chosen, state } from "../state.ts";
import { select } from "../target.ts";
import { percent, points } from "../units.ts";
import { cellsOf, differenceHeadings } from "./differences.tsx";
import { FlameCanvas } from "./flamecanvas.tsx";
import { Grid, type Heading } from "./grid.tsx";
import { openMenu } from "./menu.tsx";

type Column = "own" | "total" | "name" | "samples" | "change";
const sorted = signal<Column>("own");

const differenceOf = (func: number) => {
  const { funcTotal, total, samples, other } = counted.value!;
  return difference(funcTotal[func], total[0], samples, other!.funcTotal[func], other!.total[0], other!.samples);
};

// The functions that are shown, in order.
const rows = computed<Int32Array>(() => {
  if (!loaded.value || !counted.value) return new Int32Array(0);
  const { funcs, rank } = loaded.value;
  const { funcOwn, funcTotal, funcHits, other } = counted.value;
  const matches = found.value instanceof Uint8Array ? found.value : null;
  const all = new Int32Array(funcs.length);
  let count = 0;
  for (let func = 1; func < funcs.length; func++) {
    if ((funcTotal[func] > 0 || (other && other.funcTotal[func] > 0)) && (!matches || matches[func])) all[count++] = func;
  }
  const list = all.subarray(0, count);
  const by = sorted.value === "change" && !other ? "own" : sorted.value;
  if (by === "name") return list.sort((a, b) => rank[a] - rank[b]);
  if (by === "change") {
    // What is within noise comes last.
    const key = Float64Array.from(funcs, (_, func) => {
      if (func === 0) return 0;
      const of = differenceOf(func);
      return of.noise ? 0 : Math.abs(of.delta);
    });
    return list.sort((a, b) => key[b] - key[a] || funcTotal[b] - funcTotal[a]);
  }
  const key = { own: funcOwn, total: funcTotal, samples: funcHits }[by];
  return list.sort((a, b) => key[b] - key[a] || funcTotal[b] - funcTotal[a]);
});
export const shownFunctions = rows;

export function Functions() {
  if (!loaded.value || !counted.value) return <p class="wait">counting …</p>;
  const { funcs } = loaded.value;
  const { funcOwn, funcTotal, funcHits, total, samples, other, measure } = counted.value;
  const value = (of: number) => amount(counted.value!, of);
  const all = rows.value;
  const column = (name: Column, text: string, number = true): Heading => ({
    text, number, sort: () => { sorted.value = name; }, sorted: sorted.value === name ? (name === "name" ? "ascending" : "descending") : undefined,
  });
  const active = chosen.value === null ? -1 : all.indexOf(chosen.value);
  const activate = (index: number) => select({ func: all[index], way: null, direction: "down" });
  return (
    <div class="functions">
      <Grid kind="grid" label="Functions" columns={other ? "compared" : "plain"}
        headings={[
          column("own", "own"), { text: "%", number: true }, column("total", "total"), { text: "%", number: true },
          column("name", `function (${all.length})`, false), { text: "file" }, column("samples", isMetric(measure) ? "count" : "samples"),
          ...(other ? differenceHeadings(() => { sorted.value = "change"; }, sorted.value === "change" ? "descending" : undefined)
            : [{ text: "±", number: true, title: "95 of 100 such recordings have a total share within this" }]),
        ]}
        count={all.length} reading={counted.value.reading} keyOf={(index) => all[index]} active={active} activate={activate} onMenu={(_, x, y) => openMenu(x, y)}
        row={(index) => {
          const func = all[index], of = funcs[func];
          return {
            key: func, selected: index === active,
            cells: [
              value(funcOwn[func]), <span class="dim">{percent(funcOwn[func], total[0])}</span>,
              value(funcTotal[func]), <span class="dim">{percent(funcTotal[func], total[0])}</span>,
              <><i style={{ background: head.value.categories[of.category].color }} />{of.name}</>,
              <span class="dim">{of.file ? `${of.file}${of.line > 0 ? `:${of.line}` : ""}` : of.crate}</span>,
              isMetric(measure) ? count(funcHits[func]) : String(funcHits[func]),
              ...(other ? cellsOf(differenceOf(func)) : [<span class="dim">{points(total[0] > 0 ? shareError(funcTotal[func] / total[0], samples) : 0)}</span>]),
            ],
          };
        }} />
      {chosen.value !== null && <Sandwich />}
    </div>
  );
}

const side = (direction: "up" | "down") => () => (state.value.tab === "functions" && chosen.value !== null && counted.value
  ? { counted: counted.value, direction, start: chosen.value } : null);
const callers = mirrored("callers", side("up")).shown;
const callees = mirrored("callees", side("down")).shown;

function Sandwich() {
  const [up, down] = [callers.value, callees.value];
  if (!up || !down || !loaded.value || !counted.value || up.func[0] !== down.func[0]) return null;
  // What has been counted: for a moment, that is the function that was chosen before.
  const func = down.func[0];
  const { funcs } = loaded.value;
  const whole = down.total[0];
  const cut = cutText({ func, way: null, direction: "down" });
  const part = (key: number, value: number, name: string, to: number | null) => (
    <li key={key}>
      <button onClick={() => { if (to !== null) select({ func: to, way: null, direction: "down" }); }}>
        <span class="number">{amount(down.counted, value)}</span><span class="number dim">{percent(value, whole)}</span><span class="name">{name}</span>
      </button>
    </li>
  );
  const list = (graph: Mirror) => graph.children(0).slice(0, 50).map((node) => part(graph.func[node], graph.total[node], funcs[graph.func[node]].name, graph.func[node]));
  const above = list(up);
  // What no function of the recording called.
  const started = up.total[0] - up.children(0).reduce((sum, node) => sum + up.total[node], 0);
  if (started > 0) above.push(part(0, started, "(start of the thread)", null));
  return (
    <aside class="sandwich" aria-label="Callers and callees">
      <h2>callers</h2>
      <ul>{above}</ul>
      {above.length > 0 && up.children(0).length > 0 && (
        <FlameCanvas graph={() => callers.value} zoomed={() => 0} icicle={() => false} onZoom={() => {}} label="Callers of the function; the list has the nearest ones" />
      )}
      <h2 class="of">{funcs[func].full || funcs[func].name}</h2>
      <p>{amount(down.counted, whole)} in all, {amount(counted.value, counted.value.funcOwn[func])} itself</p>
      {cut && <p class="note">{cut}</p>}
      <h2>callees</h2>
      <ul>{list(down)}</ul>
      {down.children(0).length > 0 && (
        <FlameCanvas graph={() => callees.value} zoomed={() => 0} icicle={() => true} onZoom={() => {}} label="Callees of the function; the list has the nearest ones" />
      )}
    </aside>
  );
}
