// The page in a real browser, on a graph whose every figure is known (examples/pages.rs).

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { color, crumbs, found, launch, open, place, saved, settled, text } from "./pages.mjs";

let browser;
before(async () => { browser = await launch(); });
after(() => browser.close());

// What a function makes of an SVG file, in a page without a policy.
async function parsed(svg, read) {
  const page = await browser.newPage();
  const answer = await page.evaluate(`(${read})(new DOMParser().parseFromString(${JSON.stringify(svg)}, "image/svg+xml"))`);
  await page.close();
  return answer;
}

test("opens from disk and tells about the box under the pointer", async () => {
  const { page, quiet } = await open(browser, "known.html");
  assert.equal(await text(page, "title"), "known");
  assert.deepEqual(await crumbs(page), ["all"]);
  await page.mouse.move(...(await place(page, 3, 65)));
  assert.equal(
    await text(page, "tip"),
    "alloc::alloc::alloc\n/src/main.rs:6\n10 samples, 10.0 % of all, 25.0 % of its caller\nown 10, 10.0 %\nmemory management",
  );
  await page.mouse.move(...(await place(page, 2, 50)));
  assert.match(await text(page, "tip"), /\nown 10, 10.0 %\n\+3 \\u\{202e\}%\ndynamic call$/, "with its note");
  await page.mouse.move(...(await place(page, 3, 95)));
  assert.equal(await page.locator("#tip").isHidden(), true);
  const legend = await page.locator("#legend li").allTextContents();
  assert.deepEqual(legend, ["code of the program 70.0 %", "memory management 20.0 %", "dynamic call"], "with own samples, and marks");
  await quiet();
});

test("search gives the share without counting a sample twice", async () => {
  const { page, quiet } = await open(browser, "known.html");
  await page.keyboard.press("/");
  await page.keyboard.type("parse");
  assert.equal(await text(page, "found"), "60.0 % matched");
  assert.equal(await page.locator("#found").getAttribute("title"), "60 samples in 2 boxes");
  await page.fill("#query", "ALLOC");
  assert.equal(await text(page, "found"), "0.0 % matched", "capitals match capitals only");
  await page.fill("#query", "parse|alloc");
  assert.equal(await text(page, "found"), "0.0 % matched", "as text");
  await page.check("#regex");
  assert.equal(await found(page), "70.0 % matched", "nested matches count once");
  await page.fill("#query", "^app::main$");
  assert.equal(await found(page), "90.0 % matched");
  await page.click("#inverted");
  assert.equal(await found(page), "90.0 % matched", "the same the other way round");
  await page.fill("#query", "(");
  assert.match(await found(page), /Unterminated|Invalid/);
  await page.fill("#query", "main.rs:2");
  assert.equal(await found(page), "40.0 % matched", "files and lines, too");
  await quiet();
});

test("a click zooms, the path leads back", async () => {
  const { page, quiet } = await open(browser, "known.html");
  await page.mouse.click(...(await place(page, 2, 60)));
  await settled(page);
  assert.deepEqual(await crumbs(page), ["all", "app::main", "app::eval"]);
  assert.equal(await text(page, "name"), "app::eval");
  // The box fills the width now.
  await page.mouse.move(...(await place(page, 3, 10)));
  assert.match(await text(page, "tip"), /^app::parse\n.*\n20 samples, 20.0 % of all, 50.0 % of its caller/);
  await page.fill("#query", "parse");
  assert.equal(await text(page, "found"), "60.0 % matched, 50.0 % of the zoomed box");
  await page.locator("#path button").nth(1).click();
  await settled(page);
  assert.deepEqual(await crumbs(page), ["all", "app::main"]);
  await page.goBack();
  assert.deepEqual(await crumbs(page), ["all", "app::main", "app::eval"], "the browser's Back undoes a zoom");
  await page.click("#reset");
  assert.deepEqual(await crumbs(page), ["all"]);
  assert.equal(await page.inputValue("#query"), "");
  await quiet();
});

test("a link carries the state", async () => {
  const first = await open(browser, "known.html");
  await first.page.selectOption("#view", "0");
  await first.page.click("#icicle");
  await first.page.click("#inverted");
  await first.page.fill("#query", "a.*c");
  await first.page.check("#regex");
  await first.page.focus("#graph");
  await first.page.keyboard.press("ArrowDown");
  await first.page.keyboard.press("Enter");
  await settled(first.page);
  const path = await crumbs(first.page), matched = await found(first.page);
  assert.equal(path.length, 2);
  const hash = new URL(first.page.url()).hash;
  await first.quiet();
  const second = await open(browser, "known.html", { hash });
  assert.deepEqual(await crumbs(second.page), path);
  assert.equal(await found(second.page), matched);
  assert.equal(await second.page.getAttribute("#icicle", "aria-pressed"), "true");
  assert.equal(await second.page.getAttribute("#inverted", "aria-pressed"), "true");
  assert.equal(new URL(second.page.url()).hash, hash);
  await second.quiet();
  for (const odd of ["#path=0.1.zz*99&zoom=nowhere", "#path=x*999999999", "#zoom=99999&view=77", "#range=9,1&zoom=-1", "#%00=%ff&grown=1.2.x", "#range=1e308,2e308"]) {
    const { page, quiet } = await open(browser, "known.html", { hash: odd });
    assert.equal((await crumbs(page))[0], "all", odd);
    await quiet();
  }
});

test("the inverted graph has each function's own samples, and its callers", async () => {
  const { page, quiet } = await open(browser, "known.html");
  await page.keyboard.press("i");
  await page.focus("#graph");
  const told = [];
  await page.keyboard.press("ArrowUp");
  for (let step = 0; step < 4; step++) {
    told.push(`${await text(page, "name")}: ${(await text(page, "lines")).match(/\d+ samples/)[0]}`);
    await page.keyboard.press("ArrowRight");
  }
  assert.deepEqual(told, ["app::parse: 50 samples", "alloc::alloc::alloc: 20 samples", "app::main: 10 samples", "app::eval: 10 samples"]);
  assert.equal(await text(page, "name"), "app::eval", "there is no more");
  for (const key of ["Home", "ArrowRight", "ArrowUp"]) await page.keyboard.press(key);
  assert.equal(await text(page, "name"), "app::parse");
  assert.match(await text(page, "lines"), /10 samples, 10.0 % of all, 50.0 % of its callee/);
  await page.keyboard.press("ArrowUp");
  assert.equal(await text(page, "name"), "app::main");
  await quiet();
});

test("keys alone do everything, and screen readers hear it", async () => {
  const { page, quiet } = await open(browser, "known.html");
  await page.focus("#graph");
  const heard = () => page.evaluate(() => {
    const item = document.getElementById(document.getElementById("graph").getAttribute("aria-activedescendant"));
    return `${item.getAttribute("aria-level")} ${item.getAttribute("aria-label")}`;
  });
  await page.keyboard.press("ArrowUp");
  assert.match(await heard(), /^2 app::main, \/src\/main.rs:1, 90 samples, 90.0 % of all/);
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("ArrowRight");
  assert.match(await heard(), /^3 app::eval/);
  await page.keyboard.press("Enter");
  assert.deepEqual(await crumbs(page), ["all", "app::main", "app::eval"]);
  assert.equal(await text(page, "said"), "Zoomed to app::eval, 40.0 %");
  await page.keyboard.press("Escape");
  assert.deepEqual(await crumbs(page), ["all", "app::main"]);
  await page.keyboard.press("Backspace");
  assert.deepEqual(await crumbs(page), ["all"]);
  await page.keyboard.press("/");
  await page.keyboard.type("alloc");
  await page.keyboard.press("Enter");
  await page.keyboard.press("n");
  assert.equal(await text(page, "name"), "alloc::alloc::alloc");
  await page.keyboard.press("Escape");
  assert.equal(await text(page, "found"), "", "at the root, Escape ends the search");
  await page.keyboard.press("?");
  assert.equal(await page.locator("#help").isVisible(), true);
  await page.keyboard.press("Escape");
  assert.equal(await page.locator("#help").isVisible(), false);
  const tree = await page.locator("#graph").ariaSnapshot();
  assert.match(tree, /tree "Flame graph"/);
  await quiet();
});

test("a graph of its own for each thread", async () => {
  const { page, quiet } = await open(browser, "known.html");
  assert.deepEqual(await page.locator("#view option").allTextContents(), ["all threads", "thread 2  7.0 %"]);
  await page.selectOption("#view", "1");
  assert.equal(await text(page, "said"), "thread 2, 7 samples");
  await page.mouse.move(...(await place(page, 1, 3, 7)));
  assert.match(await text(page, "tip"), /^app::worker\n.*\n7 samples, 100 % of all.*\n.*\nruntime start$/);
  await quiet();
});

test("a comparison shows what is gone, and the inverted graph has the changes of functions", async () => {
  const { page, quiet } = await open(browser, "changed.html");
  assert.deepEqual(await page.locator("#view option").allTextContents(), ["before and now", "now", "before"]);
  await page.focus("#graph");
  const told = async () => {
    const result = new Map();
    for (const key of ["Home", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowRight"]) {
      await page.keyboard.press(key);
      result.set(await text(page, "name"), (await text(page, "lines")).replace(/^.*(before \d.*? the noise).*$/, "$1"));
    }
    return Object.fromEntries(result);
  };
  await page.keyboard.press("ArrowUp");
  assert.deepEqual(await told(), {
    "app::same": "before 500, now 500: +0 ± 32 (+0.0 %), within the noise",
    "app::slow": "before 300, now 1000: +700 ± 36 (+233 %), beyond the noise",
    "app::new": "before 0, now 500: +500 ± 22 (new), beyond the noise",
    "app::gone": "before 200, now 0: −200 ± 14 (gone), beyond the noise",
  });
  await page.keyboard.press("i");
  await page.focus("#graph");
  await page.keyboard.press("ArrowUp");
  const inverted = await told();
  assert.equal(inverted["app::leaf"], "before 600, now 1300: +700 ± 44 (+117 %), beyond the noise", "the sum over its callers");
  assert.equal(inverted["app::gone"], "before 200, now 0: −200 ± 14 (gone), beyond the noise");
  // Colours tell what grew and what is gone: the same in both orientations.
  const colors = (await page.locator("#legend li").allTextContents()).toSorted();
  assert.deepEqual(colors, ["less than before", "more than before", "within the noise"]);
  await page.selectOption("#view", "1");
  await page.focus("#graph");
  await page.keyboard.press("ArrowUp");
  assert.match(await text(page, "lines"), /before 600, now 1.?300: .*1.?300 samples, 65.0 % of all/);
  await quiet();
});

test("switches: samples asleep, foreign frames, lines and colours", async () => {
  const { page, quiet } = await open(browser, "switches.html");
  const row = async (number) => {
    const names = [];
    await page.focus("#graph");
    for (let step = 0; step < number; step++) await page.keyboard.press("ArrowUp");
    await page.keyboard.press("Home");
    const box = () => page.evaluate(() => document.querySelector("[aria-selected]").ariaLabel);
    for (let last = ""; last !== (await box()); await page.keyboard.press("ArrowRight")) {
      last = await box();
      names.push(`${await text(page, "name")} ${last.match(/(\d+) samples/)[1]}`);
    }
    for (let step = 0; step < number; step++) await page.keyboard.press("ArrowDown");
    return names;
  };
  assert.deepEqual(await row(2), ["app::work 60"], "lines are merged, and the time in read is that of main");
  assert.deepEqual(await row(3), ["app::compare 20"]);
  assert.match(await text(page, "lines"), /100 samples/);
  await page.keyboard.press("x");
  assert.deepEqual(await row(2), ["app::work 60", "read 20"]);
  assert.deepEqual(await row(3), ["qsort 30"]);
  await page.keyboard.press("l");
  assert.deepEqual(await row(2), ["app::work 30", "app::work 30", "read 20"]);
  await page.keyboard.press("l");
  await page.keyboard.press("w");
  assert.deepEqual(await row(2), ["app::work 60", "read 70"]);
  assert.deepEqual(await row(3), ["qsort 30", "asleep 50"]);
  assert.ok((await page.locator("#legend li").allTextContents()).includes("asleep 33.3 %"));
  const { hash } = new URL(page.url());
  const again = await open(browser, "switches.html", { hash });
  for (const [id, on] of [["wall", "true"], ["foreign", "true"], ["byline", "false"]]) assert.equal(await again.page.getAttribute(`#${id}`, "aria-pressed"), on);
  await again.quiet();
  await page.keyboard.press("k");
  assert.equal(await text(page, "said"), "Colours: crate");
  assert.ok((await page.locator("#legend li").allTextContents()).includes("app 46.7 %"), "the legend names crates");
  // The root is no call, though code below it was called through a pointer.
  await page.keyboard.press("r");
  assert.doesNotMatch(await text(page, "lines"), /dynamic call/);
  await quiet();
});

test("what is hovered is copied, matches are numbered, and hatching zooms about the pointer", async () => {
  const { page, quiet } = await open(browser, "known.html");
  await page.mouse.move(...(await place(page, 2, 60)));
  await page.keyboard.press("c");
  await page.waitForFunction(() => document.getElementById("said").classList.contains("shown"));
  assert.equal(await text(page, "said"), "Copied: app::eval");
  await page.fill("#query", "parse");
  await page.keyboard.press("Enter");
  await page.keyboard.press("n");
  assert.match(await text(page, "found"), /, match 1 of 2/);
  await page.keyboard.press("n");
  assert.match(await text(page, "found"), /, match 2 of 2/);
  await quiet();
  const many = await open(browser, "many.html");
  const [x, y] = await place(many.page, 30, 50);
  await many.page.mouse.move(x, y);
  assert.match(await text(many.page, "tip"), /too small to draw/);
  await many.page.mouse.click(x, y);
  await settled(many.page);
  const [low, high] = decodeURIComponent(new URL(many.page.url()).hash).match(/range=([\d.e+]+),([\d.e+]+)/).slice(1).map(Number);
  await many.page.goBack();
  assert.doesNotMatch(new URL(many.page.url()).hash, /range/, "Back undoes it");
  const total = Number((await text(many.page, "lines")).replaceAll("\u00a0", "").match(/(\d+) samples/)[1]);
  const canvas = await many.page.locator("#graph").boundingBox(), share = (x - canvas.x) / canvas.width;
  assert.ok(Math.abs(low + (high - low) * share - total * share) < total / 500, "what is under the pointer stays there");
  await many.quiet();
});

test("two fingers zoom, on a narrow screen where nothing is cut off", async () => {
  const { page, quiet } = await open(browser, "known.html", { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  const canvas = await page.locator("#graph").boundingBox(), cdp = await page.context().newCDPSession(page);
  const touch = (type, points) => cdp.send("Input.dispatchTouchEvent", { type, touchPoints: points.map((x) => ({ x: canvas.x + x, y: canvas.y + 200 })) });
  await touch("touchStart", [150]);
  await touch("touchStart", [150, 200]);
  for (const spread of [10, 30, 50]) await touch("touchMove", [150 - spread, 200 + spread]);
  await touch("touchEnd", []);
  await settled(page);
  const [low, high] = decodeURIComponent(new URL(page.url()).hash).match(/range=([\d.]+),([\d.]+)/).slice(1).map(Number);
  assert.ok(high - low > 20 && high - low < 50, `${low} to ${high}`);
  await quiet();
});

test("the tooltip tells about what is under the pointer, also after a key or a wheel", async () => {
  const { page, quiet } = await open(browser, "known.html");
  await page.mouse.move(...(await place(page, 2, 85)));
  assert.equal(await page.locator("#tip").isHidden(), true, "nothing is there");
  await page.mouse.move(...(await place(page, 2, 30)));
  assert.match(await text(page, "tip"), /^app::parse/);
  await page.focus("#graph");
  for (const key of ["ArrowUp", "ArrowUp", "ArrowRight", "Enter"]) await page.keyboard.press(key);
  await settled(page);
  assert.match(await text(page, "tip"), /^app::eval/, "the zoomed box is there now");
  await quiet();
});

test("a smaller window and paper", async () => {
  const { page, quiet } = await open(browser, "known.html");
  await page.setViewportSize({ width: 500, height: 400 });
  await settled(page);
  const [canvas, area] = await Promise.all(["#graph", "#scroll"].map((id) => page.locator(id).boundingBox()));
  assert.ok(Math.abs(canvas.height - area.height) < 1 && Math.abs(canvas.width - area.width) < 20);
  assert.ok(await page.evaluate(() => document.documentElement.scrollHeight <= innerHeight));
  assert.ok((await page.pdf()).length > 10_000);
  await settled(page);
  const after = await page.locator("#graph").boundingBox();
  assert.deepEqual([after.width, after.height], [canvas.width, canvas.height], "as before printing");
  await quiet();
});

test("light and dark, by the system and by the reader", async () => {
  for (const [scheme, corner, other] of [["light", [255, 255, 255], [23, 23, 23]], ["dark", [23, 23, 23], [255, 255, 255]]]) {
    const { page, quiet } = await open(browser, "known.html", { colorScheme: scheme });
    assert.deepEqual(await color(page, 2, 2), corner);
    await page.keyboard.press("t");
    await settled(page);
    assert.deepEqual(await color(page, 2, 2), other);
    assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), `rgb(${other.join(", ")})`);
    await quiet();
  }
});

test("a region, the wheel and the icicle", async () => {
  const { page, quiet } = await open(browser, "known.html");
  await page.keyboard.down("Shift");
  await page.mouse.move(...(await place(page, 1, 41)));
  await page.mouse.down();
  await page.mouse.move(...(await place(page, 1, 61)), { steps: 4 });
  await page.mouse.up();
  await page.keyboard.up("Shift");
  await settled(page);
  assert.match(new URL(page.url()).hash, /range=4[01].*6[01]/);
  await page.keyboard.press("r");
  await page.mouse.move(...(await place(page, 1, 50)));
  await page.keyboard.down("Control");
  await page.mouse.wheel(0, -240);
  await page.keyboard.up("Control");
  await settled(page);
  assert.match(new URL(page.url()).hash, /range=/);
  await page.keyboard.press("r");
  await page.keyboard.press("f");
  await settled(page);
  const canvas = await page.locator("#graph").boundingBox();
  await page.mouse.move(canvas.x + 30, canvas.y + 4 + 18 + 9);
  assert.match(await text(page, "tip"), /^app::main/);
  await quiet();
});

test("what is shown can be saved as SVG", async () => {
  const { page, quiet } = await open(browser, "known.html");
  await page.mouse.click(...(await place(page, 2, 60)));
  await settled(page);
  const [name, bytes] = await saved(page, () => page.click("#save"));
  assert.equal(name, "known.svg");
  const svg = String(bytes);
  const titles = await parsed(svg, (picture) => [...picture.querySelectorAll("path > title")].map((title) => title.textContent.split("\n")[0]));
  assert.deepEqual(titles, ["all", "app::main", "app::eval", "app::parse", "alloc::alloc::alloc"]);
  // Dashes of the dynamic call, a line of the allocation, both also in the legend; callers are drawn weaker.
  const marks = await parsed(svg, (picture) => [...picture.querySelectorAll(".m")].map((mark) => mark.getAttribute("stroke-dasharray")).toSorted());
  assert.deepEqual(marks, ["5 3", "5 3", "none", "none"]);
  assert.equal(await parsed(svg, (picture) => picture.querySelectorAll("[fill-opacity]").length), 2);
  const legend = await parsed(svg, (picture) => [...picture.querySelectorAll(".k")].map((sample) => sample.parentElement.textContent.length > 0).length);
  assert.equal(legend, (await page.locator("#legend li").count()));
  await quiet();
});

test("a comparison is saved with its colours", async () => {
  const { page, quiet } = await open(browser, "changed.html");
  const svg = String((await saved(page, () => page.click("#save")))[1]);
  const fills = await parsed(svg, (picture) => Object.fromEntries([...picture.querySelectorAll("g > path")].filter((path) => path.querySelector("title"))
    .map((path) => [path.textContent.split("\n")[0], path.getAttribute("fill")])));
  const shown = await page.evaluate(() => [...document.querySelectorAll("#legend li")].map((item) => [item.textContent, item.querySelector("rect").getAttribute("fill")]));
  assert.equal(new Set([fills["app::same"], fills["app::slow"], fills["app::gone"]]).size, 3);
  assert.ok(shown.some(([text, fill]) => text === "within the noise" && fill === fills["app::same"]));
  await quiet();
});

test("names do nothing but name", async () => {
  const { page, quiet } = await open(browser, "hostile.html");
  await page.focus("#graph");
  for (let step = 0; step < 9; step++) {
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("Enter");
  }
  await page.fill("#query", "<");
  await page.mouse.move(...(await place(page, 3, 3, 10)));
  assert.equal(await page.evaluate(() => window.hostile), undefined);
  assert.equal(await page.locator("h2").count(), 1, "but for the help's");
  assert.equal(await page.locator("img").count(), 0);
  assert.equal(await page.locator("#view option").count(), 7);
  assert.doesNotMatch(await page.content(), /[\u202e\u2066\u200b\u001b]/);
  const svg = String((await saved(page, () => page.click("#save")))[1]);
  assert.equal(await parsed(svg, (picture) => picture.querySelector("parsererror, script, img")?.textContent ?? "fine"), "fine");
  await quiet();
});

test("without scripts there is a still picture", async () => {
  const { page, quiet } = await open(browser, "known.html", { javaScriptEnabled: false });
  assert.equal(await page.locator("#app").isVisible(), false);
  assert.equal(await page.locator("noscript svg").isVisible(), true);
  assert.match(await page.locator("noscript svg").innerHTML(), /alloc::alloc::alloc\n\/src\/main.rs:6\n10 samples, 10.0 %/);
  await quiet();
});

test("opens where the graph begins to say something", async () => {
  const { page, quiet } = await open(browser, "runtime.html");
  // The rows at both edges of the view, from the root.
  const rows = async () => page.evaluate(() => {
    const area = document.getElementById("scroll"), below = area.scrollHeight - area.scrollTop - area.clientHeight;
    return [below, below + area.clientHeight, area.scrollTop, area.scrollTop + area.clientHeight].map((y) => Math.round(y / 18));
  });
  const [low, high] = await rows();
  assert.ok(low > 70 && low < 80 && high > 90, `the work begins on row 80 of ${low} to ${high}`);
  await page.evaluate(() => { document.getElementById("scroll").scrollTop = 1e6; });
  assert.equal((await rows())[0], 0);
  await page.click("#reset");
  await settled(page);
  assert.deepEqual((await rows()).slice(0, 2), [low, high], "also after a reset");
  await page.click("#icicle");
  await settled(page);
  const [, , first, last] = await rows();
  assert.ok(first > 70 && first < 80 && last > 90, `rows ${first} to ${last}`);
  await quiet();
});

test("a hundred thousand levels", async () => {
  const { page, quiet } = await open(browser, "deep.html");
  await page.focus("#graph");
  await page.keyboard.press("ArrowUp");
  await page.evaluate(() => { document.getElementById("scroll").scrollTop = 0; });
  await settled(page);
  const canvas = await page.locator("#graph").boundingBox();
  await page.mouse.click(canvas.x + 1, canvas.y + 40);
  await settled(page);
  // The inverted graph has five thousand million boxes; it is worked out as far as the reader goes.
  await page.keyboard.press("i");
  await page.waitForFunction(() => document.getElementById("busy").hidden && document.getElementById("inverted").ariaPressed === "true");
  for (let step = 0; step < 90; step++) await page.keyboard.press("ArrowUp");
  assert.match(await text(page, "lines"), /zoom in to show its callers/);
  const level = () => page.evaluate(() => Number(document.querySelector("[aria-selected]").getAttribute("aria-level")));
  const before = await level();
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => !document.getElementById("lines").textContent.includes("zoom in"));
  await page.keyboard.press("ArrowUp");
  assert.equal(await level(), before + 1);
  const { hash } = new URL(page.url()), path = await crumbs(page);
  await quiet();
  const again = await open(browser, "deep.html", { hash });
  assert.deepEqual(await crumbs(again.page), path);
  await again.quiet();
});
