// Bytes and counts, as the reports in Rust write them (crates/report/src/text/numbers.rs).

function withPrefix(number: number, units: string[]): string {
  let value = number, unit = "";
  for (unit of units) {
    value /= 1000;
    if (value < 999.5) break;
  }
  return `${value.toFixed(value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2)} ${unit}`;
}

// Three figures: `17 B`, `4.20 kB`, `345 MB`.
export function bytes(size: number): string {
  return size < 1000 ? `${size} B` : withPrefix(size, ["kB", "MB", "GB", "TB", "PB", "EB"]);
}

// In groups of three digits from five digits on, three figures from 100 000 on: `5413`, `12 345`, `346 k`.
export function count(number: number): string {
  if (number >= 100_000) return withPrefix(number, ["k", "M", "G", "T", "P", "E"]);
  return number < 10_000 ? String(number) : `${Math.floor(number / 1000)} ${String(number % 1000).padStart(3, "0")}`;
}

export function counted(number: number, one: string, many: string): string {
  return `${count(number)} ${number === 1 ? one : many}`;
}
