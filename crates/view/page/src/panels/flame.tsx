// The flame graph of the selection, with the way to what fills its width.

import { loaded } from "../recording.ts";
import { change, state } from "../state.ts";
import { graph, graphComes, zoomed, zoomTo } from "../target.ts";
import { FlameCanvas } from "./flamecanvas.tsx";

export function Flame() {
  return (
    <div class="column">
      <Crumbs />
      <FlameCanvas graph={() => graph.value} comes={graphComes} zoomed={() => zoomed.value} icicle={() => state.value.icicle} onZoom={zoomTo}
        label="Flame graph. Arrow keys go from box to box, Enter zooms. The tab Call tree has the same as a table." />
    </div>
  );
}

// Where the zoomed node is: each caller zooms out to itself.
function Crumbs() {
  const shown = graph.value;
  if (!shown || !loaded.value || zoomed.value === 0) return null;
  const { funcs } = loaded.value;
  const way = shown.way(zoomed.value);
  return (
    <nav class="crumbs" aria-label="Zoom">
      <button onClick={() => change({ zoom: [] })}>all</button>
      {way.map((func, i) => (
        <button key={i} aria-current={i === way.length - 1 ? "true" : undefined}
          onClick={() => change({ zoom: way.slice(0, i + 1).map((func) => funcs[func].name) })}>{funcs[func].name}</button>
      ))}
    </nav>
  );
}
