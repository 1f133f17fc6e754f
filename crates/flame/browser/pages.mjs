// What all browser tests share: Chromium, and a page opened from disk that must not complain nor ask for anything.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";

const folder = process.env.BROWSER_TESTS ?? ".";
const { chromium } = createRequire(path.join(path.resolve(folder), "package.json"))("playwright-core");

export const launch = () =>
  chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });

// Opens a page; `quiet()` at the end says that nothing went wrong in it.
export async function open(browser, name, { hash = "", ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, acceptDownloads: true, ...options });
  const page = await context.newPage(), complaints = [], requests = [];
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (request) => requests.push(request.url()));
  const url = pathToFileURL(path.resolve(folder, "pages", name)).href;
  await page.goto(url + hash);
  if (options.javaScriptEnabled !== false) {
    await page.waitForFunction(() => performance.getEntriesByName("stackglass-open").length > 0);
  }
  const quiet = async () => {
    assert.deepEqual(complaints, []);
    assert.ok(requests.every((asked) => asked.startsWith(url) || asked.startsWith("blob:")), requests.join("\n"));
    await context.close();
  };
  return { page, url, quiet };
}

// Where a sample of a row lies on the page: flame graphs stand on the ground.
export async function place(page, row, sample, total = 100) {
  const canvas = await page.locator("#graph").boundingBox();
  return [canvas.x + ((sample - 0.5) / total) * canvas.width, canvas.y + canvas.height - 4 - row * 18 - 9];
}

export const text = (page, id) => page.locator(`#${id}`).textContent();
// The result of the search, once it is there.
export async function found(page) {
  await page.waitForFunction(() => document.getElementById("found").textContent !== "searching …");
  return text(page, "found");
}
export const crumbs = (page) => page.locator("#path button").allTextContents();
// Zooms end within so many milliseconds.
export const settled = (page) => page.waitForTimeout(260);
// The colour of a point of the picture.
export const color = (page, x, y) =>
  page.evaluate(([x, y]) => [...document.getElementById("graph").getContext("2d").getImageData(x, y, 1, 1).data].slice(0, 3), [x, y]);
