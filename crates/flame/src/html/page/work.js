// Long computations in slices, so that the page answers meanwhile.
//
// A computation is a generator that yields its progress, from 0 to 1, every few milliseconds, and returns its result.
// If it is stopped, its `finally` blocks run.

const SLICE = 12, FIRST_SLICE = 40;

// Runs a computation to its end.
function finish(steps) {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

// Runs a computation in slices. Short ones end before this returns. `progress` is called between slices, and `done`
// with the result at the end. Returns a function that stops the computation.
function runInSlices(steps, progress, done) {
  let stopped = false, channel = null;
  const slice = (duration) => {
    const end = performance.now() + duration;
    for (;;) {
      const step = steps.next();
      if (step.done) {
        channel?.port1.close();
        stopped = true;
        done(step.value);
        return;
      }
      if (performance.now() >= end) {
        if (!channel) {
          channel = new MessageChannel();
          channel.port1.onmessage = () => !stopped && slice(SLICE);
        }
        progress(step.value);
        channel.port2.postMessage(0);
        return;
      }
    }
  };
  slice(FIRST_SLICE);
  return () => {
    if (stopped) return;
    stopped = true;
    channel?.port1.close();
    steps.return();
  };
}
