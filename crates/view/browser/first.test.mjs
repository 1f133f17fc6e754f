// The first picture: what the page draws before its columns have come, against the same page with all of them.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import path from "node:path";
import { after, before, test } from "node:test";
import { launch, noteWaits, opened, settled } from "../../flame/browser/pages.mjs";
import { becomes, isAccessible } from "./checks.mjs";

let browser;
before(async () => { browser = await launch(); });
after(async () => {
  await browser.close();
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
});
const servers = [];

const folder = path.resolve(process.env.BROWSER_TESTS ?? ".", "pages");

// Opens a page of which only the part before the columns comes, until `send()`.
async function openHeld(name, { hash = "", ...options } = {}) {
  const html = readFileSync(path.join(folder, name), "utf8");
  const at = html.indexOf('<script type="text/plain" class="columns">', html.indexOf("</script>", html.indexOf("<script>")));
  assert.ok(at > 0);
  let answer;
  const server = createServer((request, response) => {
    answer = response;
    response.writeHead(200, { "content-type": "text/html; charset=utf-8" });
    response.write(html.slice(0, at));
  });
  servers.push(server);
  await new Promise((listens) => { server.listen(0, "127.0.0.1", listens); });
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  await context.addInitScript(noteWaits);
  const page = await context.newPage(), complaints = [];
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  await page.goto(`http://127.0.0.1:${server.address().port}/${hash}`, { waitUntil: "commit" });
  const send = async () => {
    answer.end(html.slice(at));
    await opened(page);
    await settled(page);
  };
  const quiet = async () => {
    assert.deepEqual(complaints, []);
    await context.close();
  };
  return { page, send, quiet };
}

// Keeps the pixels of both pictures under a name, once they are drawn.
async function keep(page, name) {
  await page.waitForFunction(() => {
    const canvas = document.querySelector(".flame canvas");
    return canvas?.width > 0 && new Set(new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size > 3;
  }, null, { polling: 50 });
  await settled(page);
  await page.evaluate((name) => {
    const read = (canvas) => (canvas?.width > 0 ? new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer) : new Uint32Array(0));
    window[name] = [".lanes canvas", ".flame canvas"].map((of) => read(document.querySelector(of)));
  }, name);
}
// Of lanes and flame graph: the share of pixels that differ.
const differing = (page) => page.evaluate(() => window.before.map((one, i) => {
  const other = window.after[i];
  return one.length === other.length ? one.reduce((sum, pixel, at) => sum + (pixel === other[at] ? 0 : 1), 0) / one.length : 1;
}));

// What is said, and where everything is.
const shown = (page) => page.evaluate(() => ({
  sum: document.querySelector(".sum").textContent,
  lanes: [...document.querySelectorAll(".tracks .lane")].map((lane) => [lane.textContent, lane.getBoundingClientRect().top]),
  legend: [...document.querySelectorAll(".legend li")].map((row) => [row.textContent, row.title]),
  tabs: [...document.querySelectorAll("[role=tab]")].map((tab) => [tab.textContent, tab.getBoundingClientRect().left]),
  places: ["header", ".trackbar", ".tracks", ".tabs", ".panel"].map((name) => { const { x, y, width, height } = document.querySelector(name).getBoundingClientRect(); return [name, x, y, width, height]; }),
}));

for (const [name, options] of [["view-lanes.html"], ["view-many.html"], ["allocs-python.html"], ["allocs-rust.html", { colorScheme: "dark", deviceScaleFactor: 2 }], ["view-known.html", { viewport: { width: 390, height: 700 } }]]) {
  test(`the first picture is that of all columns, and stays in its place: ${name}`, async () => {
    const { page, send, quiet } = await openHeld(name, options);
    await keep(page, "before");
    const said = await shown(page);
    assert.equal(await page.locator(".found").textContent(), "reading the recording …");
    assert.equal(await page.locator(".panel").getAttribute("aria-busy"), "true");
    await send();
    await keep(page, "after");
    assert.deepEqual(await shown(page), said);
    assert.equal(await page.locator(".found").textContent(), "");
    // Lanes are told in fewer steps than a recording has: at the edges of what they show, a pixel may be another.
    const [lanes, flame] = await differing(page);
    assert.ok(lanes <= 0.02, `${lanes} of the pixels of lanes`);
    assert.equal(flame, 0, "pixels of the flame graph");
    await quiet();
  });
}

test("what is done before the columns have come is said to wait, keeps the focus, and counts then", async () => {
  const { page, send, quiet } = await openHeld("view-lanes.html");
  await keep(page, "before");
  // A box is known, a table is not.
  const canvas = await page.locator(".flame canvas").boundingBox();
  await page.mouse.click(canvas.x + canvas.width / 2, canvas.y + canvas.height - 1.5 * 19);
  await becomes(page, () => document.querySelector(".chips").textContent, "selected: work ✕");
  await page.keyboard.press("2");
  await becomes(page, () => document.querySelector(".panel").textContent, "reading the recording …");
  // Playwright chooses nothing in a list that is said to be disabled.
  await page.locator(".save").evaluate((list) => {
    list.value = "what is shown as JSON";
    list.dispatchEvent(new Event("change", { bubbles: true }));
  });
  assert.equal(await page.locator(".said").textContent(), "the recording is still being read");
  await page.getByRole("button", { name: /^reader/ }).focus();
  await page.keyboard.press("Enter");
  await page.keyboard.press("/");
  await page.keyboard.type("wor");
  assert.equal(await page.locator(".found").textContent(), "reading the recording …");
  await send();
  await becomes(page, () => document.querySelector(".sum").textContent, "1.00 s in 1000 samples");
  await becomes(page, () => [...document.querySelectorAll(".list .row")].map((row) => row.children[4].textContent), ["work"]);
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), "Search functions");
  assert.equal(await page.locator(".chips").textContent(), "reader ✕selected: work ✕");
  await quiet();
});

test("an address with a selection waits for the columns", async () => {
  const { page, send, quiet } = await openHeld("view-lanes.html", { hash: "#range=500000000-2000000000" });
  await becomes(page, () => document.querySelector(".found")?.textContent, "reading the recording …");
  assert.equal(await page.locator(".sum").textContent(), "");
  await send();
  await becomes(page, () => document.querySelector(".sum").textContent, "3.25 s in 3250 samples");
  await quiet();
});

test("nothing stands in the way of people with screen readers", async () => {
  const { page, send, quiet } = await openHeld("view-known.html", { bypassCSP: true });
  await keep(page, "before");
  await isAccessible(page, "the first picture");
  await page.keyboard.press("2");
  await isAccessible(page, "a table that waits");
  await send();
  await quiet();
});

test("what is no recording says so, and reads no more", async () => {
  const { page, quiet } = await openHeld("view-lanes.html");
  await keep(page, "before");
  await page.route("**/*", (route) => route.fulfill({ contentType: "text/html", body: readFileSync(path.join(folder, "view-lanes.html"), "utf8").replace(/(class="columns">.{300})[^<]*/, "$1") }));
  await page.reload();
  await page.getByRole("alert").waitFor();
  assert.match(await page.getByRole("alert").textContent(), /^The recording cannot be shown: /);
  assert.equal(await page.locator(".found").textContent(), "");
  await quiet();
});
