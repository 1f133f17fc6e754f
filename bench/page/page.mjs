// Measures pages of `stackglass view` in Chromium, and in Firefox if FIREFOX names one: medians of five openings, or of ROUNDS. Several pages
// are opened in turns. `BROWSER_TESTS=FOLDER node page.mjs PAGE…`, where FOLDER has playwright-core. `view-lanes FOLDER large` writes a page
// of a million samples.

import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { openFirefox } from "../../crates/view/browser/firefox.mjs";

const ROUNDS = Number(process.env.ROUNDS ?? 5);
const { chromium } = createRequire(path.join(path.resolve(process.env.BROWSER_TESTS ?? "."), "package.json"))("playwright-core");
const files = process.argv.slice(2);
const rows = {};
const add = (file, name, value) => ((rows[file] ??= {})[name] ??= []).push(value);

// Notes the long tasks, and when frames begin in which lanes and flame graph have colours: the first one, and the first one after all was
// counted. The mark stackglass-open comes before that one, when all is read.
const watch = () => {
  window.tasks = [];
  try {
    new PerformanceObserver((list) => window.tasks.push(...list.getEntries().map(({ duration }) => duration))).observe({ type: "longtask", buffered: true });
  } catch { /* Firefox has none. */ }
  const hasColor = (canvas, x, y, width, height) => {
    const { data } = canvas.getContext("2d").getImageData(x, y, width, height);
    for (let i = 0; i < data.length; i += 4) if (Math.max(data[i], data[i + 1], data[i + 2]) - Math.min(data[i], data[i + 1], data[i + 2]) > 60) return true;
    return false;
  };
  const look = () => {
    const lanes = document.querySelector(".lanes canvas"), flame = document.querySelector(".flame canvas");
    // The row of the whole program, and that above the root.
    const isCounted = document.querySelector(".sum")?.textContent && document.querySelector(".panel").getAttribute("aria-busy") !== "true";
    // To look at pixels takes time.
    const isDrawn = (isCounted || window.drawn === undefined) && lanes?.width && flame?.width && hasColor(lanes, 0, 22, lanes.width, 60) && hasColor(flame, 0, flame.height - 36, flame.width, 10);
    if (isDrawn) window.drawn ??= performance.now();
    if (isDrawn && isCounted) window.usable = performance.now();
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
};
// When it was drawn, and when it was usable.
const opened = () => new Promise((call) => {
  const timer = setInterval(() => {
    if (window.usable === undefined) return;
    clearInterval(timer);
    call([window.drawn, window.usable]);
  }, 20);
});

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
async function inChromium(file) {
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  await page.addInitScript(watch);
  const longest = () => page.evaluate(() => new Promise((call) => setTimeout(() => { call(Math.max(0, ...window.tasks)); window.tasks = []; }, 300)));
  await page.goto(pathToFileURL(path.resolve(file)).href, { waitUntil: "commit" });
  const [drawn, usable] = await page.evaluate(opened);
  add(file, "Chromium: lanes and flame graph drawn, ms", drawn);
  add(file, "Chromium: all counted and drawn, ms", usable);
  add(file, "Chromium: longest task while it opens, ms", await longest());
  await page.keyboard.press("i");
  add(file, "Chromium: longest task, first inversion, ms", await longest());
  await page.getByRole("tab", { name: "Functions" }).click();
  await page.locator(".list .row").first().click();
  await page.waitForSelector(".sandwich");
  add(file, "Chromium: longest task, functions and sandwich, ms", await longest());
  await page.close();
}
async function inFirefox(file) {
  const page = await openFirefox(pathToFileURL(path.resolve(file)).href, { width: 1440, height: 900, preload: watch, wait: "none" });
  const [drawn, usable] = await page.evaluate(opened);
  add(file, "Firefox: lanes and flame graph drawn, ms", drawn);
  add(file, "Firefox: all counted and drawn, ms", usable);
  await page.close();
}
for (let round = 0; round < ROUNDS; round++) {
  // Each is the first of a round as often as the others.
  for (const file of files.map((_, i) => files[(i + round) % files.length])) {
    await inChromium(file);
    if (process.env.FIREFOX) await inFirefox(file);
  }
}
await browser.close();
for (const file of files) {
  console.log(file);
  for (const [name, values] of Object.entries(rows[file])) {
    const sorted = values.toSorted((a, b) => a - b);
    console.log(`  ${name}: ${sorted[ROUNDS >> 1].toFixed(0)} (${sorted[0].toFixed(0)} to ${sorted[ROUNDS - 1].toFixed(0)})`);
  }
}
console.log(`load ${os.loadavg()[0].toFixed(2)}`);
