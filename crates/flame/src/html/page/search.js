// Search: finds matching boxes and the samples in them. Nested matches count once.
//
// Expressions are matched in a worker, because only a worker can be stopped: an expression may take more than the age of the
// universe, and a link can contain one.

// Most milliseconds that an expression may take, and that the worker may take to start.
const EXPRESSION_TIME = 1500, START_TIME = 10_000;

// Marks the frames that match, or throws if the regular expression is invalid. `texts` are the page's strings, and
// `table` has six numbers for each frame. The worker has a copy of this function, so it uses nothing else.
function matchFrames(texts, table, query, isRegex) {
  // A lower-case query ignores case (smart case).
  const flags = query === query.toLowerCase() ? "iu" : "u";
  const regex = new RegExp(isRegex ? query : query.replace(/[.*+?^${}()|[\]\\\/]/g, "\\$&"), flags);
  const known = new Map();
  const matches = (text) => {
    let hit = known.get(text);
    if (hit === undefined) known.set(text, (hit = regex.test(texts[text])));
    return hit;
  };
  const hits = new Uint8Array(table.length / 6);
  for (let frame = 0, at = 0; frame < hits.length; frame++, at += 6) {
    const file = table[at + 2];
    hits[frame] = matches(table[at]) || matches(table[at + 1]) || (file !== 0 && regex.test(`${texts[file]}:${table[at + 3]}`));
  }
  return hits;
}

const WORKER = `"use strict";
let texts, table;
${matchFrames}
onmessage = ({ data }) => {
  if (data.texts) return ({ texts, table } = data);
  postMessage({ number: data.number, started: true });
  try {
    const hits = matchFrames(texts, table, data.query, true);
    postMessage({ number: data.number, hits }, [hits.buffer]);
  } catch (error) {
    postMessage({ number: data.number, error: String(error.message) });
  }
};`;

// The frames that match a query: at once for text, later for an expression. Calls `done` with `{ hits }` or `{ error }`,
// unless another search began in the meantime.
const frameSearch = {
  worker: null,
  number: 0,
  timer: 0,
  start(query, isRegex, done) {
    this.stop();
    if (!query) return done(null);
    if (!isRegex) return done({ hits: matchFrames(data.strings, data.frames, query, false) });
    const number = this.number;
    try {
      if (!this.worker) {
        const url = URL.createObjectURL(new Blob([WORKER], { type: "text/javascript" }));
        this.worker = new Worker(url);
        this.worker.postMessage({ texts: data.strings, table: data.frames });
      }
    } catch {
      return done({ error: "This browser cannot search by expression." });
    }
    const end = (answer) => {
      clearTimeout(this.timer);
      this.timer = 0;
      done(answer);
    };
    const limit = (time) => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => {
        this.stop();
        done({ error: `This expression takes more than ${EXPRESSION_TIME / 1000} s: simplify it.` });
      }, time);
    };
    this.worker.onmessage = ({ data: answer }) => {
      if (answer.number !== this.number || !this.timer) return;
      if (answer.started) limit(EXPRESSION_TIME);
      else end(answer);
    };
    this.worker.onerror = () => number === this.number && this.timer && end({ error: "This browser cannot search by expression." });
    limit(START_TIME);
    this.worker.postMessage({ number, query });
  },
  // Stops a running search. A worker in the middle of an expression can only be ended.
  stop() {
    this.number++;
    if (!this.timer) return;
    clearTimeout(this.timer);
    this.timer = 0;
    this.worker.terminate();
    this.worker = null;
  },
};

// The matches in a graph. `hit` marks matching boxes and `covered` marks boxes in or below one. `before[i]` counts the
// matches before index `i` of `order`, so counting the matches of a run takes one subtraction.
function search(graph, frameHits) {
  const hit = new Uint8Array(graph.count), covered = new Uint8Array(graph.count);
  let boxes = 0;
  for (let node = 1; node < graph.count; node++) {
    hit[node] = frameHits[graph.frame[node]];
    covered[node] = covered[graph.parent[node]] | hit[node];
  }
  const before = new Uint32Array(graph.order.length + 1);
  for (let i = 0; i < graph.order.length; i++) before[i + 1] = before[i] + hit[graph.order[i]];
  boxes = before[graph.order.length];
  return { hit, covered, before, boxes, samples: matchedWithin(graph, { hit, covered }, 0) };
}

// The samples in the subtree of `branch` that matching boxes cover.
function matchedWithin(graph, found, branch) {
  if (found.covered[branch]) return graph.len[branch];
  const from = graph.start[branch], to = from + graph.len[branch], depth = graph.depth[branch];
  let samples = 0;
  for (let node = 1; node < graph.count; node++) {
    if (!found.hit[node] || found.covered[graph.parent[node]] || graph.depth[node] <= depth) continue;
    if (graph.start[node] >= from && graph.start[node] < to) samples += graph.len[node];
  }
  return samples;
}
