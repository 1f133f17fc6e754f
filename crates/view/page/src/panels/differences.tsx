// Columns of differences from what is compared with.

import { difference, differenceColor, type Difference } from "../compare.ts";
import type { Nodes } from "../nodes.ts";
import { percent, points } from "../units.ts";
import type { Heading } from "./grid.tsx";

export function differenceHeadings(sort?: () => void, sorted?: "ascending" | "descending"): Heading[] {
  return [
    { text: "before", number: true, title: "share in what is compared with" },
    { text: "change", number: true, title: "difference of the shares, and its error", sort, sorted },
  ];
}

export function cellsOf(of: Difference) {
  const text = `${of.delta >= 0 ? "+" : "−"}${points(Math.abs(of.delta))} ± ${points(of.error)}`;
  return [
    percent(of.before, 1),
    of.noise ? <span class="noise" title="within noise">{text}</span> : <span class="changed" style={{ background: differenceColor(of) }}>{text}</span>,
  ];
}

export function differenceCells(graph: Nodes, node: number) {
  const { samples, other } = graph.counted;
  return cellsOf(difference(graph.total[node], graph.whole, samples, graph.otherTotal[node], graph.otherWhole, other!.samples));
}
