// Starts the page: draws what the head knows, then loads the columns.

import { render } from "preact";
import { App } from "./app.tsx";
import { countSamples } from "./measures.ts";
import { failure, head, load } from "./recording.ts";
import { listen as listenToServer } from "./served.ts";
import { amend, INITIAL, listen, naming } from "./state.ts";
import { ThreadNames } from "./threads.ts";

// Without samples, allocations are what there is.
if (head.samples === 0 && head.allocations) INITIAL.measure = "bytes";
naming.threads = new ThreadNames(head);
listen();
if (head.untimed) {
  countSamples();
  // An address that was made for a recording with times.
  amend({ range: null, pinned: null, view: null });
}
listenToServer(() => location.reload());
// The browser can paint and answer between the parts.
setTimeout(() => {
  render(<App />, document.getElementById("app")!);
  setTimeout(() => {
    load().then(() => { performance.mark("stackglass-open"); }).catch((error) => { failure.value = `The recording cannot be shown: ${error instanceof Error ? error.message : error}`; });
  });
});
