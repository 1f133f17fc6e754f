// Keys of the tracks. Letters that other panels use, too, belong to the tracks while the focus or the pointer is there.

import { change, chosen, state } from "../state.ts";
import type { Pointers } from "./pointers.ts";
import { pan, pointed, show, zoom } from "./view.ts";

const STEP = 0.15;

const ACTIONS: Record<string, () => void> = {
  w: () => zoom(1 / 1.5, pointed.value?.clock),
  s: () => zoom(1.5, pointed.value?.clock),
  a: () => pan(-STEP),
  d: () => pan(STEP),
};

// Listens; returns what ends that.
export function keys(section: HTMLElement, pointers: Pointers): () => void {
  const isTyping = ({ target }: KeyboardEvent) => target instanceof HTMLInputElement || target instanceof HTMLSelectElement || target instanceof HTMLTextAreaElement;
  const isHere = () => pointed.value !== null || section.contains(document.activeElement);
  // Before other listeners.
  const first = (event: KeyboardEvent) => {
    if (isTyping(event) || document.querySelector("dialog[open]") || event.ctrlKey || event.metaKey || event.altKey) return;
    const action = isHere() && !event.shiftKey ? ACTIONS[event.key] : undefined;
    if (action) action();
    else if (event.key === "z" && state.value.range && (isHere() || chosen.value === null)) show(state.value.range);
    else if (event.key === "Z" && state.value.view && (isHere() || chosen.value === null)) show(null);
    else if (event.key === "Escape" && pointers.isDragging) pointers.abandon();
    else if (event.key === "Escape" && isHere() && state.value.range) change({ range: null });
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  // After them: Escape, if nothing else is selected.
  const after = (event: KeyboardEvent) => {
    if (event.key === "Escape" && !isTyping(event) && chosen.value === null && state.value.range) change({ range: null });
  };
  addEventListener("keydown", first, true);
  addEventListener("keydown", after);
  return () => {
    removeEventListener("keydown", first, true);
    removeEventListener("keydown", after);
  };
}
