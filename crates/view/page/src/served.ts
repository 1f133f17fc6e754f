// A page that is served asks its server whether there is a newer one, and holds a connection open: the server ends when no page does.

import { signal } from "@preact/signals";

// The server has ended. The page goes on, but cannot be loaded again.
export const ended = signal(false);

// How long the pointer and the keys must be idle before the page changes below them, ms.
const IDLE = 1500;

// Calls `renew` when there is a newer page and nobody points or types. It returns the number of what is shown then.
export function listen(renew: () => Promise<number>): void {
  const served = document.querySelector<HTMLMetaElement>('meta[name="served"]');
  if (!served) return;
  let used = -IDLE, timer = 0, shown = Number(served.dataset.page), newest = shown, isHeld = false, isRenewing = false;
  for (const kind of ["pointermove", "pointerdown", "pointerup", "pointercancel", "keydown", "wheel"]) {
    addEventListener(kind, () => {
      used = performance.now();
      if (kind !== "pointermove") isHeld = kind === "pointerdown";
    }, { passive: true, capture: true });
  }
  const renewWhenIdle = async () => {
    clearTimeout(timer);
    if (isRenewing || shown >= newest) return;
    const rest = isHeld || document.querySelector("dialog[open], [role=menu]") ? IDLE : used + IDLE - performance.now();
    if (rest > 0) {
      timer = setTimeout(renewWhenIdle, rest) as unknown as number;
      return;
    }
    isRenewing = true;
    // If it cannot be had, this page stays until the server tells of another.
    const was = shown;
    shown = await renew().catch(() => shown);
    isRenewing = false;
    if (shown !== was) void renewWhenIdle();
  };
  const events = new EventSource(served.content);
  events.addEventListener("page", ({ data }) => {
    ended.value = false;
    newest = Number(data);
    void renewWhenIdle();
  });
  events.addEventListener("error", () => { ended.value = true; });
}
