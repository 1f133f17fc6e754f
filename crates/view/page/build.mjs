// Builds dist/page.js and dist/page.css. The worker is a bundle of its own, embedded as text: the page starts it from a blob.
// `node build.mjs FOLDER` writes to another folder, to compare with what is committed.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const { build } = createRequire(join(process.env.PAGE_PACKAGES ?? here, "package.json"))("esbuild");
const folder = process.argv[2] ?? join(here, "dist");
const common = {
  bundle: true, minify: true, write: false, format: "iife", target: "es2022", charset: "ascii", legalComments: "none",
  absWorkingDir: here, nodePaths: [join(process.env.PAGE_PACKAGES ?? here, "node_modules")],
};

const worker = await build({ ...common, entryPoints: ["src/worker.ts"] });
const page = await build({
  ...common,
  entryPoints: ["src/main.tsx"],
  jsx: "automatic",
  jsxImportSource: "preact",
  define: { WORKER: JSON.stringify(worker.outputFiles[0].text) },
});
const style = await build({ ...common, entryPoints: ["src/page.css"] });
mkdirSync(folder, { recursive: true });
// Nothing in a script may end its element.
const script = page.outputFiles[0].text.replaceAll("</", "<\\/").replaceAll("<!--", "<\\!--");
writeFileSync(join(folder, "page.js"), script);
writeFileSync(join(folder, "page.css"), style.outputFiles[0].text);
console.log(`page.js ${script.length}, page.css ${style.outputFiles[0].text.length} bytes`);
