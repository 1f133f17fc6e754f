// What the pointer is over, in words.

import { signal } from "@preact/signals";
import { difference, shareError } from "../compare.ts";
import { cutText } from "../cuts.ts";
import { amount, hitsText } from "../measures.ts";
import type { Place } from "../model.ts";
import type { Nodes } from "../nodes.ts";
import { head, loaded } from "../recording.ts";
import { percent, points } from "../units.ts";

// `note`: a line of its own. `place`: where it is in the tree, if it is there.
export interface Hovered { func: number; x: number; y: number; figures: string[]; note?: string; place?: Place }
export const hovered = signal<Hovered | null>(null);

// The figures of a node.
export function figures(graph: Nodes, node: number): string[] {
  const { whole, otherWhole, counted } = graph;
  const share = whole > 0 ? graph.total[node] / whole : 0;
  const lines = [
    `${amount(counted, graph.total[node])}, ${percent(graph.total[node], whole)} of the selection; own ${amount(counted, graph.own[node])}`,
    // What the counts of other formats mean is not known.
    hitsText(counted, graph.hits[node]) + (counted.samples < Infinity && !head.value.untimed ? `; 95 % of such recordings are within ±${points(shareError(share, counted.samples))}` : ""),
  ];
  if (counted.other) {
    const of = difference(graph.total[node], whole, counted.samples, graph.otherTotal[node], otherWhole, counted.other.samples);
    lines.push(`${percent(of.before, 1)} before, ${of.delta >= 0 ? "+" : "−"}${points(Math.abs(of.delta))} ± ${points(of.error)}${of.noise ? ": within noise" : ""}`);
  }
  return lines;
}

export function Tip() {
  const at = hovered.value;
  if (!at || !loaded.value) return null;
  const func = loaded.value.funcs[at.func];
  const cut = at.place ? cutText(at.place) : "";
  const left = Math.max(4, Math.min(at.x + 14, innerWidth - 430));
  const below = at.y + 190 < innerHeight;
  return (
    <div class="tip" style={{ left: `${left}px`, top: below ? `${at.y + 16}px` : "auto", bottom: below ? "auto" : `${innerHeight - at.y + 8}px` }}>
      <strong>{func.full || func.name}</strong>
      {func.file && <div>{func.file}{func.line > 0 ? `:${func.line}` : ""}</div>}
      {(func.module || func.crate) && <div class="dim">{[func.crate && func.file ? `crate ${func.crate}` : "", func.module].filter((part) => part).join(", ")}</div>}
      {at.figures.map((line) => <div key={line}>{line}</div>)}
      {cut && <div>{cut}</div>}
      {at.func !== 0 && <div class="dim">{head.value.categories[func.category].name}{at.note ? `; ${at.note}` : ""}</div>}
    </div>
  );
}
