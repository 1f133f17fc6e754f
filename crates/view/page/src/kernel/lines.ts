// The time of source lines. Pure.
//
// The total of a line is the time of all stacks that pass through it, each counted once. Its own time is that of the stacks that end in it, or
// in library code that it calls: crates/report/src/queries/line_owners.rs says which line that is. Transforms say which stacks count; the lines
// of a stack that counts all count.

import { numbers, signed } from "../decode.ts";
import type { Kernel } from "../kernel.ts";
import { timeMeasure, type Head, type Selection } from "../model.ts";
import type { Shape } from "./transforms.ts";

// `text`: first byte and size of the text, if it is in the page. `left`: there was no more room for it.
export interface SourceFile { path: string; name: string; remark: string; text: [number, number] | null; left: boolean }

// By file, ns.
export interface FileTimes { own: Float64Array; total: Float64Array }

// The lines of one file in order. `func`: a function that is in the line.
export interface LineTimes {
  line: Int32Array; func: Int32Array; own: Float64Array; total: Float64Array; ownHits: Float64Array; totalHits: Float64Array;
}

// `at`: the line that has most of the time of what was asked for, or 0.
export interface Source { file: number; at: number; files: FileTimes; lines: LineTimes; whole: number }

interface Counted { own: Float64Array; total: Float64Array; ownHits: Float64Array; totalHits: Float64Array; files: FileTimes; nodes: Float64Array; nodesOwn: Float64Array }

export class Lines {
  readonly files: SourceFile[];
  private readonly bytes: Uint8Array;
  // By line: its file, its number there, and a function in it.
  private readonly fileOf: Int32Array;
  private readonly numberOf: Int32Array;
  private readonly funcOfLine: Int32Array;
  // By node; -1: none.
  private readonly lineOf: Int32Array;
  private readonly ownLine: Int32Array;
  private readonly parent: Int32Array;
  private readonly funcOfNode: Int32Array;
  // By node: whether none above has the same line, or the same file.
  private readonly firstOfLine: Uint8Array;
  private readonly firstOfFile: Uint8Array;
  private readonly node: Int32Array;
  private last: { key: string; shape: Shape; counted: Counted } | undefined;

  constructor(private readonly kernel: Kernel, head: Head, columns: Map<string, Uint8Array>) {
    const column = (name: string, count: number) => numbers(columns.get(name)!, count);
    const frames = kernel.funcOf.length, nodes = head.nodes;
    this.files = JSON.parse(new TextDecoder().decode(columns.get("sources")));
    this.bytes = columns.get("sources.text")!;
    const source = column("frames.source", frames), line = column("frames.line", frames);
    const known = new Map<string, number>();
    const fileOf: number[] = [], numberOf: number[] = [], funcOfLine: number[] = [];
    const lineOfFrame = Int32Array.from(source, (file, frame) => {
      if (file === 0) return -1;
      const key = `${file} ${line[frame]}`;
      let number = known.get(key);
      if (number === undefined) {
        number = fileOf.length;
        known.set(key, number);
        fileOf.push(file - 1);
        numberOf.push(signed(line[frame]));
        funcOfLine.push(kernel.funcOf[frame]);
      }
      return number;
    });
    this.fileOf = Int32Array.from(fileOf);
    this.numberOf = Int32Array.from(numberOf);
    this.funcOfLine = Int32Array.from(funcOfLine);
    const left = column("nodes.left", nodes - 1), frame = column("nodes.frame", nodes - 1), levels = column("nodes.own", nodes);
    this.lineOf = new Int32Array(nodes).fill(-1);
    this.ownLine = new Int32Array(nodes).fill(-1);
    this.parent = new Int32Array(nodes);
    this.funcOfNode = new Int32Array(nodes);
    this.firstOfLine = new Uint8Array(nodes);
    this.firstOfFile = new Uint8Array(nodes);
    const path = [0], openLines = new Int32Array(fileOf.length), openFiles = new Int32Array(this.files.length);
    for (let node = 1; node < nodes; node++) {
      for (let count = left[node - 1]; count > 0; count--) {
        const of = this.lineOf[path.pop()!];
        if (of < 0) continue;
        openLines[of]--;
        openFiles[fileOf[of]]--;
      }
      this.parent[node] = path[path.length - 1];
      path.push(node);
      this.funcOfNode[node] = kernel.funcOf[frame[node - 1]];
      const of = this.lineOf[node] = lineOfFrame[frame[node - 1]];
      if (levels[node] > 0) this.ownLine[node] = this.lineOf[path[path.length - levels[node]]];
      if (of < 0) continue;
      this.firstOfLine[node] = openLines[of]++ === 0 ? 1 : 0;
      this.firstOfFile[node] = openFiles[fileOf[of]]++ === 0 ? 1 : 0;
    }
    this.node = Int32Array.from(column("samples.node", head.samples));
  }

  // The text of a file, if it is in the page.
  text(file: number): string | null {
    const text = this.files[file]?.text;
    return text ? new TextDecoder().decode(this.bytes.subarray(text[0], text[0] + text[1])) : null;
  }

  // The lines of a file: of the wanted one, else of that where a function spends most, else of that with the most time of its own.
  source(selection: Selection, shape: Shape, func: number | null, wanted: number | null): Source {
    const counted = this.count(selection, shape);
    const { files } = counted;
    const place = func === null ? null : this.placeOf(func, counted);
    const file = wanted ?? place?.file ?? this.hottest(files);
    const all = [...this.numberOf.keys()].filter((line) => this.fileOf[line] === file && (counted.total[line] > 0 || counted.totalHits[line] > 0));
    all.sort((a, b) => this.numberOf[a] - this.numberOf[b]);
    const cut = (column: Float64Array) => Float64Array.from(all, (line) => column[line]);
    const lines: LineTimes = {
      line: Int32Array.from(all, (line) => this.numberOf[line]), func: Int32Array.from(all, (line) => this.funcOfLine[line]),
      own: cut(counted.own), total: cut(counted.total), ownHits: cut(counted.ownHits), totalHits: cut(counted.totalHits),
    };
    const at = place && place.file === file ? place.line : lines.line[largest(lines.own, lines.total)] ?? 0;
    return { file, at, lines, files: { own: files.own.slice(), total: files.total.slice() }, whole: counted.nodes[0] };
  }

  // The file with the most time of its own.
  private hottest({ own, total }: FileTimes): number {
    const best = largest(own, total);
    return best >= 0 && total[best] > 0 ? best : -1;
  }

  // The file in which a function spends most, and its line there with most time of its own.
  private placeOf(func: number, { nodes, nodesOwn }: Counted): { file: number; line: number } | null {
    const own = new Map<number, number>(), total = new Map<number, number>(), files = new Map<number, number>();
    for (let node = 1; node < this.lineOf.length; node++) {
      const line = this.lineOf[node];
      if (this.funcOfNode[node] !== func || line < 0) continue;
      const file = this.fileOf[line];
      files.set(file, (files.get(file) ?? 0) + nodes[node]);
      total.set(line, (total.get(line) ?? 0) + nodes[node]);
      own.set(line, (own.get(line) ?? 0) + (this.ownLine[node] === line ? nodesOwn[node] : 0));
    }
    if (!files.size) return null;
    const file = [...files].reduce((best, next) => (next[1] > best[1] ? next : best))[0];
    const lines = [...total.keys()].filter((line) => this.fileOf[line] === file);
    const line = lines.reduce((best, next) => ((own.get(next)! - own.get(best)!) || (total.get(next)! - total.get(best)!)) > 0 ? next : best);
    return { file, line: this.numberOf[line] };
  }

  private count(selection: Selection, shape: Shape): Counted {
    const key = JSON.stringify(selection);
    if (this.last?.key === key && this.last.shape === shape) return this.last.counted;
    // A stack counts if the transforms leave anything of it.
    const map = Int32Array.from(this.kernel.boxOf, (box, node) => (shape.map[box] < 0 ? -1 : node));
    const { own: nodesOwn, hits } = this.kernel.folded(selection, timeMeasure(selection.measure), map, this.lineOf.length, this.node);
    const nodes = nodesOwn.slice(), allHits = hits.slice();
    const sums = () => new Float64Array(this.fileOf.length);
    const counted: Counted = {
      own: sums(), total: sums(), ownHits: sums(), totalHits: sums(), nodes, nodesOwn,
      files: { own: new Float64Array(this.files.length), total: new Float64Array(this.files.length) },
    };
    for (let node = nodes.length - 1; node > 0; node--) {
      nodes[this.parent[node]] += nodes[node];
      allHits[this.parent[node]] += allHits[node];
      const line = this.lineOf[node], owner = this.ownLine[node];
      if (line >= 0 && this.firstOfLine[node]) {
        counted.total[line] += nodes[node];
        counted.totalHits[line] += allHits[node];
      }
      if (line >= 0 && this.firstOfFile[node]) counted.files.total[this.fileOf[line]] += nodes[node];
      if (owner < 0) continue;
      counted.own[owner] += nodesOwn[node];
      counted.ownHits[owner] += hits[node];
      counted.files.own[this.fileOf[owner]] += nodesOwn[node];
    }
    this.last = { key, shape, counted };
    return counted;
  }
}

// The index of the largest, by the first column, then by the second; -1 if there is none.
function largest(first: Float64Array, second: Float64Array): number {
  let best = first.length ? 0 : -1;
  for (let i = 1; i < first.length; i++) if (first[i] > first[best] || (first[i] === first[best] && second[i] > second[best])) best = i;
  return best;
}
