// Allocations by the rows of a table, counted for the selection when somebody looks.

import { effect, signal } from "@preact/signals";
import { latest } from "./client.ts";
import { type AllocationKey, type AllocationRows, isMetric, type Selection } from "./model.ts";
import { otherOf } from "./other.ts";
import { client, counted, failure, head, shapeNumber } from "./recording.ts";
import { dragged, selection, state, type State } from "./state.ts";

// `other`: of what is compared with.
export interface Compared extends AllocationRows { other: AllocationRows | null; reading: number }
export const allocationRows = signal<Compared | null>(null);

const count = latest(async ({ of, other, by, shape, reading }: { of: Selection; other: Selection | null; by: AllocationKey; shape: number; reading: number }) => {
  try {
    const ask = (selection: Selection) => client.ask({ kind: "allocations", selection, by, shape });
    const rows = await ask(of);
    allocationRows.value = { ...rows, other: other && await ask(other), reading };
  } catch (error) {
    failure.value = `Allocations cannot be shown: ${error instanceof Error ? error.message : error}`;
  }
});

// Counts again for each selection, until the returned function is called. The chosen type does not hide the others.
export function watchAllocations(): () => void {
  return effect(() => {
    if (!counted.value || !head.value.allocations) return;
    const { by, measure } = state.value;
    const asked: State = { ...state.value, range: dragged.value ?? state.value.range, measure: isMetric(measure) ? measure : "bytes", ...(by === "type" ? { allocated: "" } : {}) };
    count({ of: selection(asked), other: otherOf(asked, head.value), by, shape: shapeNumber.value, reading: counted.value.reading });
  });
}
