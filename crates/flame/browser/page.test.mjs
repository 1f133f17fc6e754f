// The page in a real browser, on a graph whose every figure is known (examples/pages.rs).

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { color, crumbs, launch, open, place, settled, text } from "./pages.mjs";

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
  assert.deepEqual(legend.toSorted(), ["code of the program", "dynamic call", "memory management", "runtime start"]);
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
  assert.equal(await text(page, "found"), "70.0 % matched", "nested matches count once");
  await page.fill("#query", "^app::main$");
  assert.equal(await text(page, "found"), "90.0 % matched");
  await page.click("#inverted");
  assert.equal(await text(page, "found"), "90.0 % matched", "the same the other way round");
  await page.fill("#query", "(");
  assert.match(await text(page, "found"), /Unterminated|Invalid/);
  await page.fill("#query", "main.rs:2");
  assert.equal(await text(page, "found"), "40.0 % matched", "files and lines, too");
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
  const path = await crumbs(first.page), found = await text(first.page, "found");
  assert.equal(path.length, 2);
  const hash = new URL(first.page.url()).hash;
  await first.quiet();
  const second = await open(browser, "known.html", { hash });
  assert.deepEqual(await crumbs(second.page), path);
  assert.equal(await text(second.page, "found"), found);
  assert.equal(await second.page.getAttribute("#icicle", "aria-pressed"), "true");
  assert.equal(await second.page.getAttribute("#inverted", "aria-pressed"), "true");
  assert.equal(new URL(second.page.url()).hash, hash);
  await second.quiet();
  for (const odd of ["#zoom=99999&view=77", "#range=9,1&zoom=-1", "#%00=%ff&grown=1.2.x", "#range=1e308,2e308"]) {
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
  assert.deepEqual(await page.locator("#view option").allTextContents(), ["all threads", "thread 2"]);
  await page.selectOption("#view", { label: "thread 2" });
  assert.equal(await text(page, "said"), "thread 2, 7 samples");
  await page.mouse.move(...(await place(page, 1, 3, 7)));
  assert.match(await text(page, "tip"), /^app::worker\n.*\n7 samples, 100 % of all.*\n.*\nruntime start$/);
  await quiet();
});

test("light and dark, by the system and by the reader", async () => {
  for (const [scheme, corner, other] of [["light", [255, 255, 255], [23, 23, 23]], ["dark", [23, 23, 23], [255, 255, 255]]]) {
    const { page, quiet } = await open(browser, "known.html", { colorScheme: scheme });
    assert.deepEqual(await color(page, 2, 2), corner);
    await page.keyboard.press("t");
    await settled(page);
    assert.deepEqual(await color(page, 2, 2), other);
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
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("#save")]);
  assert.equal(download.suggestedFilename(), "known.svg");
  const svg = readFileSync(await download.path(), "utf8");
  const titles = await parsed(svg, (picture) => [...picture.querySelectorAll("path > title")].map((title) => title.textContent.split("\n")[0]));
  assert.deepEqual(titles, ["all", "app::main", "app::eval", "app::parse", "alloc::alloc::alloc"]);
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
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("#save")]);
  const svg = readFileSync(await download.path(), "utf8");
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

test("a hundred thousand levels", async () => {
  const { page, quiet } = await open(browser, "deep.html");
  await page.focus("#graph");
  await page.keyboard.press("ArrowUp");
  await page.evaluate(() => { document.getElementById("scroll").scrollTop = 0; });
  await settled(page);
  const canvas = await page.locator("#graph").boundingBox();
  await page.mouse.click(canvas.x + 1, canvas.y + 40);
  await page.waitForTimeout(100);
  // The inverted graph has five thousand million boxes; it is worked out as far as the reader goes.
  await page.keyboard.press("i");
  for (let step = 0; step < 25; step++) await page.keyboard.press("ArrowUp");
  assert.match(await text(page, "lines"), /zoom in to show its callers/);
  const level = () => page.evaluate(() => Number(document.querySelector("[aria-selected]").getAttribute("aria-level")));
  const before = await level();
  await page.keyboard.press("Enter");
  await page.keyboard.press("ArrowUp");
  assert.equal(await level(), before + 1);
  const { hash } = new URL(page.url()), path = await crumbs(page);
  await quiet();
  const again = await open(browser, "deep.html", { hash });
  assert.deepEqual(await crumbs(again.page), path);
  await again.quiet();
});
