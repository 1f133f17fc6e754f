// Expands the columns of a recording (crates/view/src/columns.rs).

import type { Head } from "./model.ts";

// gzip in base64, in parts that come one by one.
export class Expanding {
  private readonly stream = new DecompressionStream("gzip");
  private readonly writer = this.stream.writable.getWriter();
  private readonly bytes = new Response(this.stream.readable).arrayBuffer();

  constructor() {
    // Whoever waits for the end learns of it.
    this.bytes.catch(() => {});
  }

  add(base64: string): void {
    this.writer.write(bytesOf(base64)).catch(() => {});
  }

  async end(): Promise<Uint8Array> {
    this.writer.close().catch(() => {});
    return new Uint8Array(await this.bytes);
  }
}

// The browser's own way takes a tenth of the time; browsers before 2025 have none.
function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  if ("fromBase64" in (Uint8Array as object)) return Uint8Array.fromBase64(base64);
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

// gzip in base64, as bytes.
export function expand(parts: Iterable<string>): Promise<Uint8Array> {
  const expanding = new Expanding();
  for (const part of parts) expanding.add(part);
  return expanding.end();
}

// The bytes of each column.
export function split(head: Pick<Head, "columns">, bytes: Uint8Array): Map<string, Uint8Array> {
  const columns = new Map<string, Uint8Array>();
  let at = 0;
  for (const [name, size] of head.columns) {
    columns.set(name, bytes.subarray(at, at + size));
    at += size;
  }
  if (at !== bytes.length) throw new Error(`the columns have ${bytes.length} bytes, ${at} expected`);
  return columns;
}

// The numbers of a column: LEB128, up to 2^53.
export function numbers(bytes: Uint8Array, count = entries(bytes)): Float64Array {
  const all = new Float64Array(count);
  let at = 0;
  for (let i = 0; i < count; i++) {
    let value = 0, scale = 1, byte;
    do {
      if (at >= bytes.length) throw new Error(`a column ends after ${i} of ${count} numbers`);
      byte = bytes[at++];
      value += (byte & 0x7f) * scale;
      scale *= 128;
    } while (byte & 0x80);
    all[i] = value;
  }
  return all;
}

// The number of numbers in a column.
export function entries(bytes: Uint8Array): number {
  let count = 0;
  for (const byte of bytes) if (byte < 0x80) count++;
  return count;
}

// The inverse of zigzag.
export function signed(value: number): number {
  return value % 2 ? -(value + 1) / 2 : value / 2;
}
