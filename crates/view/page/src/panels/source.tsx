// The source of a function, with the time of each line. What is chosen anywhere is shown at its line with most time of its own.

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { codeFunction, codeLine } from "../code.ts";
import { isMetric } from "../model.ts";
import { counted, head, loaded } from "../recording.ts";
import { source, sourceFiles, watchSource, type Shown } from "../source.ts";
import { change, chosen, state } from "../state.ts";
import { percent, time } from "../units.ts";
import { Assembly } from "./assembly.tsx";
import { Grid, type RowProps } from "./grid.tsx";

// The active line of the file that is shown.
const activeLine = signal(0);
let shown = "";

// By row: its line, and the index of its times, or -1.
interface Rows { line: number[]; times: number[] }

function rowsOf({ source: { lines }, text }: Shown): Rows {
  const of = [...lines.line];
  if (!text) return { line: of, times: of.map((_, i) => i) };
  const count = Math.max(text.length, of[of.length - 1] ?? 0);
  const times = new Array<number>(count).fill(-1);
  of.forEach((line, i) => { times[line - 1] = i; });
  return { line: times.map((_, i) => i + 1), times };
}

// Goes to the line with the most time of its own, and from there to the one with the next most.
export function nextHottest(): void {
  const now = source.value;
  if (!now) return;
  const rows = rowsOf(now), { own, total } = now.source.lines;
  const order = [...rows.times.keys()].filter((row) => rows.times[row] >= 0);
  order.sort((a, b) => own[rows.times[b]] - own[rows.times[a]] || total[rows.times[b]] - total[rows.times[a]]);
  if (order.length) activeLine.value = rows.line[order[(order.indexOf(rows.line.indexOf(activeLine.value)) + 1) % order.length]];
}

export function Source() {
  useEffect(watchSource, []);
  const now = source.value, files = sourceFiles.value;
  useEffect(() => {
    // Another file or another function: its hottest line is shown.
    if (!now) return;
    const key = JSON.stringify([sourceFiles.value![now.source.file]?.path, chosen.value]);
    if (key === shown) return;
    shown = key;
    activeLine.value = now.source.at;
  }, [now]);
  const line = activeLine.value;
  useEffect(() => {
    const path = now && sourceFiles.value![now.source.file]?.path;
    const next = path && line > 0 ? { path, line } : null;
    if (JSON.stringify(next) === JSON.stringify(codeLine.value)) return;
    codeFunction.value = null;
    codeLine.value = next;
  }, [now, line]);
  if (!now || !files || !loaded.value) return <p class="wait">counting …</p>;
  const { file, files: times, lines, whole } = now.source;
  if (file < 0) return <div class="column"><p class="note">{nothing}</p><Assembly /></div>;
  const { funcs } = loaded.value;
  const rows = rowsOf(now);
  const most = Math.max(...lines.own, 0);
  const order = files.map((_, i) => i).filter((i) => times.total[i] > 0 || i === file).sort((a, b) => times.own[b] - times.own[a] || times.total[b] - times.total[a]);
  const row = (index: number): RowProps => {
    const line = rows.line[index], at = rows.times[index];
    const name = at >= 0 ? funcs[lines.func[at]].name : "";
    const own = at >= 0 ? lines.own[at] : 0, total = at >= 0 ? lines.total[at] : 0;
    return {
      key: line, selected: line === activeLine.value,
      cells: [
        own > 0 ? <span class="heat" style={{ backgroundSize: `${(100 * own) / most}% 100%` }}>{time(own)}</span> : "",
        <span class="dim">{own > 0 ? percent(own, whole) : ""}</span>, total > 0 ? time(total) : "", <span class="dim">{total > 0 ? percent(total, whole) : ""}</span>,
        <span class="dim">{line}</span>, now.text ? <code>{line <= now.text.length ? now.tokens!.line(line - 1).map(({ kind, text }) => (kind ? <span class={kind}>{text}</span> : text)) : <span class="dim">(the file has no such line: it is not that of the recording)</span>}</code> : <span title={name}>[{name}]</span>,
      ],
    };
  };
  return (
    <div class="column">
      <div class="bar heapbar">
        <select aria-label="Source file" value={file} onChange={(event) => change({ source: files[Number(event.currentTarget.value)].path })}>
          {order.map((i) => <option key={i} value={i}>{percent(times.own[i], whole) || "0 %"} {files[i].name}</option>)}
        </select>
        <button class="chip" onClick={nextHottest} title="j: the line with the most time of its own; again: the next one">hottest line</button>
        <span>{time(times.own[file])} own, {time(times.total[file])} in all</span>
        <span class="dim" role="note">{remark(now, files[file])}</span>
      </div>
      <div class="functions">
        <Grid kind="grid" label={`Lines of ${files[file].name}`} columns="source"
          headings={[
            { text: "own", number: true, title: "time of stacks that end in the line, or in library code that it calls" }, { text: "%", number: true },
            { text: "total", number: true, title: "time of stacks that pass through the line" }, { text: "%", number: true }, { text: "line", number: true },
            { text: now.text ? "source" : "function" },
          ]}
          count={rows.line.length} reading={counted.value?.reading} keyOf={(index) => rows.line[index]} active={rows.line.indexOf(line)} activate={(index) => { activeLine.value = rows.line[index]; }} row={row} />
        <Assembly />
      </div>
    </div>
  );
}

const nothing = "No code with source lines is in this selection. Rust keeps lines with `debug = \"line-tables-only\"` in the profile of Cargo.toml, C and C++ with -g1.";

function remark({ text }: Shown, file: { path: string; remark: string; left: boolean }): string {
  const parts = file.remark ? [file.remark] : [];
  if (isMetric(state.value.measure)) parts.unshift("CPU time: lines have no allocations here");
  if (counted.value?.other) parts.unshift("only of this recording and time: lines are not compared");
  if (text) parts.push(file.path);
  else if (!head.value.sources.asked) parts.push(`${file.path}: the text is not in this page; \`stackglass view --with-source\` writes it`);
  else if (file.left) parts.push(`${file.path}: there was no more room for its text; hotter files come first`);
  else if (!file.remark) parts.push(`${file.path} was not found when this page was made`);
  return parts.join(" · ");
}
