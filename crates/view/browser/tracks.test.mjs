// The time axis of `stackglass view`: lanes of states, zoom, folding, finding, keys (crates/view/examples/view-lanes.rs).

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { atOnce, launch, open, settled } from "../../flame/browser/pages.mjs";
import { becomes } from "./checks.mjs";

let browser;
before(async () => { browser = await launch(); });
after(() => browser.close());

const counts = (page, expected) => becomes(page, () => document.querySelector(".sum").textContent, expected);

// Names of the lanes that are there, from the top.
const names = (page) => page.locator(".lane .name").evaluateAll((all) => all
  .sort((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top).map((name) => name.textContent.trim()));

const hash = (page) => page.evaluate(() => Object.fromEntries(new URLSearchParams(location.hash.slice(1))));
const part = async (page, name) => {
  await page.waitForFunction((name) => new URLSearchParams(location.hash.slice(1)).has(name), name);
  return (await hash(page))[name].split("-").map(Number);
};
const near = ([from, to], [wantedFrom, wantedTo], by) =>
  assert.ok(Math.abs(from - wantedFrom) <= by && Math.abs(to - wantedTo) <= by, `${from} ${to}, not ${wantedFrom} ${wantedTo}`);

// The point of a lane at a moment, when the whole time of four seconds is visible.
async function place(page, lane, seconds) {
  const plot = await page.locator(".lanes canvas").boundingBox();
  const row = await page.locator(".lane", { hasText: lane }).boundingBox();
  return [plot.x + (seconds / 4) * plot.width, row.y + row.height / 2];
}

async function drag(page, from, to) {
  await page.mouse.move(...from);
  await page.mouse.down();
  await page.mouse.move((from[0] + to[0]) / 2, to[1]);
  await page.mouse.move(...to);
  await page.mouse.up();
}

test("lanes tell what a thread does and waits in", async () => {
  const { page, quiet } = await open(browser, "view-lanes.html");
  const said = {
    locker: /asleep: lock .*100\.0 %\s*asleep in std::sys::futex::futex_wait$/s, reader: /asleep: file or socket .*100\.0 %\s*asleep in __libc_read/s,
    poller: /asleep: poll .*asleep in epoll_wait/s, napper: /asleep: timer .*asleep in clock_nanosleep/s, waiter: /asleep: other .*asleep in wait4/s,
  };
  await page.locator(".tracks").evaluate((section) => { section.style.height = "320px"; });
  await settled(page);
  for (const [lane, text] of Object.entries(said)) {
    await page.mouse.move(...await place(page, lane, 2.52));
    await page.waitForFunction((name) => new RegExp(`^${name}.*asleep in`, "s").test(document.querySelector(".tip")?.innerText ?? ""), lane);
    assert.match(await page.locator(".tip").innerText(), text);
  }
  await page.mouse.move(...await place(page, "busy", 0.37));
  await page.waitForFunction(() => /^busy .*ready, waiting for a CPU .*100\.0 %\s*ready in work/s.test(document.querySelector(".tip")?.innerText ?? ""));
  await page.mouse.move(...await place(page, "server", 0.62));
  await page.waitForFunction(() => /^server .*running, own code .*5\.00 CPUs\s*mostly in work/s.test(document.querySelector(".tip")?.innerText ?? ""));
  // Two states have two colours.
  const colors = await page.evaluate(() => {
    const canvas = document.querySelector(".lanes canvas");
    const color = (seconds, y) => [...canvas.getContext("2d").getImageData(Math.round((seconds / 4) * canvas.width), y, 1, 1).data].join();
    return [color(0.52, 60), color(0.52, 125), color(3.9, 195)];
  });
  assert.deepEqual(colors.slice(0, 2), ["238,136,102,255", "238,136,102,255"]);
  assert.notEqual(colors[2], colors[1]);
  await quiet();
});

test("a click selects the function, a double click zooms", async () => {
  const { page, quiet } = await open(browser, "view-lanes.html");
  await page.locator(".tracks").evaluate((section) => { section.style.height = "320px"; });
  await settled(page);
  await page.mouse.click(...await place(page, "reader", 2));
  await page.getByRole("button", { name: "__libc_read ✕" }).waitFor();
  // It lights up where it sleeps.
  const [x, y] = await place(page, "reader", 3.1);
  await page.waitForFunction(([x, y]) => {
    const canvas = document.querySelector(".lanes canvas"), box = canvas.getBoundingClientRect();
    const data = canvas.getContext("2d").getImageData(x - box.left, y - box.top - 13, 1, 26).data;
    return Array.from({ length: 26 }, (_, i) => [...data.slice(4 * i, 4 * i + 3)].join()).filter((color) => color === "26,79,180").length > 3;
  }, [x, y]);
  await page.mouse.click(...await place(page, "reader", 2));
  await page.waitForFunction(() => !document.querySelector("header").textContent.includes("__libc_read"));
  await page.mouse.dblclick(...await place(page, "poller", 2));
  near(await part(page, "view"), [1.5e9, 2.5e9], 4e6);
  await quiet();
});

test("a range counts each kind of time", async () => {
  const { page, quiet } = await open(browser, "view-lanes.html", { hash: "#range=500000000-2000000000" });
  await counts(page, "3.25 s in 3250 samples");
  assert.match(await page.locator(".lane", { hasText: "locker" }).innerText(), /500 ms/);
  await page.selectOption("select", "asleep");
  await counts(page, "5.00 s in 0 samples");
  await page.selectOption("select", "ready");
  await counts(page, "750 ms in 750 samples");
  await page.selectOption("select", "wall");
  await counts(page, "9.00 s in 4000 samples");
  await quiet();
});

test("wheel, keys and buttons zoom and move; a gesture is one step", async () => {
  const { page, quiet } = await open(browser, "view-lanes.html");
  const plot = await page.locator(".lanes canvas").boundingBox();
  const steps = await page.evaluate(() => {
    // The browser tells of them later, and maybe of several by one event.
    window.wheels = 0;
    addEventListener("wheel", ({ deltaY }) => { window.wheels -= deltaY / 100; });
    return history.length;
  });
  await page.mouse.move(plot.x + plot.width / 4, plot.y + 40);
  await page.keyboard.down("Control");
  await atOnce(page, async () => {
    for (let i = 0; i < 10; i++) await page.mouse.wheel(0, -100);
    await becomes(page, () => window.wheels, 10);
  });
  await page.keyboard.up("Control");
  const [from, to] = await part(page, "view");
  const factor = Math.exp(-10 * 60 * 0.005);
  near([from, to], [1e9 - 1e9 * factor, 1e9 + 3e9 * factor], 2e6);
  assert.equal(await page.evaluate(() => history.length), steps + 1);
  await page.keyboard.down("Shift");
  await page.mouse.wheel(0, plot.width / 2);
  await page.keyboard.up("Shift");
  await page.waitForFunction((before) => new URLSearchParams(location.hash.slice(1)).get("view") !== before, `${from}-${to}`);
  near(await part(page, "view"), [from + (to - from) / 2, to + (to - from) / 2], 2e6);
  await page.keyboard.press("u");
  await page.keyboard.press("u");
  await page.waitForFunction(() => location.hash === "");
  // The visible part is in the middle again: from here by keys.
  await page.keyboard.press("w");
  near(await part(page, "view"), [1e9 - 1e9 / 1.5, 1e9 + 3e9 / 1.5], 1e6);
  await page.keyboard.press("d");
  await page.waitForFunction(() => location.hash.includes("view=733"));
  await page.keyboard.press("Shift+Z");
  await page.waitForFunction(() => !location.hash.includes("view"));
  const [y] = [plot.y + 50];
  await drag(page, [plot.x + plot.width / 4, y], [plot.x + plot.width / 2, y]);
  const range = await part(page, "range");
  near(range, [1e9, 2e9], 4e6);
  await page.keyboard.press("z");
  assert.deepEqual(await part(page, "view"), range);
  await page.getByRole("button", { name: "whole", exact: true }).click();
  await page.waitForFunction(() => !location.hash.includes("view"));
  await page.getByRole("button", { name: "zoom to selection" }).click();
  assert.deepEqual(await part(page, "view"), range);
  await page.reload();
  await counts(page, "500 ms in 500 samples");
  assert.deepEqual(await part(page, "view"), range);
  await quiet();
});

test("the ends of a range are dragged and moved with keys; Escape takes it away", async () => {
  const { page, quiet } = await open(browser, "view-lanes.html", { hash: "#range=1000000000-2000000000" });
  const plot = await page.locator(".lanes canvas").boundingBox();
  const x = (seconds) => plot.x + (seconds / 4) * plot.width;
  await drag(page, [x(2), plot.y + 100], [x(3), plot.y + 100]);
  await page.waitForFunction(() => !location.hash.includes("2000000000"));
  near(await part(page, "range"), [1e9, 3e9], 4e6);
  // One end may cross the other.
  await drag(page, [x(1), plot.y + 100], [x(3.5), plot.y + 100]);
  await page.waitForFunction(() => !location.hash.includes("=1000000000"));
  near(await part(page, "range"), [3e9, 3.5e9], 4e6);
  const [from, to] = await part(page, "range");
  const end = page.getByRole("slider", { name: "End of the range" });
  await end.focus();
  await atOnce(page, async () => {
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowRight");
  });
  await page.waitForFunction((before) => !location.hash.includes(before), String(to));
  near(await part(page, "range"), [from, to + (10 * 4e9) / plot.width], 10);
  assert.match(await end.getAttribute("aria-valuetext"), /^3\.5\d+ s$/);
  await page.keyboard.press("u");
  await page.waitForFunction((before) => location.hash.includes(before), String(to));
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => !location.hash.includes("range"));
  // Escape also leaves a drag.
  await page.mouse.move(x(1), plot.y + 100);
  await page.mouse.down();
  await page.mouse.move(x(2), plot.y + 100);
  await page.keyboard.press("Escape");
  await page.mouse.up();
  assert.deepEqual(await hash(page), {});
  // By keys alone.
  await page.getByRole("slider", { name: "Start of the range" }).focus();
  await page.keyboard.press("Shift+ArrowRight");
  near(await part(page, "range"), [(50 * 4e9) / plot.width, 4e9], 10);
  await quiet();
});

test("processes fold, and lanes are found and picked by keys", async () => {
  const { page, quiet } = await open(browser, "view-lanes.html");
  assert.deepEqual(await names(page), ["whole program", "server 10", "locker 11", "reader 12", "poller 13", "napper 14", "waiter 15", "client 20", "busy 21"]);
  await page.getByRole("button", { name: "Threads of server 10" }).click();
  assert.deepEqual(await names(page), ["whole program", "server 10", "client 20", "busy 21"]);
  assert.deepEqual(await hash(page), { folded: "server" });
  await page.keyboard.press("u");
  await page.waitForFunction(() => document.querySelectorAll(".lane").length === 9);
  await page.getByRole("button", { name: /^whole program/ }).focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowLeft");
  await page.waitForFunction(() => document.querySelectorAll(".lane").length === 4);
  await page.keyboard.press("ArrowRight");
  await page.waitForFunction(() => document.querySelectorAll(".lane").length === 9);
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await counts(page, "1.00 s in 1000 samples");
  assert.equal((await hash(page)).thread, "server/reader");
  await page.keyboard.press("ArrowLeft");
  assert.match(await page.evaluate(() => document.activeElement.textContent), /^server/);
  // Lanes are in the order of the measure.
  await page.selectOption("select", "ready");
  await page.waitForFunction(() => [...document.querySelectorAll(".lane .name")].find((name) => /client/.test(name.textContent)).getBoundingClientRect().top
    < [...document.querySelectorAll(".lane .name")].find((name) => /server/.test(name.textContent)).getBoundingClientRect().top);
  const find = page.getByRole("searchbox", { name: "Find lanes" });
  await find.fill("na");
  assert.deepEqual(await names(page), ["whole program", "server 10", "napper 14"]);
  await find.fill("21");
  assert.deepEqual(await names(page), ["whole program", "client 20", "busy 21"]);
  await find.press("Escape");
  await page.waitForFunction(() => document.querySelectorAll(".lane").length === 9);
  await quiet();
});

test("a table has what the canvas shows", async () => {
  const { page, quiet } = await open(browser, "view-lanes.html", { hash: "#range=500000000-2000000000" });
  const rows = async () => page.locator(".tracks table tbody tr").evaluateAll((all) => all.map((row) => [...row.children].map((cell) => cell.textContent.trim())));
  await page.waitForFunction(() => document.querySelectorAll(".tracks table tbody tr").length === 9);
  assert.equal(await page.locator(".tracks table caption").textContent(), "Lanes, from 500 ms to 2.00 s");
  const all = await rows();
  assert.deepEqual(all[0], ["whole program", "3.25 s", "750 ms", "5.00 s"]);
  assert.deepEqual(all[1], ["process server 10", "2.50 s", "0", "5.00 s"]);
  assert.deepEqual(all[2], ["thread locker 11", "500 ms 33.3 %", "0 0.0 %", "1.00 s 66.7 %"]);
  assert.deepEqual(all[8], ["thread busy 21", "750 ms 50.0 %", "750 ms 50.0 %", "0 0.0 %"]);
  await quiet();
});

test("of a thousand lanes, only those are asked for that are visible", async () => {
  const { page, quiet } = await open(browser, "view-many.html");
  const lanes = () => page.locator(".lane").count();
  assert.ok(await lanes() < 60);
  await page.locator(".tracks").evaluate((section) => { section.scrollTop = section.scrollHeight; });
  await page.waitForFunction(() => [...document.querySelectorAll(".lane")].some((lane) => lane.offsetTop > 25000));
  assert.ok(await lanes() < 60);
  // The lanes there are painted.
  await page.waitForFunction(() => {
    const canvas = document.querySelector(".lanes canvas");
    const data = canvas.getContext("2d").getImageData(0, 30, canvas.width, canvas.height - 30).data;
    const colors = new Set();
    for (let i = 0; i < data.length; i += 4) if (data[i + 3]) colors.add((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
    return colors.has(0xee8866) && colors.has(0x44bb99);
  });
  await page.getByRole("searchbox", { name: "Find lanes" }).fill("worker-777");
  assert.equal(await page.locator(".trackbar").getByRole("status").textContent(), "1 thread");
  await quiet();
});

test("two fingers zoom", async () => {
  const { page, quiet } = await open(browser, "view-lanes.html", { hasTouch: true });
  const plot = await page.locator(".lanes canvas").boundingBox();
  const session = await page.context().newCDPSession(page);
  const y = plot.y + 50, middle = plot.x + plot.width / 2;
  const touch = (type, ...xs) => session.send("Input.dispatchTouchEvent", { type, touchPoints: xs.map((x, id) => ({ x, y, id })) });
  await atOnce(page, async () => {
    await touch("touchStart", middle - 100);
    await touch("touchStart", middle - 100, middle);
    for (let far = 100; far <= 200; far += 20) await touch("touchMove", middle - far, middle);
    await touch("touchEnd");
  });
  near(await part(page, "view"), [1e9, 3e9], 2e7);
  assert.deepEqual(Object.keys(await hash(page)), ["view"]);
  await quiet();
});

test("a zoom that is not a step yet survives another step", async () => {
  const { page, quiet } = await open(browser, "view-lanes.html");
  const plot = await page.locator(".lanes canvas").boundingBox();
  await page.mouse.move(plot.x + plot.width / 2, plot.y + 40);
  await atOnce(page, async () => {
    await page.keyboard.press("w");
    await page.keyboard.press("2");
  });
  near(await part(page, "view"), [2e9 - 2e9 / 1.5, 2e9 + 2e9 / 1.5], 2e6);
  assert.equal((await hash(page)).tab, "functions");
  await quiet();
});
