// Tasks in the page of `stackglass view`: await stacks, who holds what, deadlocks, time by task and by await line in the selected range. The
// tasks are those of crates/view/tests/tasks.json; the recording is made by crates/view/examples/view-beside.rs.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch, open } from "../../flame/browser/pages.mjs";
import { areAccessible, becomes } from "./checks.mjs";


let browser;
before(async () => { browser = await launch(); });
after(() => browser.close());

const rows = () => [...document.querySelectorAll(".list .row")].map((row) => [...row.children].map((cell) => cell.textContent).join(" | "));
const section = (title) => `[...document.querySelectorAll('section[aria-label="${title}"] > p')].map((part) => part.textContent)`;

test("the task that holds the lock: two actions", async () => {
  const { page, quiet } = await open(browser, "view-tasks-alone.html");
  await becomes(page, rows, [
    "3 | waiting | shop::price | main.rs:10 | 5, 6, 7", "1 | waiting | shop::fetch “\\u{1b}[2Jfetch” | main.rs:23 | 3", "1 | waiting | shop::first | main.rs:37 | 8",
    "1 | waiting | shop::second | main.rs:43 | 9", "1 | running | shop::load |  | 4",
  ]);
  await page.locator(".list .row").first().click();
  await becomes(page, section("Waits for"), ["Mutex 0x5581a3c0, held by task 3 (fetch) at main.rs:14"]);
  // What it does meanwhile.
  await page.locator(".heaptype").getByRole("button", { name: "task 3 (fetch)" }).click();
  await becomes(page, section("Holds"), ["Mutex 0x5581a3c0, for which 3 tasks wait: task 5 (price), task 6 (price), task 7 (price)"]);
  await becomes(page, () => [...document.querySelectorAll('section[aria-label="Await stack"] li')].map((item) => item.textContent),
    ["main.rs:14 shop::price", "main.rs:23 shop::fetch", " tokio::time::sleep::Sleep"]);
  await becomes(page, () => document.querySelector(".heaptype > p").textContent, "waited up to 2.00 s; timer fires in 3.02 s; created at main.rs:48");
  await page.reload();
  await becomes(page, section("Holds"), ["Mutex 0x5581a3c0, for which 3 tasks wait: task 5 (price), task 6 (price), task 7 (price)"]);
  await quiet();
});

test("deadlocks and blocked workers are said first, without any action", async () => {
  const { page, quiet } = await open(browser, "view-tasks-alone.html");
  await becomes(page, () => [...document.querySelectorAll(".alarms > li")].map((item) => item.textContent), [
    "deadlock: 2 tasks wait for each othertask 8 (first) waits for the Mutex of task 9 (second)task 9 (second) waits for the Mutex of task 8 (first)",
    "blocks its worker: task 4 (load) has been in one poll for over 104 ms",
  ]);
  await page.getByRole("button", { name: "Who holds what" }).click();
  await becomes(page, () => document.querySelectorAll(".locks li").length, 4);
  assert.deepEqual(await page.getByRole("tab").allTextContents(), ["Tasks", "Facts"]);
  await page.locator(".alarms").getByRole("button", { name: "task 4 (load)" }).click();
  await becomes(page, () => document.querySelector('section[aria-label="Polled by"]').textContent, "polled by thread 1236, for over 104 msmain.rs:31 shop::load");
  await quiet();
});

test("time by task and by await line follows the selected range", async () => {
  const { page, quiet } = await open(browser, "view-tasks.html", { hash: "#tab=tasks&tasks=names" });
  await becomes(page, rows, ["5.00 s | 83.3 % | 2 | 80.0 % | price | main.rs:48", "1.00 s | 16.7 % | 1 | 100.0 % | fetch | main.rs:48"]);
  await page.getByRole("button", { name: "Time by await line" }).click();
  await becomes(page, rows, [
    "4.00 s | 66.7 % | 4000 | shop::price | main.rs:10 | waits in Acquire", "1.00 s | 16.7 % | 1000 | shop::price | main.rs:14 | waits for a worker",
    "1.00 s | 16.7 % | 1000 | shop::fetch | main.rs:23 | waits in Sleep",
  ]);
  await page.evaluate(() => { location.hash += "&range=1500000000-2500000000"; });
  await becomes(page, rows, [
    "1.00 s | 66.7 % | 1000 | shop::price | main.rs:10 | waits in Acquire", "500 ms | 33.3 % | 500 | shop::price | main.rs:14 | waits for a worker",
  ]);
  // Views agree.
  await becomes(page, () => document.querySelector(".sum").textContent, "1.50 s in 1500 samples");
  // A line selects its function.
  await page.locator(".list .row").first().click();
  await becomes(page, () => [...document.querySelectorAll(".chips .chip")].at(-1).textContent, "selected: shop::price ✕");
  await page.getByRole("button", { name: "Time by task" }).click();
  await becomes(page, rows, ["1.50 s | 100.0 % | 2 | 66.7 % | price | main.rs:48"]);
  await quiet();
});

test("facts have the process of the tasks", async () => {
  const { page, quiet } = await open(browser, "view-tasks-alone.html", { hash: "#tab=facts" });
  await becomes(page, () => [...document.querySelectorAll(".facts dl div")].map((row) => [...row.children].map((cell) => cell.textContent)), [
    ["tasks", "t.json: 7 tasks of process 20274 in 5 groups"], ["runtimes", "tokio 1.54.1, multi-thread"], ["pause", "paused for 1.25 ms"],
  ]);
  await quiet();
});

test("a recording without tasks has no tab of them", async () => {
  const { page, quiet } = await open(browser, "view-calls.html", { hash: "#tab=tasks" });
  assert.deepEqual(await page.getByRole("tab").allTextContents(), ["Flame graph", "Functions", "Call tree", "Time order", "Source", "Facts"]);
  assert.equal(await page.locator('[role="tab"][aria-selected="true"]').textContent(), "Flame graph");
  await quiet();
});

test("nothing stands in the way of people with screen readers", () => areAccessible(browser, "view-tasks.html", ["", "&group=5", "&group=4", "&tasks=locks", "&tasks=names&kind=price", "&tasks=lines"].map((hash) => `tab=tasks${hash}`)));
