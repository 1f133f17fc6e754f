// The whole page: bar, tracks, tabs.

import { computed } from "@preact/signals";
import type { FunctionComponent } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { commandOf, copyCommand, exportFolded, exportJson, exportPng, exportSvg, said } from "./export.ts";
import { dialog, runKey, TAB_NAMES } from "./commands.ts";
import { amount, measuresOf, nameOf, wholeText } from "./measures.ts";
import type { Measure } from "./model.ts";
import { Allocations } from "./panels/allocations.tsx";
import { Chips } from "./panels/chips.tsx";
import { Dialogs } from "./panels/dialogs.tsx";
import { Facts } from "./panels/facts.tsx";
import { Flame } from "./panels/flame.tsx";
import { Functions } from "./panels/functions.tsx";
import { Heap } from "./panels/heap.tsx";
import { Menu, openMenuAtFocus } from "./panels/menu.tsx";
import { TimeOrder } from "./panels/order.tsx";
import { Source } from "./panels/source.tsx";
import { Tasks } from "./panels/tasks.tsx";
import { CallTree } from "./panels/tree.tsx";
import { counted, failure, found, head, isRead, loaded } from "./recording.ts";
import { ended } from "./served.ts";
import { addStep, change, query, state, type Tab } from "./state.ts";
import { alone, shownTabs, shownTab } from "./tabs.ts";
import { Tracks } from "./tracks.tsx";
import { percent } from "./units.ts";

const PANELS: Record<Tab, FunctionComponent> = {
  flame: Flame, functions: Functions, tree: CallTree, order: TimeOrder, source: Source, allocations: Allocations, heap: Heap, tasks: Tasks, facts: Facts,
};

export function App() {
  const search = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const keys = (event: KeyboardEvent) => {
      if (event.key === "Escape" && event.target === search.current) {
        query.value = "";
        search.current!.blur();
      } else if (event.key === "ContextMenu" || (event.key === "F10" && event.shiftKey)) openMenuAtFocus();
      else if (!runKey(event)) return;
      event.preventDefault();
    };
    addEventListener("keydown", keys);
    return () => removeEventListener("keydown", keys);
  }, []);
  const { measure } = state.value;
  const tab = shownTab.value;
  // What else can be drawn at first needs no columns.
  const Panel = isRead.value || tab === "flame" || tab === "facts" ? PANELS[tab] : Reading;
  const isReading = !isRead.value && !failure.value;
  const searched = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || query.value === "" || isList(tab)) return;
    addStep({ kind: "with", of: [query.value] });
    query.value = "";
    search.current!.blur();
  };
  return (
    <>
      <header>
        <h1 title={head.value.command}>{head.value.title}</h1>
        {alone.value || <select aria-label="Measure" value={measure} onChange={(event) => change({ measure: event.currentTarget.value as Measure })}>
          {measuresOf(head.value).map((word) => <option key={word} value={word}>{nameOf(word, head.value)}</option>)}
        </select>}
        <strong class="sum" aria-live="polite">{counted.value && !alone.value ? wholeText(counted.value) : ""}</strong>
        <span class={isReading ? "found reading" : "found"} aria-live="polite">{isReading ? "reading the recording …" : isList(tab) ? "" : matched.value}</span>
        <input ref={search} type="search" aria-label={tab === "heap" ? "Search types" : tab === "tasks" ? "Search tasks" : tab === "allocations" ? "Search rows" : "Search functions"} placeholder="search: /"
          title={isList(tab) ? "Words that names have" : "A text or a regular expression; Enter counts only stacks with a match"}
          value={query.value} onInput={(event) => { query.value = event.currentTarget.value; }} onKeyDown={searched} />
      </header>
      {failure.value && <p class="failure" role="alert">{failure.value}</p>}
      {ended.value && <p class="ended" role="status">stackglass has ended. This page works on, but cannot be loaded again.</p>}
      {alone.value || head.value.untimed || <Tracks />}
      <main>
        <div class="tabs">
          <div role="tablist" aria-label="Panels">
            {shownTabs.value.map((word) => (
              <button key={word} id={`tab-${word}`} role="tab" aria-selected={tab === word} aria-controls="panel" onClick={() => change({ tab: word })}>{TAB_NAMES[word]}</button>
            ))}
          </div>
          {(tab === "flame" || tab === "tree") && (
            <label><input type="checkbox" checked={state.value.inverted} onChange={(event) => change({ inverted: event.currentTarget.checked, zoom: [] })} /> inverted</label>
          )}
          {tab === "flame" && <>
            <label><input type="checkbox" checked={state.value.icicle} onChange={(event) => change({ icicle: event.currentTarget.checked })} /> root at the top</label>
            <label><input type="checkbox" checked={state.value.order === "size"} onChange={(event) => change({ order: event.currentTarget.checked ? "size" : "name" })} /> largest first</label>
          </>}
          {alone.value || <select class="save" aria-label="Save or copy" aria-disabled={isReading} value="" onChange={(event) => {
            saves[event.currentTarget.value]?.();
            event.currentTarget.value = "";
          }}>
            <option value="">save …</option>
            {Object.keys(saves).map((name) => <option key={name} value={name}>{name}</option>)}
          </select>}
          <button class="chip" title="Copy the command that prints this" onClick={copyCommand}><code>{commandOf(state.value).split("   #")[0]}</code> <span class="dim">copy</span></button>
          <button class="chip" title="All commands (Ctrl-K), all keys (?)" aria-label="All commands" onClick={() => { dialog.value = "commands"; }}>…</button>
          <span role="status" class="said">{said.value}</span>
        </div>
        {alone.value || <div class="bar above"><Chips /><Legend /></div>}
        <div class="panel" id="panel" role="tabpanel" aria-labelledby={`tab-${tab}`} aria-busy={isReading}>
          <Panel />
        </div>
        <Menu />
      </main>
      <Dialogs />
    </>
  );
}

function Reading() {
  return <p class="wait">reading the recording …</p>;
}

// Tabs with lists of their own: a search shows the rows that match.
const isList = (tab: string) => tab === "heap" || tab === "tasks" || tab === "allocations";

const saves: Record<string, () => void> = {
  "flame graph as SVG": exportSvg, "flame graph as PNG": exportPng, "stacks as folded text": exportFolded, "what is shown as JSON": exportJson,
};

// What was found, in words: functions, and the time with one of them on the stack.
const matched = computed(() => {
  const matches = found.value;
  if (matches === null || !counted.value) return "";
  if (typeof matches === "string") return matches;
  const { tree: { parent, func }, total, funcTotal } = counted.value;
  const inside = new Uint8Array(parent.length);
  let sum = 0, functions = 0;
  for (let box = 1; box < parent.length; box++) {
    const is = matches[func[box]];
    if (is && !inside[parent[box]]) sum += total[box];
    inside[box] = is || inside[parent[box]] ? 1 : 0;
  }
  for (let func = 1; func < matches.length; func++) if (matches[func] && funcTotal[func] > 0) functions++;
  return `${functions} ${functions === 1 ? "function" : "functions"}, ${amount(counted.value, sum)}, ${percent(sum, total[0])}`;
});

function Legend() {
  if (!loaded.value || !counted.value) return null;
  if (counted.value.other) {
    return (
      <ul class="legend">
        <li><i class="less" />less than before</li><li><i class="more" />more than before</li><li><i class="same" />within noise</li>
      </ul>
    );
  }
  const { funcs } = loaded.value;
  const own = counted.value.first?.categories ?? new Float64Array(head.value.categories.length);
  if (!counted.value.first) counted.value.funcOwn.forEach((value, func) => { own[funcs[func].category] += value; });
  return (
    <ul class="legend">
      {head.value.categories.map((category, i) => own[i] > 0 && (
        <li key={category.name} title={amount(counted.value!, own[i])}><i style={{ background: category.color }} />{category.name}</li>
      ))}
    </ul>
  );
}
