// Starts the page: draws what the head knows, then loads the columns.

import { render } from "preact";
import { App } from "./app.tsx";
import { showNewer } from "./grown.ts";
import { countSamples } from "./measures.ts";
import { failure, head, load } from "./recording.ts";
import { listen as listenToServer } from "./served.ts";
import { startsWithBytes } from "./model.ts";
import { amend, INITIAL, listen, naming } from "./state.ts";
import { ThreadNames } from "./threads.ts";

if (startsWithBytes(head.value)) INITIAL.measure = "bytes";
naming.threads = new ThreadNames(head.value);
listen();
if (head.value.untimed) {
  countSamples();
  // An address that was made for a recording with times.
  amend({ range: null, pinned: null, view: null });
}
// The browser can paint and answer between the parts.
setTimeout(() => {
  render(<App />, document.getElementById("app")!);
  setTimeout(() => {
    const opened = load().then(() => { performance.mark("stackglass-open"); });
    listenToServer(() => opened.then(showNewer));
    opened.catch((error) => { failure.value = `The recording cannot be shown: ${error instanceof Error ? error.message : error}`; });
  });
});
