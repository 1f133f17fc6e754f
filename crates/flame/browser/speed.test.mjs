// How long pages of 100 000 and of a million boxes take to open and to invert, and how many frames a second a zoom has, by
// the browser's own entries; the median of five.

import assert from "node:assert/strict";
import { statSync } from "node:fs";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { launch, open, place } from "./pages.mjs";

let browser;
before(async () => { browser = await launch(); });
after(() => browser.close());

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

test("100 000 boxes open within a second, and zoom at 30 frames a second", async (t) => {
  const opened = [], rates = [];
  for (let round = 0; round < 5; round++) {
    const { page, url, quiet } = await open(browser, "many.html");
    opened.push(await page.evaluate(() => performance.getEntriesByName("stackglass-open")[0].startTime));
    if (round === 0) {
      const size = statSync(fileURLToPath(url)).size;
      t.diagnostic(`${(size / 100_000).toFixed(1)} bytes a box, still picture, names and viewer included`);
      assert.ok(size / 100_000 <= 40);
    }
    await page.evaluate(() => {
      window.frames_ = [];
      const frame = (now) => {
        window.frames_.push(now);
        requestAnimationFrame(frame);
      };
      requestAnimationFrame(frame);
    });
    await page.mouse.move(...(await place(page, 8, 30)));
    await page.keyboard.down("Control");
    for (let step = 0; step < 20; step++) await page.mouse.wheel(0, step < 10 ? -120 : 120);
    await page.keyboard.up("Control");
    for (const row of [2, 4, 6, 8]) {
      await page.mouse.click(...(await place(page, row, 30)));
      await page.waitForTimeout(200);
    }
    for (let step = 0; step < 4; step++) {
      await page.keyboard.press("Escape");
      await page.waitForTimeout(200);
    }
    const frames = await page.evaluate(() => window.frames_);
    rates.push(((frames.length - 1) * 1000) / (frames.at(-1) - frames[0]));
    await quiet();
  }
  t.diagnostic(`opens in ${median(opened).toFixed(0)} ms, zooms at ${median(rates).toFixed(0)} frames a second`);
  assert.ok(median(opened) <= 1000, `opens in ${opened} ms`);
  assert.ok(median(rates) >= 30, `${rates} frames a second`);
});

for (const [name, boxes, limit] of [["many", "100 000", 500], ["million", "a million", 3000]]) {
  test(`${boxes} boxes are inverted within ${limit} ms, and the page answers meanwhile`, async (t) => {
    const times = [], pauses = [];
    for (let round = 0; round < 5; round++) {
      const { page, quiet } = await open(browser, `${name}.html`);
      const { time, pause } = await page.evaluate(() => new Promise((resolve) => {
        const start = performance.now(), isDone = () => document.getElementById("busy").hidden;
        let last = start, pause = 0;
        // Messages to itself come whenever the page could answer.
        const channel = new MessageChannel();
        channel.port1.onmessage = () => {
          const now = performance.now();
          pause = Math.max(pause, now - last);
          last = now;
          if (isDone()) resolve({ time: now - start, pause });
          else channel.port2.postMessage(0);
        };
        document.getElementById("inverted").click();
        channel.port2.postMessage(0);
      }));
      times.push(time);
      pauses.push(pause);
      await quiet();
    }
    t.diagnostic(`inverts in ${median(times).toFixed(0)} ms, with pauses of at most ${median(pauses).toFixed(0)} ms`);
    assert.ok(median(times) <= limit, `${times} ms`);
    assert.ok(median(pauses) <= 250, `pauses of ${pauses} ms`);
  });
}
