// What is selected and transformed, as chips: each is removed by a click.

import { isMetric } from "../model.ts";
import { isAgainstBefore } from "../other.ts";
import { head, loaded, steps } from "../recording.ts";
import { change, chosen, dragged, state } from "../state.ts";
import { words } from "../steps.ts";
import { select } from "../target.ts";
import { time } from "../units.ts";

export function Chips() {
  const { range, threads, pinned, zoom, allocated, measure } = state.value;
  const shownRange = dragged.value ?? range;
  const chip = (title: string, text: string, remove: () => void, why?: string, key?: number) => (
    <button key={key} class={why ? "chip idle" : "chip"} title={why ? `${why}. ${title}` : title} onClick={remove}>{text}{why ? ` (${why})` : ""} ✕</button>
  );
  const all = [
    shownRange && chip("Count the whole time", `${time(shownRange[0])} to ${time(shownRange[1])}`, () => change({ range: null })),
    pinned && chip("Compare no longer", `compared with ${time(pinned[0])} to ${time(pinned[1])}`, () => change({ pinned: null })),
    isAgainstBefore(state.value, head.value) && chip("Compare no longer", `compared with ${head.value.before!.name}`, () => change({ alone: true })),
    threads && chip("Count all threads", threads.length === 1 ? head.value.threads[threads[0] - 1]?.name || "1 thread" : `${threads.length} threads`, () => change({ threads: null })),
    allocated !== "" && chip("Count all types", `only type ${allocated}`, () => change({ allocated: "" }), isMetric(measure) ? undefined : "allocations are not what is counted"),
    ...state.value.gone.map((name) => chip("Do not look for it", `thread ${name}`, () => change({ gone: state.value.gone.filter((other) => other !== name) }), "it is not in this recording")),
    ...steps.value.map(({ step, resolved }, i) =>
      chip("Remove this transform", words(step), () => change({ steps: state.value.steps.filter((_, at) => at !== i), zoom: [] }), "why" in resolved ? resolved.why : undefined, i)),
    chosen.value !== null && loaded.value && chip("Select no function", `selected: ${loaded.value.funcs[chosen.value].name}`, () => select(null)),
    zoom.length > 0 && chip("Show the whole graph", `zoom: ${zoom[zoom.length - 1]}`, () => change({ zoom: [] })),
  ].filter((one) => one);
  // The bar is always there, so that nothing moves under the pointer when something is selected.
  return <div class="chips" role="group" aria-label="Selection and transforms">{all.length ? all : <span class="dim">all of the recording; right click, or ? for what can be done</span>}</div>;
}
