// A page that is served asks its server whether there is a newer one, and holds a connection open: the server ends when no page does.

import { signal } from "@preact/signals";

// The server has ended. The page goes on, but cannot be loaded again.
export const ended = signal(false);

// How long the pointer and the keys must be idle before the page changes below them, ms.
const IDLE = 1500;

// Calls `renew` when there is a newer page and nobody points or types.
export function listen(renew: () => void): void {
  const served = document.querySelector<HTMLMetaElement>('meta[name="served"]');
  if (!served) return;
  let used = 0, timer = 0;
  for (const kind of ["pointermove", "pointerdown", "keydown", "wheel"]) {
    addEventListener(kind, () => { used = performance.now(); }, { passive: true, capture: true });
  }
  const renewWhenIdle = () => {
    clearTimeout(timer);
    const rest = used + IDLE - performance.now();
    if (used > 0 && rest > 0) timer = setTimeout(renewWhenIdle, rest) as unknown as number;
    else renew();
  };
  const events = new EventSource(served.content);
  events.addEventListener("page", ({ data }) => {
    ended.value = false;
    if (served.dataset.page !== data) renewWhenIdle();
  });
  events.addEventListener("error", () => { ended.value = true; });
}
