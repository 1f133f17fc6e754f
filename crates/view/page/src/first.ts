// What is drawn before the columns have come (crates/view/src/first/): answers to the first questions, for the whole recording.

import { expand, numbers, signed, split } from "./decode.ts";
import { childrenOf, Graph } from "./graph.ts";
import { columnsOf } from "./kernel/bins.ts";
import { Cutter } from "./kernel/pieces.ts";
import { isEntry, waitOf } from "./kernel/waits.ts";
import type { Answers, Bins, Counts, Func, Head, LaneOf, Question, Range, ThreadTimes, Tree } from "./model.ts";

// `root`: total and own time, and hits. `kinds`: what lanes do; a number is a category, and a list names functions from the innermost one on.
interface Text {
  functions: number; root: [number, number, number]; parts: number; kinds: (number | "ready" | string[])[]; lanes: string[];
  columns: [string, number][]; bytes: string;
}

// The bins of a lane, by part.
type Rows = Float64Array;

export interface First {
  // Functions that are not drawn have no names yet.
  funcs: Func[]; tree: Tree; times: ThreadTimes;
  // Own time by category.
  categories: Float64Array;
  // The answer to a question, or null.
  answer<Q extends Question>(question: Q): Answers[Q["kind"]] | null;
}

export async function readFirst(text: string, head: Head): Promise<First> {
  const of: Text = JSON.parse(text);
  const columns = split(of, await expand([of.bytes]));
  const column = (name: string) => numbers(columns.get(name)!);
  const times: ThreadTimes = { cpu: column("times.cpu"), asleep: column("times.asleep"), ready: column("times.ready") };
  const funcs = funcsOf(of.functions, columns, column);
  const above = column("boxes.above"), used = column("functions.number"), boxes = above.length + 1;
  const tree: Tree = { parent: new Int32Array(boxes), func: new Int32Array(boxes), depth: new Int32Array(boxes) };
  tree.parent[0] = -1;
  column("boxes.function").forEach((index, i) => {
    const box = i + 1, parent = box - above[i];
    tree.parent[box] = parent;
    tree.func[box] = used[index];
    tree.depth[box] = tree.depth[parent] + 1;
  });
  const [total, own, hits] = ["boxes.total", "boxes.own", "boxes.hits"].map((name, i) => Float64Array.of(of.root[i], ...column(name)));
  const none = () => new Float64Array(funcs.length);
  const counts: Counts = { measure: "cpu", own, total, hits, funcOwn: none(), funcTotal: none(), funcHits: none(), samples: hits[0], why: null };
  const rows = lanesOf(of, head.categories.length, column);
  let counted = -1;

  function answer(question: Question): Answers[Question["kind"]] | null {
    switch (question.kind) {
      case "counted": {
        const { selection: { range, threads, measure, type }, other, shape } = question;
        if (range || threads || measure !== "cpu" || type || other || shape !== 0) return null;
        counted = question.number;
        return { counts, other: null };
      }
      case "graph": {
        if (question.counted !== counted || question.direction !== "down" || question.start !== null) return null;
        const graph = new Graph({ ...counts, tree, other: null, ...childrenOf(tree) }, "down");
        return { piece: new Cutter(graph).grow({ below: [0], least: 0, most: Infinity }) };
      }
      case "bins": return question.lit === null ? binsOf(question.lanes, question.range, question.parts) : null;
      default: return null;
    }
  }

  function binsOf(lanes: LaneOf[], [from, to]: Range, parts: number): Bins | null {
    if (from !== 0 || to !== Math.max(head.wall, 1)) return null;
    const width = columnsOf(head.categories.length).count;
    const all = new Float32Array(lanes.length * parts * width);
    for (const [lane, { threads, waits }] of lanes.entries()) {
      if (threads?.length === 0) continue;
      const key = threads === null ? "all" : waits ? `t${threads[0]}` : `p${head.threads[threads[0] - 1].process}`;
      const known = rows.get(key);
      if (!known) return null;
      spread(known, of.parts, all.subarray(lane * parts * width, (lane + 1) * parts * width), parts, width);
    }
    return { parts, rows: all };
  }

  return { funcs, tree, times, categories: column("categories.own"), answer: answer as First["answer"] };
}

function funcsOf(count: number, columns: Map<string, Uint8Array>, column: (name: string) => Float64Array): Func[] {
  const unknown: Func = { name: "", full: "", file: "", line: 0, module: "", crate: "", category: 0 };
  const funcs = Array<Func>(count).fill(unknown);
  funcs[0] = { ...unknown, name: "all" };
  const strings: string[] = JSON.parse(new TextDecoder().decode(columns.get("strings")));
  const [name, full, file, module, crate, line, category] = ["name", "full", "file", "module", "crate", "line", "category"].map((of) => column(`functions.${of}`));
  column("functions.number").forEach((number, i) => {
    funcs[number] = {
      name: strings[name[i]], full: strings[full[i]], file: strings[file[i]], line: signed(line[i]), module: strings[module[i]], crate: strings[crate[i]], category: category[i],
    };
  });
  return funcs;
}

// Rows as those of kernel/bins.ts, by key of lane.
function lanesOf({ kinds, lanes, parts }: Text, categories: number, column: (name: string) => Float64Array): Map<string, Rows> {
  const { ready, asleep, count } = columnsOf(categories);
  const columnOf = kinds.map((kind) => {
    if (typeof kind === "number") return kind;
    if (kind === "ready") return ready;
    return asleep + waitOf(kind.find((name) => !isEntry(name)) ?? "");
  });
  const of = column("lanes.kinds"), units = column("lanes.units"), values = column("lanes.values");
  let at = 0, next = 0;
  return new Map(lanes.map((key, lane) => {
    const rows = new Float64Array(parts * count);
    for (let left = of[at++]; left > 0; left--) {
      const into = columnOf[of[at++]];
      for (let part = 0; part < parts; part++) rows[part * count + into] += values[next++] * units[lane];
    }
    return [key, rows];
  }));
}

// What was in some parts of a time, in another number of parts.
function spread(rows: Rows, parts: number, into: Float32Array, intoParts: number, width: number): void {
  const ratio = parts / intoParts;
  for (let part = 0; part < intoParts; part++) {
    const from = part * ratio, to = (part + 1) * ratio;
    for (let at = Math.floor(from); at < parts && at < to; at++) {
      const share = Math.min(to, at + 1) - Math.max(from, at);
      for (let column = 0; column < width; column++) into[part * width + column] += rows[at * width + column] * share;
    }
  }
}
