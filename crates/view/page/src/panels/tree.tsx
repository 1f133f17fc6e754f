// The call tree as a table: callees below callers, or the other way round.

import { computed } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Mirror } from "../mirror.ts";
import { amount } from "../measures.ts";
import { isMetric } from "../model.ts";
import { opened, openedRows, setOpened } from "../opened.ts";
import { count } from "../sizes.ts";
import { counted, found, head, loaded } from "../recording.ts";
import { state } from "../state.ts";
import { graph, nodeOf, select, target } from "../target.ts";
import { percent } from "../units.ts";
import { differenceCells, differenceHeadings } from "./differences.tsx";
import { Grid } from "./grid.tsx";
import { openMenu } from "./menu.tsx";

// Nodes with all that is below them: more than so many are not opened at once.
const MOST = 30_000;

// Opens a node, and as long as there is only one child, that as well.
async function expand(graph: Mirror, node: number): Promise<void> {
  setOpened(graph, (paths) => paths.add(graph.path(node)));
  const way: number[] = [];
  for (let at = node; ;) {
    const children = graph.children(at);
    if (!graph.has(at)) {
      if (!await graph.settled()) break;
      continue;
    }
    if (children.length !== 1) break;
    at = children[0];
    way.push(graph.path(at));
  }
  if (way.length) setOpened(graph, (paths) => way.forEach((path) => paths.add(path)));
}

export async function expandAll(): Promise<void> {
  const shown = graph.value;
  if (!shown) return;
  const from = Math.max(nodeOf(shown), 0);
  await shown.all(from, MOST);
  setOpened(shown, (paths) => {
    const left = [from];
    for (let count = 0; left.length && count < MOST; count++) {
      const node = left.pop()!;
      if (!shown.has(node)) continue;
      paths.add(shown.path(node));
      for (const child of shown.children(node)) if (shown.isInner(child)) left.push(child);
    }
  });
}

const rows = computed<number[]>(() => (graph.value ? openedRows(graph.value) : []));

export function CallTree() {
  const shown = graph.value;
  const at = shown ? nodeOf(shown) : -1;
  // What is selected elsewhere is in sight here. Then it may be hidden.
  const revealed = useRef<unknown>(null);
  useEffect(() => {
    if (!shown) return;
    const paths = opened[shown.direction].value;
    if (paths.size === 0) for (const child of shown.children(0).slice(0, 1)) void expand(shown, child);
    if (at <= 0 || revealed.current === target.value) return;
    revealed.current = target.value;
    const above: number[] = [];
    for (let node = shown.parent[at]; node > 0; node = shown.parent[node]) above.push(shown.path(node));
    if (above.some((path) => !paths.has(path))) setOpened(shown, (all) => above.forEach((path) => all.add(path)));
  }, [shown, target.value, shown?.version.value]);
  if (!shown || !loaded.value || !counted.value) return <p class="wait">counting …</p>;
  const { funcs } = loaded.value;
  const all = rows.value, paths = opened[shown.direction].value;
  const matches = found.value instanceof Uint8Array ? found.value : null;
  const { other } = counted.value;
  const value = (of: number) => amount(shown.counted, of);
  const isOfAllocations = isMetric(shown.counted.measure);
  const activate = (index: number) => {
    const node = all[index];
    select({ func: shown.func[node], way: shown.way(node), direction: shown.direction });
  };
  const active = at > 0 ? all.indexOf(at) : -1;
  const isOpen = (node: number) => paths.has(shown.path(node)) && shown.isInner(node);
  const close = (node: number) => setOpened(shown, (all) => all.delete(shown.path(node)));
  const onKey = (event: KeyboardEvent) => {
    if (event.key === "*") {
      void expandAll();
      return true;
    }
    if (active < 0) return false;
    if (event.key === "ArrowRight") {
      if (!isOpen(at)) { if (shown.isInner(at)) expand(shown, at); }
      else activate(active + 1);
      return true;
    }
    if (event.key === "ArrowLeft") {
      if (isOpen(at)) close(at);
      else if (shown.parent[at] > 0) activate(all.indexOf(shown.parent[at]));
      return true;
    }
    return false;
  };
  return (
    <Grid kind="treegrid" label={state.value.inverted ? "Call tree, from callees to callers" : "Call tree"} columns={other ? "tree compared" : "tree"}
      headings={[
        { text: "total", number: true }, { text: "%", number: true }, { text: "own", number: true }, { text: isOfAllocations ? "count" : "samples", number: true },
        ...(other ? differenceHeadings() : []), { text: "function" }, { text: "file" },
      ]}
      count={all.length} reading={shown.counted.reading} keyOf={(index) => shown.path(all[index])} active={active} activate={activate} onKey={onKey} onOpen={(index) => (isOpen(all[index]) ? close(all[index]) : expand(shown, all[index]))}
      onMenu={(_, x, y) => openMenu(x, y)}
      row={(index) => {
        const node = all[index], func = funcs[shown.func[node]], depth = shown.depth[node] - 1;
        const inner = shown.isInner(node);
        const indent = Math.min(depth * 11, 180 + depth * 3);
        return {
          key: shown.path(node), level: depth + 1, expanded: inner ? isOpen(node) : undefined, selected: node === at,
          cells: [
            value(shown.total[node]), percent(shown.total[node], shown.whole), shown.own[node] > 0 ? value(shown.own[node]) : "", isOfAllocations ? count(shown.hits[node]) : String(shown.hits[node]),
            ...(other ? differenceCells(shown, node) : []),
            <span style={{ paddingLeft: `${indent}px` }} class={matches?.[shown.func[node]] ? "match" : ""}>
              <span class="twisty" aria-hidden="true" onClick={(event) => {
                event.stopPropagation();
                if (isOpen(node)) close(node);
                else if (inner) expand(shown, node);
              }}>{inner ? (isOpen(node) ? "▾" : "▸") : ""}</span>
              <i style={{ background: head.value.categories[func.category].color }} />{func.name}
            </span>,
            func.file ? `${func.file}${func.line > 0 ? `:${func.line}` : ""}` : func.crate,
          ],
        };
      }} />
  );
}
