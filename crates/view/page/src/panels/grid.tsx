// A table of many rows, of which only those in sight exist. One row is active; keys move it.

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

export const ROW = 24;

export interface Heading { text: string; number?: boolean; sorted?: "ascending" | "descending"; sort?: () => void; title?: string }
export interface RowProps { key: string | number; cells: ComponentChildren[]; level?: number; expanded?: boolean; selected: boolean }

interface Props {
  label: string; kind: "grid" | "treegrid"; columns: string; headings: Heading[];
  count: number; row: (index: number) => RowProps;
  // Of which reading of the recording the rows are, and the key of a row: while the recording grows, rows in sight stay where they are.
  reading?: number; keyOf?: (index: number) => string | number;
  active: number; activate: (index: number) => void;
  onKey?: (event: KeyboardEvent) => boolean;
  onOpen?: (index: number) => void;
  onMenu?: (index: number, x: number, y: number) => void;
}

let grids = 0;

export function Grid({ label, kind, columns, headings, count, row, reading = 0, keyOf, active, activate, onKey, onOpen, onMenu }: Props) {
  const outer = useRef<HTMLDivElement>(null);
  const [id] = useState(() => `grid${grids++}`);
  const [scrolled, setScrolled] = useState(0);
  const [height, setHeight] = useState(600);
  useEffect(() => {
    const div = outer.current!;
    const observer = new ResizeObserver(() => setHeight(div.clientHeight));
    observer.observe(div);
    return () => observer.disconnect();
  }, []);
  // The row that stays where it is, and how far it is from the top: the active one if it is in sight, else the first one.
  const anchor = useRef<{ reading: number; key: string | number | null; offset: number }>({ reading, key: null, offset: 0 });
  // The active row, if only its place among the others has changed.
  const moved = useRef(-1);
  useLayoutEffect(() => {
    const div = outer.current!, was = anchor.current;
    if (was.reading !== reading) {
      moved.current = active;
      if (keyOf && was.key !== null) {
        let at = 0;
        while (at < count && keyOf(at) !== was.key) at++;
        if (at < count) div.scrollTop = at * ROW - was.offset;
      }
    }
    const first = Math.floor(div.scrollTop / ROW), isSeen = active >= first && active * ROW < div.scrollTop + div.clientHeight;
    const index = isSeen ? active : div.scrollTop > 0 ? Math.min(first, count - 1) : -1;
    anchor.current = { reading, key: index >= 0 && keyOf ? keyOf(index) : null, offset: index * ROW - div.scrollTop };
  });
  // The active row comes into sight.
  useEffect(() => {
    const div = outer.current!;
    if (active < 0 || active === moved.current) return;
    moved.current = -1;
    const top = active * ROW, room = div.clientHeight - ROW;
    const above = div.scrollTop - top, below = top + ROW - div.scrollTop - room;
    // From afar it comes with what is around it.
    if (Math.max(above, below) > 2 * ROW) div.scrollTop = top - room / 2;
    else if (above > 0) div.scrollTop = top;
    else if (below > 0) div.scrollTop = top + ROW - room;
  }, [active, height]);
  const first = Math.max(0, Math.min(Math.floor(scrolled / ROW) - 8, count - 1)), last = Math.min(count, first + Math.ceil(height / ROW) + 16);
  const keys = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(height / ROW) - 2);
    const to = { ArrowDown: active + 1, ArrowUp: active - 1, PageDown: active + page, PageUp: active - page, Home: 0, End: count - 1 }[event.key];
    if (to !== undefined && count > 0) activate(Math.max(0, Math.min(count - 1, to)));
    else if (event.key === "Enter" && active >= 0 && onOpen) onOpen(active);
    else if (!onKey?.(event)) return;
    event.preventDefault();
    event.stopPropagation();
  };
  const rows = [];
  for (let index = first; index < last; index++) {
    const { key, cells, level, expanded, selected } = row(index);
    rows.push(
      <div key={key} id={`${id}-${index}`} class="row" role="row" aria-rowindex={index + 2} aria-selected={selected} aria-level={level}
        aria-expanded={expanded} style={{ top: `${index * ROW}px` }} onClick={() => activate(index)} onDblClick={() => onOpen?.(index)}
        onContextMenu={(event) => {
          if (!onMenu) return;
          event.preventDefault();
          activate(index);
          onMenu(index, event.clientX, event.clientY);
        }}>
        {cells.map((cell, i) => <span key={i} role="gridcell" class={headings[i].number ? "number" : "name"}>{cell}</span>)}
      </div>,
    );
  }
  return (
    <div class={`table ${columns}`} ref={outer} role={kind} aria-label={label} aria-rowcount={count + 1} tabIndex={0}
      aria-activedescendant={active >= first && active < last ? `${id}-${active}` : undefined} onKeyDown={keys}
      onScroll={(event) => setScrolled(event.currentTarget.scrollTop)}>
      <div role="rowgroup" class="top">
        <div class="row headings" role="row" aria-rowindex={1}>
          {headings.map(({ text, number, sorted, sort, title }, i) => (
            <span key={i} role="columnheader" class={number ? "number" : "name"} aria-sort={sorted} title={title}>
              {sort ? <button tabIndex={-1} onClick={sort}>{text}{sorted ? (sorted === "ascending" ? " ▴" : " ▾") : ""}</button> : text}
            </span>
          ))}
        </div>
      </div>
      <div class="list" role="rowgroup" style={{ height: `${count * ROW}px` }}>{rows}</div>
    </div>
  );
}
