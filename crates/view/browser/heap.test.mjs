// The heap in the page of `stackglass view`: figures as in `heap show`, what leaks and what holds it, keys, accessibility. The snapshot is made
// by crates/view/examples/view-beside.rs.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";
import { launch, open } from "../../flame/browser/pages.mjs";
import { areAccessible, becomes } from "./checks.mjs";

const folder = path.resolve(process.env.BROWSER_TESTS ?? ".");
const shown = JSON.parse(readFileSync(path.join(folder, "pages", "view-heap.json"), "utf8"));

let browser;
before(async () => { browser = await launch(); });
after(() => browser.close());

const rows = () => [...document.querySelectorAll(".list .row")].map((row) => [...row.children].map((cell) => cell.textContent.replace(/[▸▾]/, "")).join(" | "));
const items = (title) => `[...document.querySelectorAll('section[aria-label="${title}"] li')].map((item) => [...item.children].map((cell) => cell.textContent).join(" | "))`;
const way = () => [...document.querySelectorAll(".path li")].map((item) => item.textContent.replace("└ ", ""));

// As the page writes them: three figures.
const bytes = (size) => (size < 1000 ? `${size} B` : `${(size / 1000).toPrecision(3)} kB`);
const count = (number) => (number < 10_000 ? String(number) : `${Math.floor(number / 1000)} ${String(number % 1000).padStart(3, "0")}`);

test("figures are those of `heap show`", async () => {
  const { page, quiet } = await open(browser, "view-heap.html");
  const whole = shown.types.reduce((sum, { self_size }) => sum + self_size, 0);
  await becomes(page, rows, shown.types.map((row) =>
    [`${((100 * row.self_size) / whole).toFixed(1)} %`, count(row.count), bytes(row.self_size), bytes(row.retained_size), row.type].join(" | ")));
  assert.equal(shown.types.length, 4);
  await page.getByRole("button", { name: "Largest holders" }).click();
  await becomes(page, rows, shown.largest.map((row) =>
    [bytes(row.retained_size), count(row.count), (row.alike > 1 ? `${count(row.alike)} × ` : "") + row.type, row.path.join(" → ")].join(" | ")));
  await page.getByRole("button", { name: "Leak candidates" }).click();
  await becomes(page, rows, shown.unreachable.owners.map((row) =>
    [bytes(row.size), count(row.count), count(row.owners), row.type, row.sites[0].site].join(" | ")));
  assert.deepEqual(await page.evaluate(rows), ["150 kB | 600 | 300 | Request | server::accept (main.rs:71)"]);
  await becomes(page, () => document.querySelector(".heapbar .dim").textContent,
    `server.heapsnapshot: 326 kB alive in 2101 blocks, ${count(shown.edges)} edges; leaked? 150 kB in 600 blocks to which nothing leads`);
  // Without a recording, there are no lanes, and nothing that counts time.
  assert.deepEqual(await page.getByRole("tab").allTextContents(), ["Heap", "Facts"]);
  assert.equal(await page.locator(".tracks, header select").count(), 0);
  await quiet();
});

test("the type that leaks, and what holds it: two actions", async () => {
  const { page, quiet } = await open(browser, "view-heap.html");
  await page.getByRole("button", { name: "Leak candidates" }).click();
  await page.locator(".list .row").first().click();
  await becomes(page, way, ["(unreachable blocks)", "Request"]);
  await becomes(page, items("allocated by"), ["30.0 kB | 300 | server::accept (main.rs:71)"]);
  await becomes(page, items("would go with it"), ["120 kB | 80.0 % | 300 × [u8]", "30.0 kB | 20.0 % | 300 × Request"]);
  await quiet();
});

test("the type that grows, and what holds it: two actions", async () => {
  const { page, quiet } = await open(browser, "view-heap.html");
  await page.locator(".headings button", { hasText: "retained" }).click();
  await page.locator(".list .row").first().click();
  await becomes(page, way, ["(static data) server", "server::SESSIONS", ".map"]);
  await becomes(page, items("would go with it"), ["256 kB | 80.0 % | 1000 × [Event]", "48.0 kB | 15.0 % | 1 × HashMap<u64, Session> table", "16.0 kB | 5.0 % | 1000 × String"]);
  await becomes(page, items("holds"), ["16.0 kB | 1000 | […].value.name: String", "256 kB | 1000 | […].value.events: [Event]"]);
  // From type to type, and back.
  await page.locator(".heaptype button", { hasText: "[Event]" }).first().click();
  await becomes(page, items("held by"), ["256 kB | 1000 | HashMap<u64, Session> table[…].value.events"]);
  assert.equal(await page.locator(".tabs code").textContent(), "stackglass heap show server.heapsnapshot --type '[Event]'");
  await page.reload();
  await becomes(page, () => document.querySelector(".heaptype h2").textContent, "[Event]");
  await page.keyboard.press("u");
  await becomes(page, () => document.querySelector(".heaptype h2").textContent, "HashMap<u64, Session> table");
  await quiet();
});

test("the dominator tree is opened by keys, and adds up", async () => {
  const { page, quiet } = await open(browser, "view-heap.html", { hash: "#heap=tree" });
  const top = ["320 kB | 67.2 % |  | 2001 | (static data)", "150 kB | 31.5 % |  | 600 | (unreachable blocks)", "6.40 kB | 1.3 % |  | 100 | (thread stacks)"];
  await becomes(page, rows, top);
  await page.locator(".table").focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowRight");
  // A row with one below is opened with it.
  await becomes(page, rows, [
    top[0], "320 kB | 67.2 % |  | 2001 | server", "320 kB | 67.2 % |  | 2001 | server::SESSIONS", "320 kB | 67.2 % | 48.0 kB | 2001 | HashMap<u64, Session> table",
    "256 kB | 53.7 % | 256 kB | 1000 | 1000 × [Event]", "16.0 kB | 3.4 % | 16.0 kB | 1000 | 1000 × String", top[1], top[2],
  ]);
  await page.keyboard.press("End");
  await page.keyboard.press("ArrowRight");
  for (let i = 0; i < 3; i++) await page.keyboard.press("ArrowRight");
  await becomes(page, () => document.querySelector('.row[aria-selected="true"]').textContent, "6.40 kB1.3 %6.40 kB100100 × Job<</script><img src=x onerror=alert(1)>>");
  await page.keyboard.press("Home");
  await page.keyboard.press("ArrowLeft");
  await becomes(page, () => document.querySelectorAll(".list .row").length, 6);
  await quiet();
});

test("facts are what `heap show` says first", async () => {
  const { page, quiet } = await open(browser, "view-heap.html", { hash: "#tab=facts" });
  await becomes(page, () => [...document.querySelectorAll(".facts dl div")].map((row) => [...row.children].map((cell) => cell.textContent)), [
    ["heap snapshot", "server.heapsnapshot"], ["alive", `326 kB in 2101 blocks, ${count(shown.edges)} edges`], ["held by", "320 kB static data, 6.40 kB thread stacks"],
    ["leaked?", "150 kB in 600 blocks to which nothing leads"],
  ]);
  await quiet();
});

test("names are searched", async () => {
  const { page, quiet } = await open(browser, "view-heap.html");
  await page.keyboard.press("/");
  await page.keyboard.type("session table");
  await becomes(page, rows, ["14.7 % | 1 | 48.0 kB | 320 kB | HashMap<u64, Session> table"]);
  await quiet();
});

test("nothing stands in the way of people with screen readers", () => areAccessible(browser, "view-heap.html", ["", "type=[Event]", "heap=holders&type=Request", "heap=tree", "heap=leaks&type=Request", "tab=facts", "type=gone"]));
