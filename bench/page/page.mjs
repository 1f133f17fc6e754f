// Measures a page of `stackglass view` in Chromium: medians of five openings. `BROWSER_TESTS=FOLDER node page.mjs PAGE`, where FOLDER has
// playwright-core. `view-lanes FOLDER large` writes a page of a million samples.

import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";

const { chromium } = createRequire(path.join(path.resolve(process.env.BROWSER_TESTS ?? "."), "package.json"))("playwright-core");
const url = pathToFileURL(path.resolve(process.argv[2])).href;
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
const rows = {};
const add = (name, value) => (rows[name] ??= []).push(value);
for (let round = 0; round < 5; round++) {
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  await page.addInitScript(() => {
    window.tasks = [];
    new PerformanceObserver((list) => window.tasks.push(...list.getEntries().map(({ duration }) => duration))).observe({ type: "longtask", buffered: true });
  });
  const longest = () => page.evaluate(() => new Promise((call) => setTimeout(() => { call(Math.max(0, ...window.tasks)); window.tasks = []; }, 300)));
  await page.goto(url);
  await page.waitForFunction(() => performance.getEntriesByName("stackglass-open").length > 0);
  add("usable (mark stackglass-open), ms", await page.evaluate(() => performance.getEntriesByName("stackglass-open")[0].startTime));
  add("longest task while it opens, ms", await longest());
  await page.waitForFunction(() => document.querySelector(".sum").textContent !== "");
  await page.keyboard.press("i");
  add("longest task, first inversion, ms", await longest());
  await page.getByRole("tab", { name: "Functions" }).click();
  await page.locator(".list .row").first().click();
  await page.waitForSelector(".sandwich");
  add("longest task, functions and sandwich, ms", await longest());
  await page.close();
}
await browser.close();
for (const [name, values] of Object.entries(rows)) {
  const sorted = values.toSorted((a, b) => a - b);
  console.log(`${name}: ${sorted[2].toFixed(0)} (${sorted[0].toFixed(0)} to ${sorted[4].toFixed(0)})`);
}
console.log(`load ${os.loadavg()[0].toFixed(2)}`);
