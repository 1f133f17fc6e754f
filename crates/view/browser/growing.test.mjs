// A page of a server while the recording grows: what is selected, open, scrolled or has the focus stays so, in Chromium and Firefox.
// Every state of the recording is known (crates/view/examples/view-growing.rs).

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import path from "node:path";
import { after, before, test } from "node:test";
import { launch, noteWaits } from "../../flame/browser/pages.mjs";
import { becomes } from "./checks.mjs";
import { openFirefox } from "./firefox.mjs";

const folder = path.join(path.resolve(process.env.BROWSER_TESTS ?? "."), "pages");

// Shows one state after the other, as `stackglass view` does.
async function serve() {
  const listeners = new Set();
  let state = 1;
  const tell = (answer) => answer.write(`event: page\ndata: ${state}\n\n`);
  const server = createServer((request, answer) => {
    if (request.url === "/secret/events") {
      answer.writeHead(200, { "content-type": "text/event-stream" });
      listeners.add(answer);
      tell(answer);
    } else if (request.url === "/secret/") {
      answer.writeHead(200, { "content-type": "text/html" });
      answer.end(readFileSync(path.join(folder, `view-growing-${state}.html`)));
    } else answer.writeHead(404).end();
  });
  await new Promise((resolve) => { server.listen(0, "127.0.0.1", resolve); });
  return {
    url: `http://127.0.0.1:${server.address().port}/secret/`,
    grow() {
      state++;
      for (const listener of listeners) tell(listener);
    },
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

let chromium;
before(async () => { chromium = await launch(); });
after(() => chromium.close());

async function openChromium(url) {
  const context = await chromium.newContext({ viewport: { width: 1280, height: 800 } });
  await context.addInitScript(noteWaits);
  const page = await context.newPage(), complaints = [];
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  await page.goto(url);
  return { complaints, evaluate: (of, ...values) => page.evaluate(`(${of})(...${JSON.stringify(values)})`), press: (key) => page.keyboard.press(key), close: () => context.close() };
}

const BROWSERS = { Chromium: openChromium, ...(process.env.FIREFOX && { Firefox: (url) => openFirefox(url, { preload: noteWaits }) }) };

// What is on the screen, and must not move.
const seen = () => {
  const table = document.querySelector(".table"), selected = document.querySelector('.row[aria-selected="true"]');
  const names = (rows) => [...rows].map((row) => row.querySelector(".name").textContent.slice(1)).sort();
  return {
    page: window.isThis, focus: document.activeElement.getAttribute("aria-label"), open: names(document.querySelectorAll('.row[aria-expanded="true"]')),
    selected: names([selected]), place: Math.round(selected.getBoundingClientRect().top - table.getBoundingClientRect().top),
    chips: [...document.querySelectorAll(".chips .chip")].map((chip) => chip.textContent), tab: document.querySelector('[role="tab"][aria-selected="true"]').textContent,
    thread: document.querySelector('.pick[aria-pressed="true"] .name').textContent,
  };
};
const totals = () => [document.querySelector(".sum").textContent, [...document.querySelectorAll(".pick .name")].map((name) => name.textContent)];
// From now on, notes whatever is missing for a moment.
const watch = () => {
  window.isThis = true;
  window.missing = [];
  const look = () => {
    const missing = [".tracks canvas", ".list .row", '.row[aria-selected="true"]', ".chip"].filter((what) => !document.querySelector(what));
    if (document.querySelector(".panel .wait")) missing.push("counting …");
    if (missing.length) window.missing.push(...missing);
    window.nextFrame(look);
  };
  window.nextFrame(look);
};

for (const [name, openIn] of Object.entries(BROWSERS)) {
  test(`what is shown stays while the recording grows: ${name}`, async () => {
    const server = await serve();
    const page = await openIn(`${server.url}#tab=tree&thread=two`);
    const is = (read, expected) => becomes({ evaluate: page.evaluate, waitForTimeout: (time) => new Promise((resolve) => { setTimeout(resolve, time); }) }, read, expected);
    try {
      await is(() => document.querySelectorAll('.row[aria-level="2"]').length > 20, true);
      await page.evaluate(() => document.querySelector(".table").focus());
      await page.press("Home");
      for (let i = 0; i < 30; i++) await page.press("ArrowDown");
      await page.press("ArrowRight");
      for (let i = 0; i < 4; i++) await page.press("ArrowDown");
      await page.press("ArrowRight");
      await is(() => document.querySelectorAll('.row[aria-expanded="true"]').length, 2);
      await page.evaluate(() => { document.querySelector(".table").scrollTop += 100; });
      await is(() => document.querySelectorAll('.row[aria-level="3"]').length, 2);
      await page.evaluate(watch);
      const before = await page.evaluate(seen), [first, lanes] = await page.evaluate(totals);
      assert.equal(before.open.length, 2);
      assert.deepEqual([before.focus, before.thread, lanes.length], ["Call tree", "two 8", 3]);
      for (const state of [2, 3]) {
        server.grow();
        await is(() => document.querySelectorAll(".lanes .thread .pick").length, state + 1);
        await is(() => document.querySelector(".sum").textContent.split(" in ")[1], `${120 + 10 * (state - 1)} samples`);
        // Once what was counted is drawn.
        await page.evaluate(() => window.settles());
        assert.deepEqual(await page.evaluate(seen), before);
        assert.notEqual((await page.evaluate(totals))[0], first);
      }
      // Threads are named with their processes now.
      assert.match(await page.evaluate(() => location.hash), /thread=growing%2Ftwo&/);
      assert.deepEqual(await page.evaluate(() => window.missing), []);
      // Firefox asks for an icon of its own accord, which the page forbids.
      assert.deepEqual(page.complaints.filter((text) => !text.includes("/favicon.ico")), []);
    } finally {
      await page.close();
      server.close();
    }
  });
}
