// What the tones of lanes mean.

import { WAITS, type Wait } from "../kernel/waits.ts";

export const WAIT_NAMES: Record<Wait, string> = { lock: "lock", io: "file or socket", poll: "poll", sleep: "timer", other: "other" };

export function Legend() {
  return (
    <ul class="states" aria-label="States of threads">
      <li title="On a CPU: the colour tells the kind of code">running</li>
      <li title="Waiting for a CPU"><i class="swatch ready" />ready</li>
      <li title="Not running; the tone tells what it waits in">asleep:</li>
      {WAITS.map((wait) => <li key={wait}><i class={`swatch ${wait}`} />{WAIT_NAMES[wait]}</li>)}
    </ul>
  );
}
