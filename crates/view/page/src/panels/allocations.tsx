// Allocations as a table, by type, site and more, of the selection. A type counts alone when it is chosen; of sites the function is selected.

import { computed, signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { allocationRows, type Compared, watchAllocations } from "../allocations.ts";
import { matcher } from "../kernel/heap.ts";
import { ALLOCATION_KEYS, type AllocationKey, type Measure } from "../model.ts";
import { head, loaded } from "../recording.ts";
import { bytes, count, counted } from "../sizes.ts";
import { change, query, state } from "../state.ts";
import { select } from "../target.ts";
import { percent } from "../units.ts";
import { Grid, type Heading } from "./grid.tsx";

// One, and many.
const NOUNS: Record<AllocationKey, [string, string]> = {
  type: ["type", "types"], site: ["site", "sites"], line: ["own line", "own lines"], function: ["function", "functions"], crate: ["crate or library", "crates or libraries"],
  thread: ["thread", "threads"], process: ["process", "processes"], size: ["size in bytes", "sizes in bytes"],
};
const BY_TITLES: Partial<Record<AllocationKey, string>> = {
  site: "the innermost lines outside of allocators and standard libraries", line: "the innermost lines of the program itself", function: "the functions of sites", crate: "of sites",
};

type Column = "change" | "count" | "bytes" | "liveCount" | "liveBytes" | "peakBytes" | "leakedBytes" | "temporary" | "name";
const OF_METRIC: Partial<Record<Measure, Column>> = {
  "bytes": "bytes", "count": "count", "live-bytes": "liveBytes", "live-count": "liveCount", "peak-bytes": "peakBytes", "leaked-bytes": "leakedBytes", "temporary": "temporary",
};
// By what rows are sorted; if nothing was chosen, by what is counted.
const wanted = signal<Column | null>(null);
const sorted = computed<Column>(() => wanted.value ?? OF_METRIC[state.value.measure] ?? "bytes");

// What rows are compared by.
const comparedBy = computed(() => (sorted.value === "name" || sorted.value === "change" ? OF_METRIC[state.value.measure] ?? "bytes" : sorted.value) as Exclude<Column, "name" | "change">);
// By name, the row of what is compared with.
const others = computed(() => new Map(allocationRows.value?.other?.names.map((name, row) => [name, row])));

function before(all: Compared, row: number): number {
  const other = others.value.get(all.names[row]);
  return other === undefined ? 0 : all.other![comparedBy.value][other];
}

const rows = computed<number[]>(() => {
  const all = allocationRows.value;
  if (!all) return [];
  const { names, short, functions } = all;
  const matches = matcher(query.value), by = sorted.value;
  const found = [...names.keys()].filter((row) => matches(`${names[row]} ${short[row]} ${functions[row]}`));
  const byName = (a: number, b: number) => (names[a] < names[b] ? -1 : 1);
  if (by === "name") return found.sort(byName);
  if (by === "change") {
    const change = (row: number) => (all.other ? Math.abs(all[comparedBy.value][row] - before(all, row)) : 0);
    return found.sort((a, b) => change(b) - change(a) || byName(a, b));
  }
  return found.sort((a, b) => all[by][b] - all[by][a] || byName(a, b));
});

export function Allocations() {
  useEffect(watchAllocations, []);
  const all = allocationRows.value, { by } = state.value;
  const keys = ALLOCATION_KEYS.filter((key) => key !== "process" || head.value.processes.length > 1);
  return (
    <div class="column">
      <div class="bar heapbar">
        <div class="lists" role="group" aria-label="What the rows are">
          {keys.map((key) => <button key={key} class="chip" title={BY_TITLES[key]} aria-pressed={by === key} onClick={() => change({ by: key, row: "" })}>By {NOUNS[key][0].split(" ")[key === "line" ? 1 : 0]}</button>)}
        </div>
        <span class="dim" role="status">{all && !all.why ? summary(all) : ""}</span>
      </div>
      {!all ? <p class="wait">counting …</p> : all.why ? <p class="wait">{all.why[0].toUpperCase()}{all.why.slice(1)}.</p> : all.by === by ? <Rows all={all} /> : <p class="wait">counting …</p>}
      {all && notes(all).map((note) => <p key={note} class="note" title={all.slices && note.startsWith("Counted") ? "Slices count as a whole if their middle lies in the range. What is alive is so at the end." : undefined}>{note}</p>)}
    </div>
  );
}

// As `stackglass allocs` says it first.
function summary(all: Compared): string {
  const at = all.names.length;
  const [blocks, allocations] = [all.liveCount[at], all.count[at]];
  return [
    `${bytes(all.bytes[at])}${all.error[at] > 0 ? ` ± ${percent(all.error[at], 1)}` : ""} in ${counted(allocations, "allocation", "allocations")}`,
    `peak ${bytes(all.peakBytes[at])}`,
    `at end ${blocks === 0 ? "nothing alive" : `${bytes(all.liveBytes[at])} in ${counted(blocks, "block", "blocks")} alive`}`,
    `${percent(all.temporary[at], allocations) || "0 %"} temporary`, `${percent(all.typed, allocations) || "100 %"} with a type`,
  ].join("; ");
}

const seconds = (ns: number) => `${(ns / 1e9).toFixed(3)} s`;

function notes({ slices, mappings, why }: Compared): string[] {
  const { before, allocations } = head.value;
  return [
    slices && `Counted from ${seconds(slices.range[0])} to ${seconds(slices.range[1])}, ${counted(slices.count, "slice of time", "slices of time")}`,
    mappings.count > 0 && `In no total: ${bytes(mappings.bytes)} in ${counted(mappings.count, "mapping", "mappings")} that programs requested from the kernel, ${bytes(mappings.liveBytes)} alive.`,
    ...[...(why ? [] : allocations!.notes), ...(why || slices || state.value.measure !== "leaked-bytes" ? [] : allocations!.leakNotes)].map((note) => `${note[0].toUpperCase()}${note.slice(1)}.`),
    before && !before.allocations && `${before.name} has no allocations to compare with.`,
  ].filter((note): note is string => Boolean(note));
}

// Figures; the pointer tells the exact ones.
const size = (value: number) => <span title={`${value} bytes`}>{bytes(value)}</span>;
const counting = (value: number) => <span title={String(value)}>{count(value)}</span>;

// The value before, and by how much there is more or less.
function changes(of: string, now: number, then: number) {
  const text = of.endsWith("ytes") ? size : counting;
  return [text(then), now === then ? <span class="dim">0</span> : <span>{now < then ? "−" : "+"}{text(Math.abs(now - then))}</span>];
}

function Rows({ all }: { all: Compared }) {
  const { by } = all, shown = rows.value, { allocated, row: chosen } = state.value;
  const column = (name: Column, text: string, title?: string): Heading => ({
    text, number: name !== "name", title, sort: () => { wanted.value = name; }, sorted: sorted.value === name ? (name === "name" ? "ascending" : "descending") : undefined,
  });
  const share = comparedBy.value, whole = all[share][all.names.length], { other } = all;
  const hasLeaks = head.value.allocations!.kept && !all.slices, isEstimate = !head.value.allocations!.exact, hasFunctions = by === "site" || by === "line";
  const active = shown.findIndex((row) => all.names[row] === (by === "type" ? allocated : chosen));
  const activate = (index: number) => {
    const row = shown[index], name = all.names[row];
    if (by === "type") return change({ allocated: name });
    change({ row: name });
    const func = loaded.value && all.functions[row] ? loaded.value.names.numbers([all.functions[row]])[0] : undefined;
    if (func !== undefined) select({ func, way: null, direction: "down" });
  };
  const open = (index: number) => {
    const row = shown[index];
    if (by === "type") change({ allocated: "" });
    if (all.functions[row]) change({ tab: "functions" });
    if (by === "thread" && all.thread[row] > 0) change({ threads: [all.thread[row]] });
    if (by === "process") change({ threads: head.value.threads.flatMap(({ process }, i) => (process === all.process[row] ? [i + 1] : [])) });
  };
  return (
    <Grid kind="grid" label={`Allocations by ${NOUNS[by][0]}`} columns="allocations" count={shown.length} reading={all.reading} keyOf={(index) => all.names[shown[index]]} active={active}
      activate={activate} onOpen={open}
      headings={[
        { text: "%", number: true }, column("count", "count"), column("bytes", "bytes"), ...(isEstimate ? [{ text: "±", number: true, title: "standard error of the bytes" }] : []),
        column("liveBytes", "live", "bytes alive at the end"), column("liveCount", "blocks", "alive at the end"), column("peakBytes", "peak", "bytes when the process had the most"),
        ...(hasLeaks ? [column("leakedBytes", "leaked", "bytes alive at the end that nothing holds")] : []),
        column("temporary", "temp.", "freed before the next allocation of their thread"), { text: "average", number: true }, { text: "sites", number: true },
        ...(other ? [{ text: "before", number: true, title: `${share === "bytes" ? "bytes" : "of the sorted column"} in what is compared with` }, column("change", "change")] : []),
        column("name", `${NOUNS[by][0]} (${count(shown.length)})`), ...(hasFunctions ? [{ text: "function" }] : []),
      ]}
      row={(index) => {
        const row = shown[index], name = all.names[row], allocations = all.count[row];
        return {
          key: name, selected: index === active,
          cells: [
            <span class="dim">{percent(all[share][row], whole)}</span>, counting(allocations), size(all.bytes[row]), ...(isEstimate ? [<span class="dim">{percent(all.error[row], 1)}</span>] : []),
            size(all.liveBytes[row]), counting(all.liveCount[row]), size(all.peakBytes[row]), ...(hasLeaks ? [size(all.leakedBytes[row])] : []),
            counting(all.temporary[row]), <span class="dim">{bytes(Math.floor(all.bytes[row] / Math.max(allocations, 1)))}</span>, <span class="dim">{count(all.sites[row])}</span>,
            ...(other ? changes(share, all[share][row], before(all, row)) : []),
            <span title={name}>{all.short[row]}</span>, ...(hasFunctions ? [<span class="dim" title={all.functions[row]}>{all.functions[row] === name ? "" : all.functions[row]}</span>] : []),
          ],
        };
      }} />
  );
}

