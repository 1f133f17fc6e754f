// The list of keys, and the list of all commands with a search.

import { signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { commands, dialog, type Command } from "../commands.ts";

export function Dialogs() {
  const shown = dialog.value;
  const box = useRef<HTMLDialogElement>(null);
  // At once: the next key belongs to it.
  useLayoutEffect(() => { if (shown && !box.current?.open) box.current?.showModal(); }, [shown]);
  if (!shown) return null;
  const close = () => { dialog.value = null; };
  return (
    <dialog ref={box} aria-label={shown === "keys" ? "Keys" : "Commands"} onClose={close} onKeyDown={(event) => event.stopPropagation()}
      onClick={(event) => { if (event.target === box.current) box.current!.close(); }}>
      {shown === "keys" ? <Keys close={() => box.current!.close()} /> : <Commands close={() => box.current!.close()} />}
    </dialog>
  );
}

const OTHER_KEYS: [string, string][] = [
  ["arrow keys", "go from box to box; open and close rows of the call tree"], ["Enter in a flame graph", "zoom to the selected box; Escape zooms out"],
  ["Enter in the search", "count only stacks with a match"], ["Menu key, Shift-F10", "what can be done with the selected function"],
];

function Keys({ close }: { close: () => void }) {
  return (
    <>
      <h2>Keys</h2>
      <div class="keys" tabIndex={0} role="region" aria-label="Keys">
        <dl>
          {commands.value.filter(({ key }) => key).map(({ key, name }) => <div key={name}><dt><kbd>{key}</kbd></dt><dd>{name}</dd></div>)}
          {OTHER_KEYS.map(([key, name]) => <div key={key}><dt>{key}</dt><dd>{name}</dd></div>)}
        </dl>
      </div>
      <button class="chip" onClick={close}>Close</button>
    </>
  );
}

const typed = signal("");
const active = signal(0);

// Commands with all words that were typed.
function matching(text: string): Command[] {
  const words = text.toLowerCase().split(/\s+/).filter((word) => word);
  return commands.value.filter(({ name, can }) => can?.() !== false && words.every((word) => name.toLowerCase().includes(word)));
}

function Commands({ close }: { close: () => void }) {
  const list = useRef<HTMLUListElement>(null);
  useLayoutEffect(() => { typed.value = ""; active.value = 0; }, []);
  const all = matching(typed.value);
  const index = Math.min(active.value, all.length - 1);
  useLayoutEffect(() => { list.current?.children[index]?.scrollIntoView({ block: "nearest" }); }, [index]);
  const run = (command: Command | undefined) => {
    close();
    dialog.value = null;
    command?.run();
  };
  const keys = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown") active.value = Math.min(index + 1, all.length - 1);
    else if (event.key === "ArrowUp") active.value = Math.max(index - 1, 0);
    else if (event.key === "Enter") run(all[index]);
    else return;
    event.preventDefault();
  };
  return (
    <>
      <input role="combobox" aria-expanded="true" aria-controls="commands" aria-label="Find a command" placeholder="find a command"
        aria-activedescendant={index >= 0 ? `command${index}` : undefined} value={typed.value} onKeyDown={keys}
        onInput={(event) => { typed.value = event.currentTarget.value; active.value = 0; }} />
      <ul class="commands" id="commands" role="listbox" aria-label="Commands" ref={list} tabIndex={0}>
        {all.map((command, i) => (
          <li key={command.name} id={`command${i}`} role="option" aria-selected={i === index} onClick={() => run(command)}>
            <span>{command.name}</span>{command.key && <kbd>{command.key}</kbd>}
          </li>
        ))}
      </ul>
    </>
  );
}
