// What all browser tests share: Chromium, and a page opened from disk that must not complain nor ask for anything.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";

const folder = process.env.BROWSER_TESTS ?? ".";
const { chromium } = createRequire(path.join(path.resolve(folder), "package.json"))("playwright-core");

const OPTIONS = {
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
};

// One for all files (server.mjs), or one of its own.
export const launch = () => (process.env.CHROMIUM_SERVER ? chromium.connect(process.env.CHROMIUM_SERVER) : chromium.launch(OPTIONS));
export const launchServer = () => chromium.launchServer(OPTIONS);

// Opens a page; `quiet()` at the end says that nothing went wrong in it. `settles`: waits until all of it is drawn.
export async function open(browser, name, { hash = "", settles = true, ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, acceptDownloads: true, ...options });
  await context.addInitScript(noteWaits);
  const page = await context.newPage(), complaints = [], requests = [];
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (request) => requests.push(request.url()));
  const url = pathToFileURL(path.resolve(folder, "pages", name)).href;
  await page.goto(url + hash);
  if (options.javaScriptEnabled !== false) await opened(page);
  if (settles && options.javaScriptEnabled !== false) await settled(page);
  const quiet = async () => {
    assert.deepEqual(complaints, []);
    assert.ok(requests.every((asked) => asked.startsWith(url) || asked.startsWith("blob:")), requests.join("\n"));
    await context.close();
  };
  return { page, url, quiet };
}

// Once all is read and counted: until then, a page shows a first picture of what it has read.
export const opened = (page) =>
  page.waitForFunction(() => performance.getEntriesByName("stackglass-open").length > 0 && !document.querySelector('[aria-busy="true"]'));

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

// Runs in a page before its scripts, and notes what the page waits for: frames, timers, answers of its worker.
export function noteWaits() {
  // Messages that are shown for seconds are not waited for.
  const LONGEST = 500;
  // What timers have to do, while they are held.
  let held = null;
  const waits = new Set(), { requestAnimationFrame: nextFrame, Worker: Plain } = window;
  for (const [begin, end] of [["requestAnimationFrame", "cancelAnimationFrame"], ["setTimeout", "clearTimeout"]]) {
    const { [begin]: start, [end]: stop } = window;
    window[begin] = (call, time = 0, ...more) => {
      const id = start((...values) => {
        const run = () => {
          try {
            call(...values);
          } finally {
            waits.delete(`${begin} ${id}`);
          }
        };
        if (held && time > 0) held.set(id, run);
        else run();
      }, time, ...more);
      if (time <= LONGEST) waits.add(`${begin} ${id}`);
      return id;
    };
    window[end] = (id) => {
      waits.delete(`${begin} ${id}`);
      if (begin === "setTimeout") held?.delete(id);
      stop(id);
    };
  }
  // For what tests themselves do in each frame.
  window.nextFrame = nextFrame;
  window.holdTimers = () => { held = new Map(); };
  window.letTimersGo = () => {
    const all = [...held.values()];
    held = null;
    for (const run of all) run();
  };
  window.Worker = class extends Plain {
    asked = new Map();

    constructor(...options) {
      super(...options);
      this.addEventListener("message", ({ data }) => this.forget(data.id));
    }

    forget(id) {
      waits.delete(this.asked.get(id));
      this.asked.delete(id);
    }

    postMessage(data, ...more) {
      if (data.question) {
        const wait = {};
        this.asked.set(data.id, wait);
        waits.add(wait);
      }
      super.postMessage(data, ...more);
    }

    terminate() {
      for (const id of [...this.asked.keys()]) this.forget(id);
      super.terminate();
    }
  };
  window.settles = async () => {
    for (let quiet = 0, end = performance.now() + 20_000; quiet < 3; quiet = waits.size ? 0 : quiet + 1) {
      if (performance.now() > end) throw new Error(`the page still waits for ${[...waits].map(String)}`);
      await new Promise((call) => { nextFrame(call); });
    }
  };
}
// Once all that was begun is done and drawn.
export const settled = (page) => page.evaluate(() => window.settles());
// One gesture: pauses between its parts are the machine's, and end no gesture of the page.
export async function atOnce(page, act) {
  await page.evaluate(() => window.holdTimers());
  await act();
  await page.evaluate(() => window.letTimersGo());
}
// Follows a link in the page, until it shows what it leads to.
export async function follow(page, hash) {
  await page.evaluate((hash) => new Promise((call) => {
    const before = location.href;
    addEventListener("hashchange", call, { once: true });
    location.hash = hash;
    if (location.href === before) call();
  }), hash);
  await settled(page);
}

// What some action saves: name of the file, and bytes.
export async function saved(page, act) {
  const [download] = await Promise.all([page.waitForEvent("download"), act()]);
  const folder = mkdtempSync(path.join(tmpdir(), "stackglass-saved-")), file = path.join(folder, "file");
  try {
    // The browser may have been started by another program, which has the file.
    await download.saveAs(file);
    return [download.suggestedFilename(), readFileSync(file)];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
// The colour of a point of the picture.
export const color = (page, x, y) =>
  page.evaluate(([x, y]) => [...document.getElementById("graph").getContext("2d").getImageData(x, y, 1, 1).data].slice(0, 3), [x, y]);
