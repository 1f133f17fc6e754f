// The instructions of a function below the source lines that they are of, with the time of each.

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { code, codeFunction, codeLine, watchCode } from "../code.ts";
import type { Instructions } from "../kernel/code.ts";
import { head } from "../recording.ts";
import { source, sourceFiles } from "../source.ts";
import { percent, time } from "../units.ts";
import { Grid, type RowProps } from "./grid.tsx";

const active = signal(-1);
let shown = "";

// A row is an instruction, or the source line (-1 - index of the first instruction that is of it).
function rowsOf({ file, line, inner }: Instructions): number[] {
  const rows: number[] = [];
  for (let i = 0; i < line.length; i++) {
    if (i === 0 || file[i] !== file[i - 1] || line[i] !== line[i - 1] || inner[i] !== inner[i - 1]) rows.push(-1 - i);
    rows.push(i);
  }
  return rows;
}

// Instructions by time, those of the active line first.
function order({ own, file, line }: Instructions): number[] {
  const at = codeLine.value;
  const isHere = (i: number) => (at && sourceFiles.value?.[file[i]]?.path === at.path && line[i] === at.line ? 1 : 0);
  return [...own.keys()].sort((a, b) => isHere(b) - isHere(a) || own[b] - own[a] || a - b);
}

// Goes to the instruction with the most time, and from there to the one with the next most.
export function nextHottestInstruction(): void {
  const of = code.value?.instructions;
  if (!of) return;
  const all = [...of.own.keys()].filter((i) => of.own[i] > 0).sort((a, b) => of.own[b] - of.own[a] || a - b);
  const rows = rowsOf(of);
  if (all.length) active.value = rows.indexOf(all[(all.indexOf(rows[active.value]) + 1) % all.length]);
}

export function Assembly() {
  useEffect(watchCode, []);
  const now = code.value;
  useEffect(() => {
    if (!now?.instructions) return;
    const { module, address } = now.functions.find(({ number }) => number === now.shown)!;
    const key = JSON.stringify([module, address, codeLine.value]);
    if (key === shown) return;
    shown = key;
    active.value = rowsOf(now.instructions).indexOf(order(now.instructions)[0] ?? -1);
  }, [now]);
  if (!head.value.code) return <Message text="The instructions are not in this page: `stackglass view --with-asm` writes them." />;
  if (!head.value.code.functions) return <Message text={`No code could be disassembled. ${left()}`} />;
  if (!now) return <p class="wait">counting …</p>;
  const of = now.instructions;
  if (!of) return <Message text={`No sample ends in code of this line, or that code is not disassembled. ${left()}`} />;
  const rows = rowsOf(of);
  const whole = source.value?.source.whole ?? 0, most = Math.max(...of.own, 0);
  const sum = now.functions.find(({ number }) => number === now.shown)!;
  const files = sourceFiles.value, text = source.value;
  const row = (index: number): RowProps => {
    const i = rows[index];
    if (i < 0) {
      const first = -1 - i, name = of.file[first] >= 0 ? files?.[of.file[first]]?.name ?? "" : "";
      const here = text?.text && text.source.file === of.file[first] ? text.text[of.line[first] - 1]?.trim() : "";
      const isActive = codeLine.value !== null && codeLine.value.path === files?.[of.file[first]]?.path && codeLine.value.line === of.line[first];
      return {
        key: `l${first}`, selected: index === active.value,
        cells: ["", "", <span class="dim">{name ? of.line[first] : ""}</span>,
          <span class={isActive ? "match" : "dim"} title={`${name}:${of.line[first]} ${of.inner[first]}`}>{here || `${of.inner[first]}${name ? ` (${name.slice(name.lastIndexOf("/") + 1)})` : ""}`}</span>],
      };
    }
    return {
      key: i, selected: index === active.value,
      cells: [
        of.own[i] > 0 ? <span class="heat" style={{ backgroundSize: `${(100 * of.own[i]) / most}% 100%` }}>{time(of.own[i])}</span> : "",
        <span class="dim">{of.own[i] > 0 ? percent(of.own[i], whole) : ""}</span>, <code class="dim">{of.address[i].toString(16)}</code>, <code>{of.text[i]}</code>,
      ],
    };
  };
  return (
    <section class="assembly" aria-label="Instructions">
      <div class="bar heapbar">
        <select aria-label="Disassembled function" value={now.shown} onChange={(event) => { codeFunction.value = now.functions.find(({ number }) => number === Number(event.currentTarget.value)) ?? null; }}>
          {now.functions.map(({ number, name, module, time }) => <option key={number} value={number}>{percent(time, whole) || "0 %"} {name} ({module})</option>)}
        </select>
        <button class="chip" onClick={nextHottestInstruction} title="J: the instruction with the most time; again: the next one">hottest instruction</button>
        <span>{time(sum.time)} at its instructions</span>
      </div>
      <Grid kind="grid" label={`Instructions of ${sum.name}`} columns="code"
        headings={[{ text: "own", number: true, title: "time of samples taken at the instruction: a slow one often shows at the one behind it" }, { text: "%", number: true }, { text: "address", number: true }, { text: "instruction" }]}
        count={rows.length} active={active.value} activate={(index) => { active.value = index; }} row={row} />
      <p class="note">A CPU is interrupted when an instruction is done: the time of a slow one often shows at the next.</p>
    </section>
  );
}

function Message({ text }: { text: string }) {
  return <section class="assembly" aria-label="Instructions"><p class="note">{text}</p></section>;
}

// What could not be disassembled, and why.
function left(): string {
  return (code.value?.left ?? []).slice(0, 3).map(([module, why, ns]) => `${time(ns)} in ${module || "code"}: ${why}.`).join(" ");
}
