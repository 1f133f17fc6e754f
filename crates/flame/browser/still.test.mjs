// Still pictures in a real browser: zoom and search by the script of the file, and the same picture without it.

import assert from "node:assert/strict";
import path from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { launch } from "./pages.mjs";

let browser;
before(async () => { browser = await launch(); });
after(() => browser.close());

async function open(name, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1016, height: 700 }, ...options });
  const page = await context.newPage(), complaints = [], requests = [];
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (request) => requests.push(request.url()));
  await page.goto(pathToFileURL(path.resolve(process.env.BROWSER_TESTS ?? ".", "pages", name)).href);
  return { page, quiet: async () => {
    assert.deepEqual(complaints, []);
    assert.equal(requests.length, 1);
    await context.close();
  } };
}

// The boxes that are drawn: name, left edge and width in points.
const boxes = (page) => page.evaluate(() => [...document.querySelectorAll("g.r > path[d]")].filter((path) => path.querySelector("title")).map((path) => {
  const [, left, width] = /^M([\d.]+) 4v-16h([\d.]+)v16z$/.exec(path.getAttribute("d"));
  return `${path.textContent.split("\n")[0]} ${Math.round(left)} ${Math.round(width)}`;
}));
const shown = (page) => page.evaluate(() => [...document.querySelectorAll("svg > text")].filter((text) => text.getAttribute("visibility") !== "hidden").map((text) => text.textContent).filter(Boolean).toSorted());

test("the picture is the same with and without its script", async () => {
  const still = await open("known.svg", { javaScriptEnabled: false }), live = await open("known.svg");
  const read = (svg) => [...svg.matchAll(/M([\d.]+) 4v-16h([\d.]+)v16z/g)].map(([, left, width]) => [Math.round(left), Math.round(width)]);
  const source = await still.page.content();
  assert.deepEqual(read(await live.page.content()), read(source));
  const labels = (text) => [...text.matchAll(/<text x="[\d.]+">([^<]*)</g)].map(([, label]) => label);
  assert.deepEqual(labels(await live.page.content()).filter((label) => !label.includes("Search")), labels(source));
  await still.quiet();
  await live.quiet();
});

test("a click zooms, and the button leads back", async () => {
  const { page, quiet } = await open("known.svg");
  const whole = await boxes(page);
  assert.ok(whole.includes("app::eval 400 400"), whole.join());
  await page.locator("path", { hasText: "app::eval" }).first().click({ force: true });
  assert.deepEqual(await boxes(page), ["all 0 1000", "app::main 0 1000", "app::eval 0 1000", "app::parse 0 500", "alloc::alloc::alloc 500 250"]);
  assert.equal(await page.locator("g.r > text", { hasText: "app::parse" }).textContent(), "app::parse  20.0 %");
  assert.equal(await page.locator("g.r > path.D").count(), 1, "with its mark");
  await page.locator("text", { hasText: "Reset zoom" }).click();
  assert.deepEqual(await boxes(page), whole);
  await quiet();
});

test("a search marks boxes, and counts each sample once", async () => {
  const { page, quiet } = await open("known.svg");
  const search = async (text) => {
    page.once("dialog", (dialog) => dialog.accept(text));
    await page.locator("text", { hasText: /^Search$/ }).click();
  };
  await search("PARSE");
  assert.ok((await shown(page)).includes("0.0 % matched"), "capitals match capitals only");
  await search("parse|alloc");
  assert.ok((await shown(page)).includes("70.0 % matched"), (await shown(page)).join());
  assert.equal(await page.locator("path.F").count(), 4);
  await page.keyboard.press("Escape");
  assert.equal(await page.locator("path.F").count(), 0);
  const [dialog] = await Promise.all([
    new Promise((resolve) => page.on("dialog", async (dialog) => {
      if (dialog.type() === "prompt") return dialog.accept("(");
      resolve(dialog.message());
      await dialog.dismiss();
    })),
    page.keyboard.press("/"),
  ]);
  assert.match(dialog, /Unterminated|Invalid/);
  await quiet();
});

test("zooms find boxes that are too narrow in the whole picture", async () => {
  const { page, quiet } = await open("many.svg");
  const count = (await boxes(page)).length;
  for (let step = 0; step < 4; step++) await page.evaluate(() => {
    const runs = [...document.querySelectorAll("g.r > path.Z")].filter((path) => path.range);
    runs.at(-1).dispatchEvent(new MouseEvent("click", { bubbles: true }));
  });
  assert.notEqual((await boxes(page)).length, count);
  assert.ok((await boxes(page)).filter((box) => !/ left out/.test(box)).length > 3);
  await quiet();
});

test("names from anywhere stay text, and the picture fits the window", async () => {
  const { page, quiet } = await open("hostile.svg", { viewport: { width: 390, height: 700 } });
  for (const box of await page.locator("g.r > path").all()) await box.dispatchEvent("click");
  assert.equal(await page.evaluate(() => window.hostile), undefined);
  assert.equal(await page.locator("img, h2").count(), 0);
  assert.equal(await page.evaluate(() => document.documentElement.getAttribute("width")), "390");
  const right = await page.evaluate(() => Math.max(...[...document.querySelectorAll("text")].filter((text) => text.getAttribute("visibility") !== "hidden").map((text) => text.getBoundingClientRect().right)));
  assert.ok(right <= 390, `${right}`);
  await quiet();
});
