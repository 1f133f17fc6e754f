// Above the lanes: find, zoom, and what the tones mean.

import { state } from "../state.ts";
import { Legend } from "./legend.tsx";
import { lanes, show, wanted } from "./view.ts";

export function Bar() {
  const { range, view } = state.value;
  const found = lanes.value.filter(({ kind }) => kind === "thread").length;
  return (
    <div class="trackbar">
      <input type="search" aria-label="Find lanes" placeholder="find threads" value={wanted.value} onInput={(event) => { wanted.value = event.currentTarget.value; }}
        onKeyDown={(event) => { if (event.key === "Escape") { wanted.value = ""; event.stopPropagation(); } }} />
      {wanted.value !== "" && <span class="dim" role="status">{found} thread{found === 1 ? "" : "s"}</span>}
      <button class="chip" disabled={!range} title="Show only the selected range (z)" onClick={() => show(range)}>zoom to selection</button>
      <button class="chip" disabled={!view} title="Show the whole time (Shift-Z)" onClick={() => show(null)}>whole</button>
      <Legend />
    </div>
  );
}
