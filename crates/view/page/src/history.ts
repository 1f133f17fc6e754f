// The steps of the state, and the browser's history beside them. A step is shown at once. The browser follows: it goes one way at a time, and
// takes its time for it.

// The address of each step.
const steps: string[] = [];
// The step that is shown, and the last one.
let step = 0, last = 0;
// The browser's entry, by its step; the lowest one that it has, as Chromium keeps the last 50; the highest one that is of these steps.
let entry = 0, bottom = 0, top = 0;
// Runs while the browser is on its way.
let moving = 0;
// How long a way may take, ms: there are none to entries that the browser has dropped.
const LIMIT = 3000;
let show: (hash: string) => void = () => {};

// Brings the browser to what is shown.
function follow(): void {
  if (moving) return;
  const wanted = Math.min(step, top), target = Math.max(wanted, bottom);
  if (entry !== target) {
    moving = setTimeout(() => {
      moving = 0;
      entry = bottom = top = step;
      follow();
    }, LIMIT) as unknown as number;
    history.go(target - entry);
    return;
  }
  // What is older than the browser's oldest entry is shown in that.
  if (history.state?.step !== wanted || location.hash.slice(1) !== steps[wanted]) history.replaceState({ step: wanted }, "", `#${steps[wanted]}`);
  if (wanted === step) return;
  if (wanted < bottom) bottom = wanted;
  while (top < step) {
    top++;
    history.pushState({ step: top }, "", `#${steps[top]}`);
  }
  entry = step;
  bottom = Math.max(bottom, step - (history.length - 1));
}

// Adds a step after the one that is shown, in the place of those that were undone.
export function push(hash: string): void {
  top = Math.min(top, step);
  last = ++step;
  steps.length = step;
  steps[step] = hash;
  follow();
}

// Changes the step that is shown.
export function replace(hash: string): void {
  steps[step] = hash;
  follow();
}

// Changes all of them.
export function rewrite(of: (hash: string) => string): void {
  steps.forEach((hash, at) => { steps[at] = of(hash); });
  follow();
}

// Neither leaves the page.
export function undo(): void {
  if (step > 0) move(step - 1);
}
export function redo(): void {
  if (step < last) move(step + 1);
}

function move(to: number): void {
  // Before the page was loaded again, there were steps that only the browser knows.
  if (steps[to] === undefined) return history.go(to - step);
  step = to;
  show(steps[to]);
  follow();
}

// Begins with the address of the page. `shows`: shows what an address says.
export function begin(hash: string, shows: (hash: string) => void): void {
  show = shows;
  step = last = entry = top = history.state?.step ?? 0;
  steps[step] = hash;
  addEventListener("popstate", () => {
    const was = moving;
    clearTimeout(moving);
    moving = 0;
    const known: number | undefined = history.state?.step;
    // The browser has an entry of its own for an address that somebody typed.
    entry = known === undefined ? entry + 1 : Math.max(known, bottom);
    if (was && known !== undefined) return follow();
    step = known ?? entry;
    top = known === undefined ? step : Math.max(step, top);
    last = known === undefined ? step : Math.max(step, last);
    steps[step] = location.hash.slice(1);
    follow();
    show(steps[step]);
  });
}
