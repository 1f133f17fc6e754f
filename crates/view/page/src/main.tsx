// Starts the page: draws what the head knows, then loads the columns.

import { render } from "preact";
import { App } from "./app.tsx";
import { failure, head, load } from "./recording.ts";
import { listen as listenToServer } from "./served.ts";
import { INITIAL, listen, naming } from "./state.ts";
import { ThreadNames } from "./threads.ts";

// Without samples, allocations are what there is.
if (head.samples === 0 && head.allocations) INITIAL.measure = "bytes";
naming.threads = new ThreadNames(head);
listen();
listenToServer(() => location.reload());
render(<App />, document.getElementById("app")!);
load().then(() => { performance.mark("stackglass-open"); }).catch((error) => { failure.value = `The recording cannot be shown: ${error instanceof Error ? error.message : error}`; });
