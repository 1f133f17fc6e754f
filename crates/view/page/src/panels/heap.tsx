// The heap: types, largest holders, the dominator tree, leak candidates; and of the chosen type what holds it and what would go with it.

import { computed, signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { heap, watchHeap } from "../heap.ts";
import { hasRowsBelow, matcher, REST, ROOT, rowAbove, SHARED, TYPE, visibleRows, type Heap as Rows } from "../kernel/heap.ts";
import { head } from "../recording.ts";
import { bytes, count, counted } from "../sizes.ts";
import { change, HEAP_LISTS, query, state, type HeapList } from "../state.ts";
import { percent } from "../units.ts";
import { Grid, type Heading } from "./grid.tsx";
import { HeapType, PathText } from "./heaptype.tsx";

const LIST_NAMES: Record<HeapList, string> = { types: "Types", holders: "Largest holders", tree: "Dominator tree", leaks: "Leak candidates" };

export function choose(type: string): void {
  change({ type: state.value.type === type ? "" : type });
}

export const size = (value: number) => (head.value.heap!.counts ? count(value) : bytes(value));

export function Heap() {
  useEffect(watchHeap, []);
  const of = head.value.heap!, rows = heap.value;
  const lists = HEAP_LISTS.filter((list) => list !== "leaks" || of.lost.count + of.weak.count > 0);
  const list = lists.includes(state.value.heap) ? state.value.heap : "types";
  return (
    <div class="column">
      <div class="bar heapbar">
        <div class="lists" role="group" aria-label="What of the heap is shown">
          {lists.map((word) => <button key={word} class="chip" aria-pressed={list === word} onClick={() => change({ heap: word })}>{LIST_NAMES[word]}</button>)}
        </div>
        <span class="dim" title={of.roots.map(([name, held]) => `${size(held)} ${name}`).join(", ")}>
          {of.name}: {of.counts ? "" : `${size(of.alive.bytes)} alive in `}{counted(of.alive.count, "block", "blocks")}, {count(of.edges)} edges; {leaked()}
        </span>
      </div>
      {rows ? (
        <div class="functions">
          {list === "types" ? <Types rows={rows} /> : list === "holders" ? <Holders rows={rows} /> : list === "tree" ? <Tree rows={rows} /> : <Leaks rows={rows} />}
          {state.value.type && <HeapType rows={rows} name={state.value.type} />}
        </div>
      ) : <p class="wait">reading the heap …</p>}
    </div>
  );
}

// As `stackglass heap show` says it.
function leaked(): string {
  const { lost, weak } = head.value.heap!;
  const doubt = weak.count > 0 ? `; in doubt: ${sum(weak)}` : "";
  if (lost.count > 0) return `leaked? ${sum(lost)} to which nothing leads${doubt}`;
  return weak.count > 0 ? `leaked? nothing for certain${doubt}` : "leaked? nothing: roots reach all blocks";
}

const sum = (of: { count: number; bytes: number }) => `${head.value.heap!.counts ? "" : `${size(of.bytes)} in `}${counted(of.count, "block", "blocks")}`;

type Column = "own" | "retained" | "count" | "name";
const sorted = signal<Column>("own");

const typeRows = computed<number[]>(() => {
  if (!heap.value) return [];
  const { strings, types } = heap.value;
  const matches = matcher(query.value);
  const rows = [...types.name.keys()].filter((row) => types.alive[row] === 1 && matches(strings[types.name[row]]));
  const by = sorted.value;
  if (by === "name") return rows.sort((a, b) => (strings[types.name[a]] < strings[types.name[b]] ? -1 : 1));
  return rows.sort((a, b) => types[by][b] - types[by][a] || a - b);
});

function Types({ rows: { strings, types } }: { rows: Rows }) {
  const all = typeRows.value;
  const column = (name: Column, text: string, title?: string): Heading => ({
    text, number: name !== "name", title, sort: () => { sorted.value = name; }, sorted: sorted.value === name ? (name === "name" ? "ascending" : "descending") : undefined,
  });
  const whole = head.value.heap!.alive.bytes;
  return (
    <Grid kind="grid" label="Types" columns="heaptypes" count={all.length} active={all.findIndex((row) => strings[types.name[row]] === state.value.type)}
      headings={[
        { text: "%", number: true }, column("count", "count"), column("own", "own", "bytes of its blocks"),
        column("retained", "retained", "bytes of all that would go with its blocks"), column("name", `type (${count(all.length)})`),
      ]}
      activate={(index) => change({ type: strings[types.name[all[index]]] })}
      row={(index) => {
        const row = all[index], name = strings[types.name[row]];
        return {
          key: name, selected: name === state.value.type,
          cells: [<span class="dim">{percent(types.own[row], whole)}</span>, count(types.count[row]), size(types.own[row]), size(types.retained[row]), <span title={name}>{name}</span>],
        };
      }} />
  );
}

const place = { holder: signal(-1), tree: signal(-1), owner: signal(-1) };

function Holders({ rows: { strings, paths, holders } }: { rows: Rows }) {
  const matches = matcher(query.value);
  const all = [...holders.of.keys()].filter((row) => holders.of[row] === 0 && matches(strings[holders.name[row]]));
  return (
    <Grid kind="grid" label="Largest holders" columns="heapholders" count={all.length} active={all.indexOf(place.holder.value)}
      headings={[{ text: "retained", number: true, title: "bytes of all that would go with it" }, { text: "blocks", number: true }, { text: "type or variable" }, { text: "path to it" }]}
      activate={(index) => {
        place.holder.value = all[index];
        change({ type: holders.variable[all[index]] ? "" : strings[holders.name[all[index]]] });
      }}
      row={(index) => {
        const row = all[index], name = strings[holders.name[row]];
        return {
          key: row, selected: row === place.holder.value,
          cells: [
            size(holders.retained[row]), count(holders.count[row]), <span title={name}>{holders.alike[row] > 1 ? `${count(holders.alike[row])} × ` : ""}{name}</span>,
            <PathText parts={paths[holders.path[row]].map((part) => strings[part])} />,
          ],
        };
      }} />
  );
}

const open = signal<ReadonlySet<number>>(new Set());
const treeRows = computed(() => (heap.value ? visibleRows(heap.value.tree, (row) => open.value.has(row)) : []));

function Tree({ rows: { strings, tree } }: { rows: Rows }) {
  const all = treeRows.value, at = place.tree.value, active = all.indexOf(at);
  const matches = query.value ? matcher(query.value) : () => false;
  const setOpen = (row: number, to: boolean) => {
    const rows = new Set(open.value);
    if (to) for (let next = row; hasRowsBelow(tree, next); next++) {
      rows.add(next);
      // As long as there is only one row below, that as well.
      const below = tree.level[next] + 1;
      let siblings = 0;
      for (let i = next + 1; i < tree.level.length && tree.level[i] >= below; i++) if (tree.level[i] === below) siblings++;
      if (siblings > 1) break;
    } else rows.delete(row);
    open.value = rows;
  };
  const nameOf = (row: number) => {
    const kind = tree.kind[row];
    if (kind === SHARED) return "held by two or more roots";
    if (kind === REST) return `${counted(tree.alike[row], "row", "rows")} with less than ${size(head.value.heap!.least)} each`;
    return strings[tree.name[row]];
  };
  const activate = (index: number) => {
    place.tree.value = all[index];
    change({ type: tree.kind[all[index]] === TYPE ? strings[tree.name[all[index]]] : "" });
  };
  return (
    <Grid kind="treegrid" label="Dominator tree: what would go with what" columns="heaptree" count={all.length} active={active} activate={activate}
      headings={[
        { text: "retained", number: true, title: "bytes of all that would go with these blocks" }, { text: "%", number: true }, { text: "own", number: true },
        { text: "blocks", number: true, title: "that would go with them" }, { text: "type or root" },
      ]}
      onOpen={(index) => setOpen(all[index], !open.value.has(all[index]))}
      onKey={(event) => {
        if (active < 0) return false;
        const isOpen = open.value.has(at), inner = hasRowsBelow(tree, at);
        if (event.key === "ArrowRight") {
          if (!isOpen && inner) setOpen(at, true);
          else if (inner) activate(active + 1);
          return true;
        }
        if (event.key === "ArrowLeft") {
          const above = rowAbove(tree, at);
          if (isOpen) setOpen(at, false);
          else if (above >= 0) activate(all.indexOf(above));
          return true;
        }
        return false;
      }}
      row={(index) => {
        const row = all[index], kind = tree.kind[row], name = nameOf(row), inner = hasRowsBelow(tree, row), level = tree.level[row];
        return {
          key: row, level: level + 1, expanded: inner ? open.value.has(row) : undefined, selected: row === at,
          cells: [
            size(tree.retained[row]), <span class="dim">{percent(tree.retained[row], head.value.heap!.alive.bytes + head.value.heap!.lost.bytes + head.value.heap!.weak.bytes)}</span>,
            tree.own[row] > 0 ? size(tree.own[row]) : "", count(tree.count[row]),
            <span style={{ paddingLeft: `${Math.min(level * 11, 180 + level * 3)}px` }} class={kind === REST ? "dim" : matches(name) ? "match" : ""} title={name}>
              <span class="twisty" aria-hidden="true" onClick={(event) => { event.stopPropagation(); if (inner) setOpen(row, !open.value.has(row)); }}>{inner ? (open.value.has(row) ? "▾" : "▸") : ""}</span>
              {kind === TYPE && tree.alike[row] > 1 ? `${count(tree.alike[row])} × ` : ""}{kind === ROOT ? <em>{name}</em> : name}
            </span>,
          ],
        };
      }} />
  );
}

function Leaks({ rows: { strings, owners, ownerSites } }: { rows: Rows }) {
  const matches = matcher(query.value);
  const all = [...owners.name.keys()].filter((row) => matches(strings[owners.name[row]]));
  const { shared, unreadThreads, unreadMappings } = head.value.heap!;
  const notes = [
    shared.count > 0 && `${sum(shared)} held by two or more of them`,
    unreadThreads > 0 && `${counted(unreadThreads, "thread", "threads")} slept in a system call with registers that were not read: what only they hold is among these; heap take --interrupt-calls reads them`,
    unreadMappings > 0 && `${counted(unreadMappings, "mapping", "mappings")} with memory that could not be read: what only they hold is among these`,
  ].filter((note) => note);
  const sitesOf = (row: number) => {
    const names: string[] = [];
    for (let site = 0; site < ownerSites.of.length; site++) if (ownerSites.of[site] === row) names.push(strings[ownerSites.name[site]]);
    return names;
  };
  return (
    <div class="column">
      <Grid kind="grid" label="Leak candidates by the type of their owners" columns="heapleaks" count={all.length} active={all.indexOf(place.owner.value)}
        headings={[{ text: head.value.heap!.counts ? "blocks" : "bytes", number: true }, { text: "blocks", number: true }, { text: "owners", number: true }, { text: "type of the owners" }, { text: "allocated by" }]}
        activate={(index) => {
          place.owner.value = all[index];
          change({ type: strings[owners.name[all[index]]] });
        }}
        row={(index) => {
          const row = all[index], name = strings[owners.name[row]], sites = sitesOf(row);
          const cycles = owners.cycles[row] === 0 ? "" : owners.cycles[row] === owners.owners[row] ? " (in cycles)" : " (some in cycles)";
          return {
            key: row, selected: row === place.owner.value,
            cells: [
              size(owners.size[row]), count(owners.count[row]), count(owners.owners[row]),
              <span title={name}>{name}<strong>{cycles}</strong>{owners.weak[row] ? <span class="dim"> only weak edges lead there</span> : ""}</span>,
              <span class="dim" title={sites.join("\n")}>{sites[0] ?? ""}{sites.length > 1 ? ` and ${sites.length - 1} more` : ""}</span>,
            ],
          };
        }} />
      {notes.map((note) => <p key={String(note)} class="note">{note}</p>)}
    </div>
  );
}
