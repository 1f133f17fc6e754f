// Everything that can be done, with its key: the menu, the list of commands and the keyboard use this one list.

import { computed, signal } from "@preact/signals";
import { exportFolded, exportJson, exportPng, exportSvg, copyCommand } from "./export.ts";
import { nextHottest } from "./panels/source.tsx";
import { nextHottestInstruction } from "./panels/assembly.tsx";
import { expandAll } from "./panels/tree.tsx";
import { measuresOf, nameOf } from "./measures.ts";
import { isAgainstBefore } from "./other.ts";
import { head, loaded, steps } from "./recording.ts";
import { addStep, change, redo, state, undo, type Tab } from "./state.ts";
import { shownTabs, shownTab } from "./tabs.ts";
import type { Kind } from "./steps.ts";
import { graph, nodeOf, select, target, zoomTo, type Target } from "./target.ts";

export type Dialog = "keys" | "commands" | null;
export const dialog = signal<Dialog>(null);

export interface Command {
  name: string;
  // A value of KeyboardEvent.key.
  key?: string;
  // Whether it acts on the selected function: it is then part of the context menu.
  onTarget?: boolean;
  // Whether it can be done now.
  can?: () => boolean;
  run: () => void;
}

export const TAB_NAMES: Record<Tab, string> = { flame: "Flame graph", functions: "Functions", tree: "Call tree", order: "Time order", source: "Source", allocations: "Allocations", heap: "Heap", tasks: "Tasks", facts: "Facts" };

function withTarget(run: (target: Target) => void): () => void {
  return () => {
    const at = target.value;
    if (at) run(at);
  };
}
const func = (at: Target) => loaded.value!.funcs[at.func];

function onFunction(kind: Kind, name: string, key?: string): Command {
  return { name, key, onTarget: true, can: () => target.value !== null, run: withTarget((at) => addStep({ kind, of: loaded.value!.names.of(at.func) })) };
}
function onPath(kind: Kind, name: string, key?: string): Command {
  return {
    name, key, onTarget: true,
    can: () => target.value?.way != null && (kind !== "merge-path" || target.value.direction === "down"),
    run: withTarget((at) => {
      const of = at.way!.map((func) => loaded.value!.funcs[func].name);
      addStep({ kind: kind === "focus-path" && at.direction === "up" ? "focus-callers" : kind, of });
    }),
  };
}
function onCrate(kind: Kind, name: string, key?: string): Command {
  return {
    name, key, onTarget: true, can: () => target.value !== null && func(target.value).crate !== "",
    run: withTarget((at) => addStep({ kind, of: [func(at).crate] })),
  };
}

// What can be done with what the page has.
export const commands = computed((): Command[] => [
  onFunction("focus", "Focus on this function", "f"),
  onPath("focus-path", "Focus on this path only", "F"),
  onFunction("focus-self", "Focus on the function’s own time", "S"),
  onCrate("focus-crate", "Focus on its crate"),
  {
    name: "Focus on its kind of code", key: "g", onTarget: true, can: () => target.value !== null,
    run: withTarget((at) => addStep({ kind: "focus-category", of: [head.value.categories[func(at).category].name] })),
  },
  onFunction("merge", "Merge the function into its callers", "m"),
  onPath("merge-path", "Merge into the caller only here", "M"),
  onFunction("merge-callee", "Merge the function into its callees"),
  onFunction("collapse", "Collapse the function with all that it calls", "c"),
  onCrate("crate", "Collapse its crate to one frame", "C"),
  onFunction("recursion", "Collapse recursion of the function", "r"),
  onFunction("direct-recursion", "Collapse direct recursion of the function", "R"),
  onFunction("drop", "Drop samples with this function", "d"),
  onCrate("drop-crate", "Drop samples with its crate"),
  {
    name: "Zoom to it", key: "z", onTarget: true, can: () => target.value?.way != null,
    run: () => {
      const shown = graph.value, node = shown ? nodeOf(shown) : -1;
      if (shown && node >= 0) zoomTo(shown, node);
    },
  },
  { name: "Show callers and callees", key: "Enter", onTarget: true, can: () => target.value !== null && state.value.tab !== "functions", run: () => change({ tab: "functions" }) },
  ...(shownTabs.value.includes("source") ? [
    { name: "Show its source", key: "l", onTarget: true, can: () => target.value !== null && shownTab.value !== "source", run: () => change({ tab: "source", source: "" }) },
    { name: "Go to the hottest source line, then to the next", key: "j", run: () => { if (shownTab.value === "source") nextHottest(); else change({ tab: "source" }); } },
    { name: "Go to the hottest instruction, then to the next", key: "J", can: () => shownTab.value === "source", run: nextHottestInstruction },
  ] : []),
  { name: "Copy its name", onTarget: true, can: () => target.value !== null, run: withTarget((at) => { void navigator.clipboard?.writeText(func(at).full || func(at).name); }) },
  { name: "Hide foreign and runtime code", key: "h", run: () => addStep({ kind: "hide-foreign", of: [] }) },
  { name: "Only own code", key: "H", run: () => addStep({ kind: "own-only", of: [] }) },
  { name: "Collapse direct recursion of all functions", run: () => addStep({ kind: "direct-recursion", of: [] }) },
  { name: "Remove the last transform", can: () => steps.value.length > 0, run: () => change({ steps: state.value.steps.slice(0, -1), zoom: [] }) },
  { name: "Remove all transforms", can: () => steps.value.length > 0, run: () => change({ steps: [], zoom: [] }) },
  { name: "Undo", key: "u", run: undo },
  { name: "Redo", key: "U", run: redo },
  { name: "Invert: from callees to callers", key: "i", run: () => change({ inverted: !state.value.inverted, zoom: [] }) },
  { name: "Root at the top or at the bottom", key: "t", run: () => change({ icicle: !state.value.icicle }) },
  { name: "Order boxes by name or by size", key: "o", run: () => change({ order: state.value.order === "name" ? "size" : "name" }) },
  { name: "Open all of the call tree", key: "*", run: () => { change({ tab: "tree" }); void expandAll(); } },
  { name: "Zoom out", can: () => state.value.zoom.length > 0, run: () => change({ zoom: [] }) },
  { name: "Search", key: "/", run: () => document.querySelector<HTMLInputElement>("header input")?.focus() },
  { name: "Select nothing", key: "Escape", run: () => select(null) },
  { name: "Count the whole time", can: () => state.value.range !== null, run: () => change({ range: null }) },
  {
    name: "Compare with the selected time from now on", key: "p", can: () => state.value.range !== null,
    run: () => change({ pinned: state.value.range, range: null }),
  },
  {
    name: "Compare no longer", can: () => state.value.pinned !== null || isAgainstBefore(state.value, head.value),
    run: () => change(state.value.pinned ? { pinned: null } : { alone: true }),
  },
  ...(head.value.before ? [{ name: `Compare with ${head.value.before.name}`, can: () => !isAgainstBefore(state.value, head.value), run: () => change({ alone: false, pinned: null, threads: null }) }] : []),
  ...measuresOf(head.value).map((measure): Command => ({ name: `Count ${nameOf(measure, head.value)}`, run: () => change({ measure }) })),
  ...shownTabs.value.map((tab, i): Command => ({ name: TAB_NAMES[tab], key: String(i + 1), run: () => change({ tab }) })),
  { name: "Save the flame graph as SVG", run: exportSvg },
  { name: "Save the flame graph as PNG", run: exportPng },
  { name: "Save the stacks as folded text", run: exportFolded },
  { name: "Save what is shown as JSON", run: exportJson },
  { name: "Copy the command that prints this", run: copyCommand },
  { name: "All keys", key: "?", run: () => { dialog.value = "keys"; } },
  { name: "All commands", key: "Ctrl-K", run: () => { dialog.value = "commands"; } },
]);

// Runs what a key stands for; whether it stands for anything.
export function runKey(event: KeyboardEvent): boolean {
  const typing = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    dialog.value = "commands";
    return true;
  }
  if (typing || event.ctrlKey || event.metaKey || event.altKey || dialog.value !== null) return false;
  // Enter presses the button that has the focus.
  if (event.key === "Enter" && event.target instanceof HTMLButtonElement) return false;
  const command = commands.value.find(({ key }) => key === event.key);
  if (!command || command.can?.() === false) return false;
  command.run();
  return true;
}
