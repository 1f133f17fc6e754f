// All functions of the selection as a table, and for the selected one its callers and callees.

import { signal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { matches } from "./flame.tsx";
import type { Counts } from "./model.ts";
import { counted, head, loaded, type Loaded } from "./recording.ts";
import { chosen, query } from "./state.ts";
import { percent, time } from "./units.ts";

const ROW = 24;
type Column = "own" | "total" | "name";
const sorted = signal<Column>("own");
const scrolled = signal(0);

export function Functions() {
  const list = useRef<HTMLDivElement>(null);
  if (!loaded.value || !counted.value) return <p class="wait">counting …</p>;
  const { funcs } = loaded.value;
  const { funcOwn, funcTotal, total } = counted.value;
  const rows: number[] = [];
  for (let func = 1; func < funcs.length; func++) {
    if (funcTotal[func] > 0 && (query.value === "" || matches(funcs[func].name, query.value))) rows.push(func);
  }
  const by = { own: funcOwn, total: funcTotal };
  if (sorted.value === "name") rows.sort((a, b) => (funcs[a].name < funcs[b].name ? -1 : 1));
  else {
    const key = by[sorted.value];
    rows.sort((a, b) => key[b] - key[a] || funcTotal[b] - funcTotal[a]);
  }
  const height = list.current?.clientHeight ?? 600;
  const first = Math.max(0, Math.floor(scrolled.value / ROW) - 8);
  const shown = rows.slice(first, first + Math.ceil(height / ROW) + 16);
  const heading = (column: Column, text: string) => (
    <button class="head" aria-pressed={sorted.value === column} onClick={() => { sorted.value = column; }}>{text}</button>
  );
  return (
    <div class="functions">
      <div class="table">
        <div class="row headings">{heading("own", "own")}<span />{heading("total", "total")}<span />{heading("name", `function (${rows.length})`)}<span>file</span></div>
        <div class="list" ref={list} tabIndex={0} aria-label="Functions" onScroll={(event) => { scrolled.value = event.currentTarget.scrollTop; }}>
          <div style={{ height: `${rows.length * ROW}px`, position: "relative" }}>
            {shown.map((func, i) => (
              <button key={func} class="row" style={{ top: `${(first + i) * ROW}px` }} aria-pressed={chosen.value === func}
                onClick={() => { chosen.value = chosen.value === func ? null : func; }}>
                <span class="number">{time(funcOwn[func])}</span><span class="number dim">{percent(funcOwn[func], total[0])}</span>
                <span class="number">{time(funcTotal[func])}</span><span class="number dim">{percent(funcTotal[func], total[0])}</span>
                <span class="name"><i style={{ background: head.categories[funcs[func].category].color }} />{funcs[func].name}</span>
                <span class="dim file">{funcs[func].file ? `${funcs[func].file}${funcs[func].line > 0 ? `:${funcs[func].line}` : ""}` : funcs[func].module}</span>
              </button>
            ))}
          </div>
        </div>
      </div>
      {chosen.value !== null && <Sandwich func={chosen.value} loaded={loaded.value} counts={counted.value} />}
    </div>
  );
}

// Totals by neighbour: of the outermost calls of a function by their callers, and of what it calls.
export function neighbours(func: number, { tree }: Loaded, { own, total }: Counts) {
  const callers = new Map<number, number>(), callees = new Map<number, number>();
  const above = new Uint8Array(tree.parent.length);
  let self = 0;
  const add = (to: Map<number, number>, of: number, value: number) => to.set(of, (to.get(of) ?? 0) + value);
  for (let box = 1; box < tree.parent.length; box++) {
    const parent = tree.parent[box];
    above[box] = above[parent] || tree.func[parent] === func ? 1 : 0;
    if (total[box] <= 0) continue;
    if (tree.func[box] === func) {
      self += own[box];
      if (!above[box]) add(callers, tree.func[parent], total[box]);
    }
    if (tree.func[parent] === func) add(callees, tree.func[box], total[box]);
  }
  const list = (of: Map<number, number>) => [...of].sort((a, b) => b[1] - a[1]);
  return { callers: list(callers), callees: list(callees), self };
}

function Sandwich({ func, loaded: { funcs }, loaded: all, counts }: { func: number; loaded: Loaded; counts: Counts }) {
  const { callers, callees, self } = neighbours(func, all, counts);
  const whole = counts.funcTotal[func];
  const part = ([of, value]: [number, number]) => (
    <li key={of}><button onClick={() => { if (of !== 0) chosen.value = of; }}>
      <span class="number">{time(value)}</span><span class="number dim">{percent(value, whole)}</span><span class="name">{of === 0 ? "(start of the thread)" : funcs[of].name}</span>
    </button></li>
  );
  return (
    <aside class="sandwich" aria-label="Callers and callees">
      <h2>callers</h2><ul>{callers.slice(0, 50).map(part)}</ul>
      <h2>{funcs[func].full || funcs[func].name}</h2>
      <p>{time(whole)} in all, {time(self)} itself</p>
      <h2>callees</h2><ul>{callees.slice(0, 50).map(part)}</ul>
    </aside>
  );
}
