// Zooms and searches the picture where a browser opens it. All text stays text: nothing is parsed as markup.
//
// A box is a path with `data-s` (its start and its samples) and `data-m` (the class of its mark). A hatched path with `data-s`
// stands for boxes that the file does not have: start, samples across, number of boxes, samples.
const svg = document.currentScript.ownerSVGElement, NAMESPACE = svg.namespaceURI;
const MARGIN = 8, TOP = 34, ROW = 17, LETTER = 6.62;
const unit = svg.dataset.unit, byLine = svg.dataset.by === "line";

function make(name, attributes, parent, text = "") {
  const element = document.createElementNS(NAMESPACE, name);
  for (const key in attributes) element.setAttribute(key, attributes[key]);
  if (text) element.textContent = text;
  if (parent) parent.append(element);
  return element;
}

const number = (value) => String(value).replace(/\B(?=(\d{3})+$)/g, value > 9999 ? "\u00a0" : "");
const percent = (part) => {
  const share = (part / total) * 100;
  return `${share.toFixed(share >= 99.95 ? 0 : share >= 1 || !part ? 1 : 2)} %`;
};

// The boxes by row, each with its parent.
const rows = [...svg.querySelectorAll("g.r")].map((group) => ({ group, boxes: [] }));
for (const [depth, { group, boxes }] of rows.entries()) {
  for (const path of group.querySelectorAll("path[data-s]")) {
    const [start, len, count, samples] = path.dataset.s.split(" ").map(Number);
    const lines = (path.textContent || "").split("\n"), line = byLine && /:(\d+)( \[inlined\])?$/.exec(lines[1] || "");
    const name = line ? `${lines[0]}:${line[1]}` : lines[0];
    boxes.push({ path, start, len, end: start + len, count: count || 1, samples: count ? samples : len, name, place: lines[1] || "", mark: path.dataset.m, omitted: count > 0, row: depth });
  }
  boxes.sort((a, b) => a.start - b.start || b.len - a.len);
  let at = 0;
  for (const box of boxes) {
    const above = depth ? rows[depth - 1].boxes : [];
    while (at < above.length - 1 && above[at + 1].start <= box.start) at++;
    // Of boxes that start at one place, the parent is the one with a length.
    box.parent = above[at];
    for (let back = at; box.parent && back >= 0 && (box.parent.omitted || box.parent.end < box.end); back--) box.parent = above[back];
  }
}
for (const { boxes } of [...rows].reverse()) for (const { parent, count } of boxes) if (parent) parent.count += count;
const all = rows[0].boxes[0], total = all.len;
let low = 0, high = total, width = svg.viewBox.baseVal.width - 2 * MARGIN, found = null;

function labelOf(box, columns) {
  const text = shortenName(box.name, columns), share = percent(box.len);
  return text === box.name && box !== all && columns >= text.length + share.length + 2 ? `${text}  ${share}` : text;
}

function draw() {
  const scale = width / (high - low);
  for (const { group, boxes } of rows) {
    const parts = [];
    let run = null;
    const area = (left, right) => `M${left.toFixed(1)} 4v-16h${(right - left).toFixed(1)}v16z`;
    const outline = (left, right) => parts.push(make("path", { class: "F", d: `M${(left + 1).toFixed(1)} 3v-14h${Math.max(0.5, right - left - 2).toFixed(1)}v14z` }));
    const endRun = () => {
      if (!run) return;
      const right = Math.min(width, Math.max(run.right, run.left + 1)), path = make("path", { class: "Z", d: area(run.left, right) });
      make("title", {}, path, `${number(run.boxes)} ${run.boxes === 1 ? "box" : "boxes"} left out, ${number(run.samples)} ${run.samples === 1 ? unit.replace(/([^mµ])s$/, "$1") : unit}, ${percent(run.samples)}`);
      path.range = [run.start, run.end];
      parts.push(path);
      if (run.hit) outline(run.left, right);
      run = null;
    };
    for (const box of boxes) {
      box.drawn = false;
      if (box.parent && !box.parent.drawn) continue;
      const left = Math.max(0, (box.start - low) * scale), right = Math.min(width, (box.end - low) * scale);
      if (right <= 0 || left >= width || right < left) continue;
      if (box.omitted || right - left < 1) {
        if (run && left > run.right + 1) endRun();
        run = run || { left, right, start: box.start, end: box.end, boxes: 0, samples: 0, hit: false };
        run.right = Math.max(run.right, right);
        run.end = Math.max(run.end, box.end);
        run.boxes += box.count;
        run.samples += box.samples;
        run.hit = run.hit || Boolean(found && box.hits);
        continue;
      }
      endRun();
      box.drawn = true;
      box.path.setAttribute("d", area(left, right));
      parts.push(box.path);
      const label = labelOf(box, Math.floor((right - left - 5) / LETTER));
      if (label) parts.push(make("text", { x: (left + 3).toFixed(1) }, null, label));
      if (box.mark) parts.push(make("path", { class: box.mark, d: `M${left.toFixed(1)} 3.2h${(right - left).toFixed(1)}` }));
      if (found && box.hit) outline(left, right);
    }
    endRun();
    group.replaceChildren(...parts);
  }
  drawHeading();
}

// The heading: the title, and from the right the buttons, and the total or what was found.
const title = svg.querySelector(".T"), fullTitle = svg.querySelector("title").textContent, totalText = svg.querySelector(".I");
const button = (text, action) => {
  const element = make("text", { class: "B", y: 20, tabindex: 0, role: "button" }, svg, text);
  element.addEventListener("click", action);
  element.addEventListener("keydown", (event) => (event.key === "Enter" ? action() : 0));
  return element;
};
const searchButton = button("Search", ask), resetButton = button("Reset zoom", () => zoom(0, total));
const foundText = make("text", { y: 20 }, svg);

function drawHeading() {
  let right = width + MARGIN;
  const place = (element, isShown) => {
    const left = right - element.getComputedTextLength();
    element.setAttribute("visibility", isShown && left >= MARGIN ? "visible" : "hidden");
    if (!isShown) return;
    element.setAttribute("text-anchor", "start");
    element.setAttribute("x", left);
    right = left - 14;
  };
  place(searchButton, true);
  place(resetButton, low > 0 || high < total);
  foundText.textContent = found ? `${percent(found.samples)} matched` : "";
  place(foundText, Boolean(found));
  // The title is cut rather than the buttons, and the total comes only where both fit.
  title.textContent = fullTitle;
  place(totalText, !found && MARGIN + title.getComputedTextLength() + 14 + totalText.getComputedTextLength() < right);
  let length = fullTitle.length;
  while (length && MARGIN + title.getComputedTextLength() > right) title.textContent = `${fullTitle.slice(0, (length = Math.floor(length * 0.95)))}…`;
}

function zoom(from, to) {
  [low, high] = to > from ? [from, to] : [0, total];
  draw();
}

// A search without capitals ignores case. Samples in nested matches count once.
function search(expression) {
  found = null;
  if (expression) {
    try {
      const regex = new RegExp(expression, expression === expression.toLowerCase() ? "iu" : "u");
      found = { samples: 0 };
      for (const box of rows.flatMap(({ boxes }) => boxes)) {
        box.hit = box !== all && !box.omitted && (regex.test(box.name) || regex.test(box.place));
        box.covered = box.hit || Boolean(box.parent && box.parent.covered);
        box.hits = box.hit;
        if (box.hit && !(box.parent && box.parent.covered)) found.samples += box.len;
      }
      for (const { boxes } of [...rows].reverse()) for (const box of boxes) if (box.hits && box.parent) box.parent.hits = true;
    } catch (error) {
      alert(error.message);
    }
  }
  draw();
}

let lastSearch = "";
function ask() {
  const expression = prompt("Search for functions and files (a regular expression):", lastSearch);
  if (expression !== null) search((lastSearch = expression));
}

svg.addEventListener("click", ({ target }) => {
  const path = target.closest("path");
  if (!path) return;
  if (path.range) return zoom(...path.range);
  const [start, len] = (path.dataset.s || "").split(" ").map(Number);
  if (len > 0) zoom(start, start + len);
});

// Where the picture is the whole document, it has the width of the window.
const legend = svg.querySelector(".L"), rowsHeight = svg.viewBox.baseVal.height - ROW * (1 + Math.max(...[...legend.children].map((item) => Number(/ (\d+)/.exec(item.getAttribute("transform"))[1]))) / ROW);
function fit() {
  // Larger on very wide screens and for fingers.
  const isTouched = matchMedia("(pointer: coarse)").matches, enlarged = isTouched ? 1.3 : innerWidth >= 2400 ? 1.25 : 1;
  const scrollBar = !isTouched && (rowsHeight + ROW) * enlarged > innerHeight ? 16 : 0;
  width = Math.max(100, (innerWidth - scrollBar) / enlarged - 2 * MARGIN);
  let x = 0, y = 0;
  for (const item of legend.children) {
    const needed = 38 + item.querySelector("text").getComputedTextLength();
    if (x && x + needed > width) [x, y] = [0, y + ROW];
    item.setAttribute("transform", `translate(${x} ${y})`);
    x += needed;
  }
  const height = rowsHeight + y + ROW;
  svg.setAttribute("viewBox", `0 0 ${width + 2 * MARGIN} ${height}`);
  svg.setAttribute("width", (width + 2 * MARGIN) * enlarged);
  svg.setAttribute("height", height * enlarged);
  draw();
}
if (document.documentElement === svg) {
  svg.setAttribute("role", "application");
  addEventListener("resize", fit);
  addEventListener("keydown", (event) => {
    if (event.key === "Escape") found ? search("") : zoom(0, total);
    else if (event.key === "/" && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      ask();
    }
  });
  fit();
  // The root of a high flame graph is below.
  if (rows.length > 1 && rows[0].group.getBoundingClientRect().top > innerHeight) scrollTo(0, svg.getBoundingClientRect().height);
} else draw();
