// Starts the page: draws what the head and the first picture know, then loads the columns.

import { render } from "preact";
import { App } from "./app.tsx";
import { showNewer } from "./grown.ts";
import { countSamples } from "./measures.ts";
import { readFirst } from "./first.ts";
import { failure, head, load } from "./recording.ts";
import { listen as listenToServer } from "./served.ts";
import { startsWithBytes } from "./model.ts";
import { amend, INITIAL, isWhole, listen, naming, state } from "./state.ts";
import { ThreadNames } from "./threads.ts";

if (startsWithBytes(head.value)) INITIAL.measure = "bytes";
naming.threads = new ThreadNames(head.value);
listen();
if (head.value.untimed) {
  countSamples();
  // An address that was made for a recording with times.
  amend({ range: null, pinned: null, view: null });
}
const picture = document.getElementById("first")?.textContent;
const first = picture && isWhole(state.value) ? readFirst(picture, head.value).catch(() => null) : null;
// The browser can paint and answer between the parts.
setTimeout(() => {
  render(<App />, document.getElementById("app")!);
  setTimeout(async () => {
    const opened = load(await first).then(() => { performance.mark("stackglass-open"); });
    listenToServer(() => opened.then(showNewer));
    opened.catch((error) => { failure.value = `The recording cannot be shown: ${error instanceof Error ? error.message : error}`; });
  });
});
