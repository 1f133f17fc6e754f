// Out of the page: pictures, text, JSON, and the command that prints the same.

import { signal } from "@preact/signals";
import { themed } from "./canvas.ts";
import { code } from "./code.ts";
import { layout, shortened } from "./layout.ts";
import type { Mirror } from "./mirror.ts";
import { boxColor, ROW } from "./panels/flamecanvas.tsx";
import { amount, hitsText, nameOf, unitOf } from "./measures.ts";
import { isMetric } from "./model.ts";
import { isAgainstBefore } from "./other.ts";
import { counted, head, isRead, loaded, steps } from "./recording.ts";
import { source, sourceFiles } from "./source.ts";
import { state, type State, type Tab } from "./state.ts";
import { words } from "./steps.ts";
import { shownTab } from "./tabs.ts";
import { taskDump } from "./tasks.ts";
import { graph, zoomed } from "./target.ts";
import { percent } from "./units.ts";

// What the last command did, for a while.
export const said = signal("");
let timer = 0;
function say(text: string): void {
  said.value = text;
  clearTimeout(timer);
  timer = setTimeout(() => { said.value = ""; }, 6000) as unknown as number;
}

// Only what is known is saved.
function isKnown(): boolean {
  if (!isRead.value) say("the recording is still being read");
  return isRead.value;
}

function save(name: string, content: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  say(`saved as ${name}`);
}

function fileName(extension: string): string {
  return `${head.value.title.split("/").pop()!.replace(/[^\w.-]+/g, "-").slice(0, 60) || "stackglass"}.${extension}`;
}

const markup = (text: string) => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);

// What the picture shows, in words.
function titleOf({ whole, counted }: Mirror): string {
  const name = nameOf(counted.measure, head.value), hits = hitsText(counted, counted.hits[0]);
  return unitOf(counted.measure) === "ns" ? `${amount(counted, whole)} of ${name} in ${hits}` : `${amount(counted, whole)}: ${name}`;
}

// The flame graph as it is shown, in its whole height.
async function picture(shown: Mirror, width: number) {
  const { rank, funcs } = loaded.value!;
  const laid = () => layout(shown, zoomed.value, width, state.value.order === "name" ? rank : null);
  // The page has what is wide enough for its own window.
  let boxes = laid();
  while (await shown.settled()) boxes = laid();
  const rows = boxes.reduce((most, { row }) => Math.max(most, row + 1), 1);
  const top = 24, height = top + rows * ROW + 4;
  return {
    height,
    title: `${head.value.title}: ${titleOf(shown)}`,
    boxes: boxes.map(({ node, x, width, row }) => {
      const name = funcs[shown.func[node]].name;
      const room = Math.floor((width - 6) / 7.2);
      return {
        x, y: top + (state.value.icicle ? row : rows - 1 - row) * ROW, width: Math.max(width - 0.5, 0.4), color: boxColor(shown, node),
        text: room >= 3 ? shortened(name, room) : "", title: `${name}: ${amount(shown.counted, shown.total[node])}, ${percent(shown.total[node], shown.whole)}`,
      };
    }),
  };
}

export async function svgOf(shown: Mirror): Promise<string> {
  const { height, title, boxes } = await picture(shown, 1200);
  const drawn = boxes.map(({ x, y, width, color, text, title }) =>
    `<g><title>${markup(title)}</title><rect x="${x.toFixed(2)}" y="${y}" width="${width.toFixed(2)}" height="${ROW - 1}" fill="${color}"/>` +
    `${text ? `<text x="${(x + 3).toFixed(2)}" y="${y + 13}">${markup(text)}</text>` : ""}</g>`);
  return `<svg xmlns="http://www.w3.org/2000/svg" width="1200" height="${height}" viewBox="0 0 1200 ${height}" font-family="monospace" font-size="12">` +
    `<rect width="1200" height="${height}" fill="#fff"/><text x="4" y="16">${markup(title)}</text>\n${drawn.join("\n")}\n</svg>\n`;
}

export async function exportSvg(): Promise<void> {
  if (isKnown() && graph.value) save(fileName("svg"), new Blob([await svgOf(graph.value)], { type: "image/svg+xml" }));
}

// Twice the pixels of the page.
export async function exportPng(): Promise<void> {
  if (!isKnown() || !graph.value) return;
  const { height, title, boxes } = await picture(graph.value, 1200);
  const canvas = document.createElement("canvas");
  canvas.width = 2400;
  canvas.height = 2 * height;
  const context = canvas.getContext("2d")!;
  context.scale(2, 2);
  context.fillStyle = themed("--page");
  context.fillRect(0, 0, 1200, height);
  context.font = "12px monospace";
  context.fillStyle = themed("--text");
  context.fillText(title, 4, 16);
  for (const { x, y, width, color, text } of boxes) {
    context.fillStyle = color;
    context.fillRect(x, y, width, ROW - 1);
    context.fillStyle = "#111";
    if (text) context.fillText(text, x + 3, y + 13);
  }
  canvas.toBlob((blob) => { if (blob) save(fileName("png"), blob); });
}

// One line for each stack with time of its own: functions between semicolons, then ns, bytes or a count.
export function folded(): string {
  const { tree, own } = counted.value!;
  const { funcs } = loaded.value!;
  const lines: string[] = [];
  for (let box = 1; box < own.length; box++) {
    if (own[box] <= 0) continue;
    const way: string[] = [];
    for (let at = box; at > 0; at = tree.parent[at]) way.push(funcs[tree.func[at]].name.replaceAll(";", ","));
    lines.push(`${way.reverse().join(";")} ${Math.round(own[box])}\n`);
  }
  if (own[0] > 0) lines.push(`[no stack] ${Math.round(own[0])}\n`);
  return lines.join("");
}

export function exportFolded(): void {
  if (isKnown() && counted.value) save(fileName("folded"), new Blob([folded()], { type: "text/plain" }));
}

export function exportJson(): void {
  if (!isKnown() || !counted.value || !loaded.value) return;
  const { funcOwn, funcTotal, funcHits, total, hits, other } = counted.value;
  const unit = unitOf(counted.value.measure);
  const functions = loaded.value.funcs.flatMap(({ name, file, line, module, crate }, func) => (func > 0 && (funcTotal[func] > 0 || (other?.funcTotal[func] ?? 0) > 0) ? [{
    name, file, line, module, crate, [`own_${unit}`]: Math.round(funcOwn[func]), [`total_${unit}`]: Math.round(funcTotal[func]), samples: funcHits[func],
    ...(other ? { [`before_own_${unit}`]: Math.round(other.funcOwn[func]), [`before_total_${unit}`]: Math.round(other.funcTotal[func]) } : {}),
  }] : []));
  const { range, threads, measure, pinned, allocated } = state.value;
  const content = {
    title: head.value.title, command: head.value.command, selection: { range_ns: range, threads, measure, ...(allocated ? { type: allocated } : {}), compared_with_ns: pinned, compared_with: isAgainstBefore(state.value, head.value) ? head.value.before!.name : null, transforms: steps.value.map(({ step }) => words(step)) },
    [`total_${unit}`]: Math.round(total[0]), samples: hits[0], functions, folded: folded(), ...(shownTab.value === "source" ? linesShown() : {}),
  };
  save(fileName("json"), new Blob([JSON.stringify(content, null, 1)], { type: "application/json" }));
}

// The lines of the source file that is shown, and the instructions beside them.
function linesShown() {
  const now = source.value, of = code.value?.instructions;
  const lines = now && Array.from(now.source.lines.line, (line, i) => {
    const { own, total, ownHits, totalHits } = now.source.lines;
    return { line, own_ns: own[i], total_ns: total[i], own_samples: ownHits[i], total_samples: totalHits[i] };
  });
  const instructions = of?.text.map((text, i) => ({ address: of.address[i], instruction: text, line: of.line[i], own_ns: of.own[i], own_samples: of.hits[i] }));
  return { source: now && { file: sourceFiles.value?.[now.source.file]?.path, lines }, instructions };
}

const quoted = (text: string) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

// The command that prints what is shown, as far as the command can, and what it cannot.
export function commandOf({ threads, measure, steps, range, pinned, inverted, func, by, allocated }: State): string {
  if (shownTab.value === "heap") return `stackglass heap show ${quoted(head.value.heap!.name)}${state.value.type ? ` --type ${quoted(state.value.type)}` : ""}`;
  if (shownTab.value === "tasks" && state.value.tasks !== "names" && state.value.tasks !== "lines" && head.value.tasks!.dump) return `stackglass tasks ${taskDump.value?.pid ?? "PID"}`;
  const tab = shownTab.value;
  const verb = ({ tasks: "hot", allocations: "allocs", source: "annotate", flame: "flamegraph" } as Partial<Record<Tab, string>>)[tab] ?? (tab === "functions" && func.length ? "callers" : "print");
  const parts = ["stackglass", verb];
  const rest: string[] = [];
  if (verb === "callers") parts.push(quoted(func[0]));
  if (head.value.file !== null) parts.push(quoted(head.value.file));
  if (verb === "hot" && state.value.tasks === "names") parts.push("--by", "task");
  if (verb === "print" && tab === "functions") parts.push("--format", "flat", "--sortedby", "overhead");
  if (verb === "print" && tab !== "functions") parts.push("--format", "tree");
  if (verb === "allocs") parts.push("--by", by);
  const file = sourceFiles.value?.[source.value?.source.file ?? -1];
  if (verb === "annotate" && file) parts.push("--file", quoted(file.path));
  if (threads && verb !== "callers" && verb !== "allocs" && verb !== "annotate") parts.push("--threads", threads.join(","));
  else if (threads) rest.push("the choice of threads");
  if (verb === "allocs" && !isMetric(measure)) parts.push("--metric", "bytes");
  else if (measure === "asleep") parts.push("--asleep");
  else if (measure === "wall") parts.push("--wall");
  else if (measure === "ready") rest.push("time ready");
  else if (isMetric(measure) && verb !== "annotate") parts.push("--metric", measure);
  if (allocated && verb === "allocs") parts.push("--type", quoted(allocated));
  else if (allocated && isMetric(measure)) rest.push(`only the type ${allocated}`);
  for (const step of steps) {
    if (step.kind === "with" && (verb === "flamegraph" || verb === "hot") && !parts.includes("--filter")) parts.push("--filter", quoted(step.of[0]));
    else rest.push(words(step));
  }
  // Both ends in ns, as the page counts.
  if (range) parts.push("--from", `${Math.round(range[0])}ns`, "--to", `${Math.round(range[1])}ns`);
  if (pinned || isAgainstBefore(state.value, head.value)) rest.push("the comparison");
  if (inverted && verb !== "annotate") rest.push("the inversion");
  return parts.join(" ") + (rest.length ? `   # without: ${rest.join("; ")}` : "");
}

export function copyCommand(): void {
  const text = commandOf(state.value);
  const copied = navigator.clipboard?.writeText(text);
  if (copied) copied.then(() => say(`copied: ${text}`), () => say(text));
  else say(text);
}
