// The whole page: bar, tracks, tabs.

import { useEffect, useRef } from "preact/hooks";
import { Flame, zoomed } from "./flame.tsx";
import { Functions } from "./functions.tsx";
import { MEASURES, type Measure } from "./model.ts";
import { counted, failure, head, loaded } from "./recording.ts";
import { change, chosen, dragged, query, state, TABS } from "./state.ts";
import { Tracks } from "./tracks.tsx";
import { time } from "./units.ts";

const MEASURE_NAMES: Record<Measure, string> = { cpu: "CPU time", asleep: "time asleep", ready: "time ready", wall: "all time" };
const TAB_NAMES = { flame: "Flame graph", functions: "Functions", facts: "Facts" };

export function App() {
  const search = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const keys = (event: KeyboardEvent) => {
      const typing = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
      if (event.key === "Escape") {
        if (typing) { query.value = ""; search.current?.blur(); } else chosen.value = null;
      }
      if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "/") { event.preventDefault(); search.current?.focus(); }
      if (event.key === "u") history.back();
      if (event.key === "i") change({ icicle: !state.value.icicle });
      const tab = TABS[Number(event.key) - 1];
      if (tab) change({ tab });
    };
    addEventListener("keydown", keys);
    return () => removeEventListener("keydown", keys);
  }, []);
  const { range, threads, measure, tab } = state.value;
  const shownRange = dragged.value ?? range;
  return (
    <>
      <header>
        <h1 title={head.command}>{head.title}</h1>
        <select aria-label="Measure" value={measure} onChange={(event) => change({ measure: event.currentTarget.value as Measure })}>
          {MEASURES.filter((word) => word === "cpu" || !head.walltime).map((word) => (
            <option key={word} value={word}>{head.walltime ? "wall time of tasks" : MEASURE_NAMES[word]}</option>
          ))}
        </select>
        <strong class="sum" aria-live="polite">{counted.value ? `${time(counted.value.total[0])} in ${counted.value.samples} samples` : ""}</strong>
        {shownRange && <button class="chip" title="Count the whole time" onClick={() => change({ range: null })}>{time(shownRange[0])} to {time(shownRange[1])} ✕</button>}
        {threads && <button class="chip" title="Count all threads" onClick={() => change({ threads: null })}>{threads.length === 1 ? head.threads[threads[0] - 1]?.name : `${threads.length} threads`} ✕</button>}
        {chosen.value !== null && loaded.value && <button class="chip" title="Select no function" onClick={() => { chosen.value = null; }}>{loaded.value.funcs[chosen.value].name} ✕</button>}
        {zoomed.value !== 0 && loaded.value && <button class="chip" title="Show the whole graph" onClick={() => { zoomed.value = 0; }}>zoom: {loaded.value.funcs[loaded.value.tree.func[zoomed.value]].name} ✕</button>}
        <input ref={search} type="search" aria-label="Search functions" placeholder="search: /" value={query.value}
          onInput={(event) => { query.value = event.currentTarget.value; }} />
      </header>
      {failure.value && <p class="failure" role="alert">{failure.value}</p>}
      <Tracks />
      <nav role="tablist">
        {TABS.map((word) => (
          <button key={word} role="tab" aria-selected={tab === word} onClick={() => change({ tab: word })}>{TAB_NAMES[word]}</button>
        ))}
        {tab === "flame" && <label><input type="checkbox" checked={state.value.icicle} onChange={(event) => change({ icicle: event.currentTarget.checked })} /> root at the top</label>}
        <Legend />
      </nav>
      <main><div class="panel" role="tabpanel" aria-label={TAB_NAMES[tab]}>
        {tab === "flame" ? <Flame /> : tab === "functions" ? <Functions /> : <Facts />}
      </div></main>
    </>
  );
}

function Legend() {
  if (!loaded.value || !counted.value) return null;
  const { funcs } = loaded.value;
  const own = new Float64Array(head.categories.length);
  counted.value.funcOwn.forEach((value, func) => { own[funcs[func].category] += value; });
  return (
    <ul class="legend">
      {head.categories.map((category, i) => own[i] > 0 && (
        <li key={category.name} title={time(own[i])}><i style={{ background: category.color }} />{category.name}</li>
      ))}
    </ul>
  );
}

function Facts() {
  const rows: [string, string][] = [
    ["command", head.command], ["time", time(head.wall)], ["samples", `${head.samples}, one each ${time(head.delay)} of CPU time`],
    ["processes", String(head.processes.length)], ["threads", String(head.threads.length)], ["machine", head.machine], ["written by", head.writer],
  ];
  return (
    <div class="facts">
      <dl>{rows.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}</dl>
      {head.remarks.map((remark) => <p key={remark}>{remark}</p>)}
    </div>
  );
}
