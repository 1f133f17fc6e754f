// What the tones of lanes mean.

import { WAITS, type Wait } from "../kernel/waits.ts";

export const WAIT_NAMES: Record<Wait, string> = { lock: "lock", io: "file or socket", poll: "poll", sleep: "timer", other: "other" };

// There, the list is scrolled sideways: keys must reach it.
const narrow = matchMedia("(max-width: 600px)");

export function Legend() {
  return (
    <ul class="states" aria-label="States of threads" tabIndex={narrow.matches ? 0 : undefined}>
      <li title="On a CPU: the colour tells the kind of code">running</li>
      <li title="Waiting for a CPU"><i class="swatch ready" />ready</li>
      <li title="Not running; the tone tells what it waits in">asleep:</li>
      {WAITS.map((wait) => <li key={wait}><i class={`swatch ${wait}`} />{WAIT_NAMES[wait]}</li>)}
    </ul>
  );
}
