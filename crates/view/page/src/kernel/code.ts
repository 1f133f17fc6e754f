// Disassembled functions, and the time of their instructions. Pure.

import { numbers, signed } from "../decode.ts";
import type { Kernel } from "../kernel.ts";
import { timeMeasure, type Head, type Selection } from "../model.ts";
import type { Shape } from "./transforms.ts";

// `frames`: those in which samples end there. `text`: first byte and size.
interface Row { name: string; module: string; address: number; first: number; count: number; text: [number, number]; frames: number[] }
interface Rows { functions: Row[]; names: string[]; left: [string, string, number][] }

// A function that can be shown: by number, with its time.
export interface CodeFunction { number: number; name: string; module: string; address: number; time: number }

// The instructions of a function. `file`: from 0; -1 if unknown. `inner`: the innermost function that an instruction is from.
export interface Instructions {
  address: Float64Array; text: string[]; file: Int32Array; line: Int32Array; inner: string[]; own: Float64Array; hits: Float64Array;
}

// What is shown of code: the functions in which samples of the selection end that are in the wanted one, and the instructions of one.
export interface Code { functions: CodeFunction[]; shown: number; instructions: Instructions | null; left: [string, string, number][] }

export class Disassembly {
  private readonly rows: Rows;
  private readonly text: Uint8Array;
  // By instruction.
  private readonly length: Float64Array;
  private readonly source: Float64Array;
  private readonly line: Float64Array;
  private readonly inner: Float64Array;
  // By sample: its instruction from 1, or 0.
  private readonly at: Int32Array;
  // By instruction, from 1: its function.
  private readonly functionOf: Int32Array;
  // By function: the functions whose frames end there.
  private readonly funcs: Set<number>[];
  private readonly sample: Int32Array;

  constructor(private readonly kernel: Kernel, head: Head, columns: Map<string, Uint8Array>) {
    const column = (name: string, count: number) => numbers(columns.get(name)!, count);
    const count = head.code!.instructions;
    this.rows = JSON.parse(new TextDecoder().decode(columns.get("code")));
    this.text = columns.get("code.text")!;
    this.length = column("code.length", count);
    this.source = column("code.source", count);
    this.line = column("code.line", count);
    this.inner = column("code.name", count);
    this.at = Int32Array.from(column("samples.code", head.samples));
    this.functionOf = new Int32Array(count + 1).fill(-1);
    this.rows.functions.forEach(({ first, count }, number) => this.functionOf.fill(number, first + 1, first + count + 1));
    this.funcs = this.rows.functions.map(({ frames }) => new Set(frames.map((frame) => kernel.funcOf[frame])));
    this.sample = Int32Array.from({ length: head.samples }, (_, sample) => sample);
  }

  // The functions with instructions of a line, those with most time in them first; if there are none, those in which samples of a function
  // end. Of those, the instructions of the wanted one, else of the first.
  code(selection: Selection, shape: Shape, place: { file: number; line: number } | null, func: number | null, wanted: number | null): Code {
    const { own, hits } = this.count(selection, shape);
    const times = new Float64Array(this.rows.functions.length), inLine = new Float64Array(times.length).fill(-1);
    for (let i = 1; i < own.length; i++) {
      const of = this.functionOf[i];
      times[of] += own[i];
      if (place && this.source[i - 1] === place.file + 1 && signed(this.line[i - 1]) === place.line) inLine[of] = Math.max(inLine[of], 0) + own[i];
    }
    const hasLine = inLine.some((time) => time >= 0);
    const is = (number: number) => (hasLine ? inLine[number] >= 0 : func === null ? place === null : this.funcs[number].has(func));
    const functions = this.rows.functions.flatMap(({ name, module, address }, number) => (is(number) ? [{ number, name, module, address, time: times[number] }] : []));
    functions.sort((a, b) => inLine[b.number] - inLine[a.number] || b.time - a.time || a.number - b.number);
    const shown = functions.find(({ number }) => number === wanted)?.number ?? functions[0]?.number ?? -1;
    return { functions, shown, instructions: shown < 0 ? null : this.instructions(shown, own, hits), left: this.rows.left };
  }

  private instructions(number: number, own: Float64Array, hits: Float64Array): Instructions {
    const { address, first, count, text } = this.rows.functions[number];
    const cut = <T extends Float64Array>(column: T, from: number) => column.slice(from, from + count);
    const addresses = new Float64Array(count);
    for (let i = 0, at = address; i < count; i++) {
      addresses[i] = at;
      at += this.length[first + i];
    }
    return {
      address: addresses, text: new TextDecoder().decode(this.text.subarray(text[0], text[0] + text[1])).split("\n").slice(0, count),
      file: Int32Array.from(cut(this.source, first), (file) => file - 1), line: Int32Array.from(cut(this.line, first), signed),
      inner: Array.from(cut(this.inner, first), (name) => this.rows.names[name]), own: cut(own, first + 1), hits: cut(hits, first + 1),
    };
  }

  // Time and samples by instruction. A sample counts if the transforms leave anything of it.
  private count(selection: Selection, shape: Shape): { own: Float64Array; hits: Float64Array } {
    const { box } = this.kernel;
    const map = Int32Array.from(this.at, (at, sample) => (at > 0 && shape.map[box[sample]] >= 0 ? at : -1));
    return this.kernel.folded(selection, timeMeasure(selection.measure), map, this.functionOf.length, this.sample);
  }
}
