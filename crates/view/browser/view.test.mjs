// The page of `stackglass view` in a real browser, on a recording whose every figure is known (crates/view/examples/view-pages.rs).

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch, open, settled } from "../../flame/browser/pages.mjs";
import { becomes, isAccessible } from "./checks.mjs";

let browser;
before(async () => { browser = await launch(); });
after(() => browser.close());

const counts = (page, expected) => becomes(page, () => document.querySelector(".sum").textContent, expected);

// Drags over a part of the time.
async function drag(page, from, to) {
  const box = await page.locator(".lanes canvas").boundingBox();
  const y = box.y + 50;
  await page.mouse.move(box.x + from * box.width, y);
  await page.mouse.down();
  await page.mouse.move(box.x + ((from + to) / 2) * box.width, y);
  await page.mouse.move(box.x + to * box.width, y);
  await page.mouse.up();
}

// The rows of the table: own and total time by function.
const rows = (page) => page.locator(".list .row").evaluateAll((all) => all.map((row) => {
  const cells = [...row.children].map((cell) => cell.textContent);
  return [cells[4], cells[0], cells[2]];
}));

test("threads, kinds of time and ranges are counted, and each step is undone", async () => {
  const { page, quiet } = await open(browser, "view-known.html");
  await counts(page, "3.50 s in 3500 samples");
  await page.keyboard.press("2");
  assert.deepEqual(await rows(page), [["parse", "2.00 s", "2.00 s"], ["sort", "1.00 s", "1.00 s"], ["serve", "500 ms", "3.50 s"]]);
  await drag(page, 0.25, 0.5);
  await page.waitForFunction(() => location.hash.includes("range="));
  const [from, to] = (await page.evaluate(() => location.hash)).match(/range=(\d+)-(\d+)/).slice(1).map(Number);
  assert.ok(Math.abs(from - 1e9) < 1e7 && Math.abs(to - 2e9) < 1e7, `${from} ${to}`);
  await page.waitForFunction(() => document.querySelectorAll(".list .row").length <= 3);
  await page.getByRole("button", { name: /^two/ }).click();
  await counts(page, "0 in 0 samples");
  await page.keyboard.press("u");
  await page.keyboard.press("u");
  await counts(page, "3.50 s in 3500 samples");
  await page.getByRole("button", { name: /^one/ }).click();
  await counts(page, "3.00 s in 3000 samples");
  await page.selectOption("select", "asleep");
  await counts(page, "1.00 s in 1000 samples");
  await page.getByRole("button", { name: "whole program" }).click();
  await page.selectOption("select", "ready");
  await counts(page, "500 ms in 500 samples");
  await page.selectOption("select", "wall");
  await counts(page, "5.00 s in 5000 samples");
  await page.reload();
  await counts(page, "5.00 s in 5000 samples");
  await quiet();
});

test("samples without times are counted, without a time axis", async () => {
  const { page, quiet } = await open(browser, "view-counts.html", { hash: "#range=0-1000000&view=0-5" });
  await counts(page, "7000 samples");
  assert.equal(await page.locator(".timeline").count(), 0);
  assert.deepEqual(await page.getByRole("tab").allTextContents(), ["Flame graph", "Functions", "Call tree", "Source", "Facts"]);
  await page.keyboard.press("2");
  assert.deepEqual(await rows(page), [["parse", "4000", "4000"], ["sort", "2000", "2000"], ["serve", "1000", "7000"]]);
  await page.selectOption("select", "asleep");
  await counts(page, "2000 samples");
  await isAccessible(page, "counts");
  await quiet();
});

test("a function has its callers and callees", async () => {
  const { page, quiet } = await open(browser, "view-known.html", { hash: "#tab=functions" });
  await counts(page, "3.50 s in 3500 samples");
  await page.locator(".list .row", { hasText: "serve" }).first().click();
  const lists = () => [...document.querySelectorAll(".sandwich ul")].map((list) => [...list.querySelectorAll("li")].map((row) => row.innerText.replace(/\s+/g, " ")));
  await becomes(page, lists, [["3.50 s 100.0 % (start of the thread)"], ["2.00 s 57.1 % parse", "1.00 s 28.6 % sort"]]);
  await page.keyboard.press("/");
  await page.keyboard.type("par");
  await page.waitForFunction(() => document.querySelectorAll(".list .row").length === 1);
  await quiet();
});

test("the flame graph tells of the box under the pointer, and zooms", async () => {
  const { page, quiet } = await open(browser, "view-known.html");
  await counts(page, "3.50 s in 3500 samples");
  const canvas = await page.locator(".flame canvas").boundingBox();
  // Children are in the order of their names: parse, then sort.
  await page.mouse.move(canvas.x + canvas.width * 0.2, canvas.y + canvas.height - 2.5 * 19);
  const tip = await page.locator(".tip").innerText();
  assert.match(tip, /^parse\nsrc\/main\.rs:11\n.*2\.00 s, 57\.1 % of the selection; own 2\.00 s/s);
  await page.mouse.dblclick(canvas.x + canvas.width * 0.2, canvas.y + canvas.height - 2.5 * 19);
  await page.getByRole("button", { name: /zoom: parse/ }).waitFor();
  // Why stacks are incomplete, in the words of the reports: those of the half second of the other thread.
  await page.keyboard.press("u");
  await becomes(page, () => document.querySelector(".crumbs"), null);
  await settled(page);
  await page.mouse.move(canvas.x + canvas.width * 0.2, canvas.y + canvas.height - 1.5 * 19);
  const why = "14.3 % of it has incomplete stacks: in code of no known file: generated at run time, or in a library loaded just before (if the program generates code, have it keep frame pointers there)";
  await becomes(page, () => document.querySelector(".tip strong").textContent, "serve");
  await becomes(page, () => [...document.querySelectorAll(".tip div")].map((line) => line.textContent).find((line) => line.includes("incomplete")), why);
  await page.mouse.click(canvas.x + canvas.width * 0.2, canvas.y + canvas.height - 1.5 * 19);
  await page.keyboard.press("2");
  await becomes(page, () => document.querySelector(".sandwich .note").textContent, why);
  await quiet();
});

test("of many boxes under the pointer, the worker is asked one after the other for those that are still wanted", async () => {
  const { page, quiet } = await open(browser, "view-known.html");
  await counts(page, "3.50 s in 3500 samples");
  // Questions wait until they are let go.
  await page.evaluate(() => {
    const { postMessage } = Worker.prototype, asked = window.asked = [], held = [];
    Worker.prototype.postMessage = function(data, ...more) {
      if (data.question?.kind !== "cuts") return postMessage.call(this, data, ...more);
      asked.push(data.question.place.way.length);
      held.push(() => postMessage.call(this, data, ...more));
    };
    window.letGo = () => held.shift()();
  });
  const canvas = await page.locator(".flame canvas").boundingBox();
  const rows = { serve: [0.2, 1.5], parse: [0.2, 2.5], sort: [0.7, 2.5] };
  const hover = async (name) => {
    const [x, row] = rows[name];
    await page.mouse.move(canvas.x + canvas.width * x, canvas.y + canvas.height - row * 19);
    await becomes(page, () => document.querySelector(".tip strong").textContent, name);
  };
  const asked = () => page.evaluate(() => window.asked.length);
  const why = () => [...document.querySelectorAll(".tip div")].some((line) => line.textContent.includes("incomplete"));
  for (const name of ["serve", "parse", "sort", "parse", "sort", "parse", "serve"]) await hover(name);
  assert.equal(await asked(), 1);
  await page.evaluate(() => window.letGo());
  await becomes(page, why, true);
  // What waited last was the same.
  assert.equal(await asked(), 1);
  for (const name of ["parse", "sort", "parse", "sort"]) await hover(name);
  assert.equal(await asked(), 2);
  await page.evaluate(() => window.letGo());
  await becomes(page, () => window.asked.length, 3);
  await page.evaluate(() => window.letGo());
  for (const name of ["parse", "sort", "serve", "parse", "sort"]) await hover(name);
  assert.equal(await asked(), 3);
  await quiet();
});

test("hostile names are text, and an empty recording is a page", async () => {
  const hostile = await open(browser, "view-hostile.html", { hash: "#tab=functions" });
  await counts(hostile.page, "3.50 s in 3500 samples");
  assert.equal(await hostile.page.locator("img").count(), 0);
  assert.match((await rows(hostile.page))[0][0], /^<\/script><img src=x onerror=alert\(1\)>\\u\{202e\}$/);
  await hostile.quiet();
  const empty = await open(browser, "view-empty.html");
  await counts(empty.page, "0 in 0 samples");
  await empty.quiet();
});
