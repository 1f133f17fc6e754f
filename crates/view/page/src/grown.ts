// A newer page of the server, shown in the place of this one: what is selected, open or scrolled stays so.

import { type Head, startsWithBytes } from "./model.ts";
import { grow, head } from "./recording.ts";
import { rename } from "./state.ts";
import { ThreadNames } from "./threads.ts";

// Fetches the page and shows it; returns its number.
export async function showNewer(): Promise<number> {
  const answer = await fetch(location.pathname, { cache: "no-store" });
  if (!answer.ok) throw new Error(`the server answers ${answer.status}`);
  const { number, next, columns } = partsOf(await answer.text());
  // What the page is made for does not change in place.
  if (kindOf(next) !== kindOf(head.value)) location.reload();
  else await grow(next, columns, () => rename(new ThreadNames(next), moves(head.value.threads, next.threads, threadKey), moves(head.value.processes, next.processes, processKey)));
  return number;
}

// What crates/view/src/page.rs writes: no part of it can contain what ends it. The script of the page has these texts as well; the number and
// the head come before it, and only columns are nothing but base64.
function partsOf(html: string): { number: number; next: Head; columns: string[] } {
  const after = (begin: string, end: string) => {
    const from = html.indexOf(begin) + begin.length, to = html.indexOf(end, from);
    if (from < begin.length || to < 0) throw new Error(`the page has no ${begin}`);
    return html.slice(from, to);
  };
  return {
    number: Number(after('data-page="', '"')), next: JSON.parse(after('type="application/json" id="head">', "</script>")),
    columns: html.slice(html.indexOf("</script>", html.indexOf('id="head">'))).match(/(?<=>)[\w+/=]+(?=<\/script>)/g) ?? [],
  };
}

function kindOf(of: Head): string {
  return JSON.stringify([of.untimed, of.walltime, of.categories, startsWithBytes(of)]);
}

const processKey = (of: Head["processes"][number]) => `${of.pid} ${of.start}`;
const threadKey = (of: Head["threads"][number]) => `${of.tid} ${of.start}`;

// Where what was in a list is in the later one; null if it is not there.
function moves<T>(before: T[], after: T[], key: (of: T) => string): (index: number) => number | null {
  const places = new Map(after.map((of, index) => [key(of), index]));
  return (index) => {
    if (!before[index]) return null;
    // Most lists only grow.
    return after[index] && key(after[index]) === key(before[index]) ? index : places.get(key(before[index])) ?? null;
  };
}
