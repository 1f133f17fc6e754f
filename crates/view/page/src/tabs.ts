// The tabs that this page has: those with data.

import { computed } from "@preact/signals";
import { head } from "./recording.ts";
import { state, TABS, type Tab } from "./state.ts";

// A heap snapshot, or tasks of one moment, without a recording.
export const alone = (head.heap !== null || head.tasks !== null) && !head.allocations && head.threads.length === 0 && head.samples === 0;

const isThere: Partial<Record<Tab, boolean>> = {
  order: !alone && !head.untimed, source: !alone && head.sources.files > 0, allocations: head.allocations != null, heap: head.heap !== null, tasks: head.tasks !== null,
};
export const SHOWN_TABS: Tab[] = TABS.filter((tab) => isThere[tab] ?? (!alone || tab === "facts"));

// The tab that is shown: that of the address, if there is one here.
export const shownTab = computed<Tab>(() => (SHOWN_TABS.includes(state.value.tab) ? state.value.tab : SHOWN_TABS[0]));
