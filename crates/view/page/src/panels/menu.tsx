// The menu of what is selected: opened by the right button or the menu key.

import { signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { commands, type Command } from "../commands.ts";
import { loaded } from "../recording.ts";
import { target } from "../target.ts";

const menu = signal<{ x: number; y: number; back: Element | null } | null>(null);

export function openMenu(x: number, y: number): void {
  if (target.value) menu.value = { x, y, back: document.activeElement };
}

// Opens it where the focus is.
export function openMenuAtFocus(): void {
  const at = document.activeElement?.getBoundingClientRect();
  openMenu((at?.left ?? 0) + 40, (at?.top ?? 0) + 40);
}

// The key opens the browser's menu as well: not over this one.
addEventListener("contextmenu", (event) => { if (menu.value && event.target instanceof Node && event.target === document.activeElement) event.preventDefault(); });

export function Menu() {
  const box = useRef<HTMLDivElement>(null);
  const at = menu.value;
  // At once: the next key belongs to it.
  useLayoutEffect(() => { if (at) box.current?.querySelector("button")?.focus(); }, [at]);
  if (!at || !target.value || !loaded.value) return null;
  const close = () => {
    menu.value = null;
    if (at.back instanceof HTMLElement) at.back.focus();
  };
  const run = (command: Command) => {
    close();
    command.run();
  };
  const keys = (event: KeyboardEvent) => {
    const buttons = [...box.current!.querySelectorAll("button")];
    const index = buttons.indexOf(document.activeElement as HTMLButtonElement);
    const to = { ArrowDown: index + 1, ArrowUp: index - 1, Home: 0, End: buttons.length - 1 }[event.key];
    const command = commands.value.find(({ key, onTarget, can }) => onTarget && key === event.key && can?.() !== false);
    if (to !== undefined) buttons[(to + buttons.length) % buttons.length].focus();
    else if (event.key === "Escape" || event.key === "Tab") close();
    else if (command && event.key !== "Enter") run(command);
    else if (event.key === "Enter" || event.key === " ") { event.stopPropagation(); return; }
    event.preventDefault();
    event.stopPropagation();
  };
  const { name } = loaded.value.funcs[target.value.func];
  const left = Math.max(4, Math.min(at.x, innerWidth - 330)), top = Math.max(4, Math.min(at.y, innerHeight - 480));
  return (
    <>
      <div class="behind" onClick={close} onContextMenu={(event) => { event.preventDefault(); close(); }} />
      <div class="menu" role="menu" aria-label={name} ref={box} style={{ left: `${left}px`, top: `${top}px` }} onKeyDown={keys}>
        <div class="title" role="presentation">{name}</div>
        {commands.value.filter(({ onTarget, can }) => onTarget && can?.() !== false).map((command) => (
          <button key={command.name} role="menuitem" tabIndex={-1} onClick={() => run(command)}>
            <span>{command.name}</span>{command.key && <kbd>{command.key}</kbd>}
          </button>
        ))}
      </div>
    </>
  );
}
