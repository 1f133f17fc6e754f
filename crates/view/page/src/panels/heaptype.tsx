// All about one type: the paths to its largest blocks, what holds it, what it holds, what would go with it, and who allocated it.

import type { ComponentChildren } from "preact";
import { rowsOf, type Heap } from "../kernel/heap.ts";
import { count, counted } from "../sizes.ts";
import { change } from "../state.ts";
import { percent } from "../units.ts";
import { size } from "./heap.tsx";

export function PathText({ parts }: { parts: string[] }) {
  return <span title={parts.join(" → ")}>{parts.map((part, i) => <span key={i}>{i > 0 ? <span class="dim"> → </span> : ""}{part}</span>)}</span>;
}

export function HeapType({ rows, name }: { rows: Heap; name: string }) {
  const { strings, paths, types, holders, fields, retains, sites } = rows;
  const of = strings.indexOf(name);
  if (of <= 0) return <aside class="sandwich heaptype" aria-label="Type"><p>There is no type {name} in this snapshot.</p></aside>;
  const known = new Set(Array.from(types.name, (id) => strings[id]));
  const link = (type: string) => (known.has(type) ? <button class="link" title={type} onClick={() => change({ type })}>{type}</button> : <span title={type}>{type}</span>);
  const of_alive = [1, 0].map((alive) => [...types.name.keys()].find((row) => types.name[row] === of && types.alive[row] === alive));
  const whole = of_alive.reduce((sum: number, row) => sum + (row === undefined ? 0 : types.retained[row]), 0);
  const list = (title: string, items: ComponentChildren[]) => items.length > 0 && <section aria-label={title}><h3>{title}</h3><ul>{items}</ul></section>;
  const byField = (holds: number) => rowsOf(fields, of).filter((row) => fields.holds[row] === holds).map((row) => (
    <li key={row}>
      <span class="number">{size(fields.own[row])}</span><span class="number dim">{count(fields.count[row])}</span>
      <span class="name">{fields.weak[row] ? "weak " : ""}{holds ? <>{strings[fields.field[row]]}: {link(strings[fields.other[row]])}</> : <>{link(strings[fields.other[row]])}{strings[fields.field[row]]}</>}</span>
    </li>
  ));
  const held = rowsOf(holders, of);
  return (
    <aside class="sandwich heaptype" aria-label="Type" tabIndex={0}>
      <h2 class="of">{name}</h2>
      {["alive", "leaked?"].map((word, i) => of_alive[i] !== undefined && (
        <p key={word}><span class="dim">{word}</span> {counted(types.count[of_alive[i]], "block", "blocks")}, {size(types.own[of_alive[i]])} of their own, <strong>{size(types.retained[of_alive[i]])}</strong> with all that only they hold</p>
      ))}
      {held.length > 0 && (
        <section aria-label="Path">
          <h3>path from a root to the largest</h3>
          <ol class="path">
            {paths[holders.path[held[0]]].map((part, i) => <li key={i} style={{ paddingLeft: `${Math.min(i, 12) * 10}px` }}>{i > 0 ? <span class="dim" aria-hidden="true">└ </span> : ""}{strings[part]}</li>)}
          </ol>
          {held.length > 1 && (
            <details>
              <summary>{held.length - 1} more of the largest</summary>
              <ul>
                {held.slice(1).map((row) => (
                  <li key={row}><span class="number">{size(holders.retained[row])}</span><span class="number dim">{holders.alike[row] > 1 ? `${count(holders.alike[row])} ×` : ""}</span>
                    <span class="name"><PathText parts={paths[holders.path[row]].map((part) => strings[part])} /></span></li>
                ))}
              </ul>
            </details>
          )}
        </section>
      )}
      {list("held by", byField(0))}
      {list("would go with it", rowsOf(retains, of).map((row) => (
        <li key={row}><span class="number">{size(retains.own[row])}</span><span class="number dim">{percent(retains.own[row], whole)}</span><span class="name">{count(retains.count[row])} × {link(strings[retains.name[row]])}</span></li>
      )))}
      {list("holds", byField(1))}
      {list("allocated by", rowsOf(sites, of).map((row) => (
        <li key={row}><span class="number">{size(sites.own[row])}</span><span class="number dim">{count(sites.count[row])}</span><span class="name" title={strings[sites.name[row]]}>{strings[sites.name[row]]}</span></li>
      )))}
    </aside>
  );
}
