// The tabs that this page has: those with data.

import { computed } from "@preact/signals";
import { head } from "./recording.ts";
import { state, TABS, type Tab } from "./state.ts";

// A heap snapshot, or tasks of one moment, without a recording.
export const alone = computed(() => (head.value.heap !== null || head.value.tasks !== null) && !head.value.allocations && head.value.threads.length === 0 && head.value.samples === 0);

const isThere = computed((): Partial<Record<Tab, boolean>> => ({
  order: !alone.value && !head.value.untimed, source: !alone.value && head.value.sources.files > 0, allocations: head.value.allocations != null, heap: head.value.heap !== null, tasks: head.value.tasks !== null,
}));
export const shownTabs = computed<Tab[]>(() => TABS.filter((tab) => isThere.value[tab] ?? (!alone.value || tab === "facts")));

// The tab that is shown: that of the address, if there is one here.
export const shownTab = computed<Tab>(() => (shownTabs.value.includes(state.value.tab) ? state.value.tab : shownTabs.value[0]));
