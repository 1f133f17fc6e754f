// Columns made of numbers, as the command writes them, and TypeScript modules for tests.

import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const page = join(dirname(fileURLToPath(import.meta.url)), "..");
const packages = process.env.PAGE_PACKAGES ?? page;

// A module of the page.
export async function module(name) {
  const { build } = createRequire(join(packages, "package.json"))("esbuild");
  const built = await build({ entryPoints: [join(page, "src", name)], bundle: true, write: false, format: "esm", target: "es2022" });
  return import(`data:text/javascript;base64,${Buffer.from(built.outputFiles[0].text).toString("base64")}`);
}

// Pseudo-random numbers below `n`.
export function random(seed) {
  let state = seed;
  return (n) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * n);
  };
}

export function leb128(numbers) {
  const bytes = [];
  for (let number of numbers) {
    number = BigInt(number);
    while (number >= 0x80n) {
      bytes.push(Number(number & 0x7fn) | 0x80);
      number >>= 7n;
    }
    bytes.push(Number(number));
  }
  return Uint8Array.from(bytes);
}
