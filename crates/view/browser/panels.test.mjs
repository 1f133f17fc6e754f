// The panels of the page of `stackglass view` in a real browser: transforms, tree, search, menu, compare, exports, accessibility.
// Every figure of the recording is known (crates/view/examples/view-pages.rs).

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { follow, launch, open, saved, settled } from "../../flame/browser/pages.mjs";
import { becomes, isAccessible } from "./checks.mjs";


let browser;
before(async () => { browser = await launch(); });
after(() => browser.close());

const sum = (page, expected) => becomes(page, () => document.querySelector(".sum").textContent, expected);
const chips = (page, expected) => becomes(page, () => [...document.querySelectorAll(".chips .chip")].map((chip) => chip.textContent), expected);
// Rows of the call tree: level, function, total.
const tree = () => [...document.querySelectorAll(".list .row")].map((row) => {
  const cells = [...row.children].map((cell) => cell.textContent);
  return `${row.getAttribute("aria-level")} ${cells[4].replace(/[▸▾]/, "")} ${cells[0]}`;
});
// Rows of the table of functions: function, own time, total.
const functions = () => [...document.querySelectorAll(".list .row")].map((row) => {
  const cells = [...row.children].map((cell) => cell.textContent);
  return `${cells[4].replace(/a{9,}/, "aa")} ${cells[0]} ${cells[2]}`;
});
const select = (page, name) => page.locator(".list .row", { hasText: name }).first().click();

test("the letters of transforms change what is counted, chips remove them, and each step is undone", async () => {
  const { page, quiet } = await open(browser, "view-calls.html", { hash: "#tab=functions" });
  const all = ["aa! 3.00 s 3.00 s", "memcpy 2.00 s 2.00 s", "json::parse 1.00 s 2.50 s", "calls::main 0 6.00 s", "calls::walk 0 2.00 s"];
  await becomes(page, functions, all);
  await select(page, "calls::walk");
  await page.keyboard.press("f");
  await sum(page, "2.00 s in 2000 samples");
  await becomes(page, functions, ["json::parse 1.00 s 2.00 s", "memcpy 1.00 s 1.00 s", "calls::walk 0 2.00 s"]);
  await select(page, "memcpy");
  await page.keyboard.press("m");
  await becomes(page, functions, ["json::parse 2.00 s 2.00 s", "calls::walk 0 2.00 s"]);
  await chips(page, ["only calls::walk ✕", "merged into callers: memcpy ✕", "selected: memcpy ✕"]);
  // The address has all of it.
  await page.reload();
  await becomes(page, functions, ["json::parse 2.00 s 2.00 s", "calls::walk 0 2.00 s"]);
  await page.getByRole("button", { name: "only calls::walk" }).click();
  await becomes(page, functions, ["aa! 3.00 s 3.00 s", "json::parse 2.50 s 2.50 s", "calls::main 500 ms 6.00 s", "calls::walk 0 2.00 s"]);
  for (let i = 0; i < 3; i++) await page.keyboard.press("u");
  await becomes(page, functions, all);
  await page.keyboard.press("Shift+U");
  await sum(page, "2.00 s in 2000 samples");
  await page.keyboard.press("u");
  await select(page, "memcpy");
  await page.keyboard.press("d");
  await sum(page, "4.00 s in 4000 samples");
  await page.keyboard.press("u");
  await page.keyboard.press("S");
  await sum(page, "2.00 s in 2000 samples");
  await page.keyboard.press("u");
  await select(page, "json::parse");
  await page.keyboard.press("c");
  await becomes(page, functions, ["aa! 3.00 s 3.00 s", "json::parse 2.50 s 2.50 s", "memcpy 500 ms 500 ms", "calls::main 0 6.00 s", "calls::walk 0 2.00 s"]);
  await page.keyboard.press("u");
  await page.keyboard.press("g");
  await sum(page, "2.50 s in 2500 samples");
  await page.keyboard.press("u");
  await page.keyboard.press("Shift+H");
  await becomes(page, functions, ["aa! 3.00 s 3.00 s", "calls::walk 2.00 s 2.00 s", "calls::main 1.00 s 6.00 s"]);
  await quiet();
});

test("trees are opened by keys, and paths and recursion are transformed", async () => {
  const { page, quiet } = await open(browser, "view-calls.html", { hash: "#tab=tree&threads=1" });
  await becomes(page, tree, ["1 calls::main 3.00 s", "2 calls::walk 2.00 s", "2 json::parse 500 ms", "2 memcpy 500 ms"]);
  await page.locator(".table").focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  await becomes(page, tree, ["1 calls::main 3.00 s", "2 calls::walk 2.00 s", "3 calls::walk 1.00 s", "3 json::parse 1.00 s", "2 json::parse 500 ms", "2 memcpy 500 ms"]);
  const everything = [
    "1 calls::main 3.00 s", "2 calls::walk 2.00 s", "3 calls::walk 1.00 s", "4 calls::walk 1.00 s", "5 json::parse 1.00 s", "3 json::parse 1.00 s",
    "4 memcpy 1.00 s", "2 json::parse 500 ms", "3 memcpy 500 ms", "2 memcpy 500 ms",
  ];
  await page.keyboard.press("Home");
  await page.keyboard.press("*");
  await becomes(page, tree, everything);
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("r");
  await becomes(page, tree, ["1 calls::main 3.00 s", "2 calls::walk 2.00 s", "3 json::parse 2.00 s", "4 memcpy 1.00 s", "2 json::parse 500 ms", "3 memcpy 500 ms", "2 memcpy 500 ms"]);
  await page.keyboard.press("u");
  await becomes(page, tree, everything);
  // Only this path, then without the node itself.
  await page.locator(".list .row").nth(7).click();
  await page.keyboard.press("F");
  await becomes(page, tree, ["1 json::parse 500 ms"]);
  await page.keyboard.press("u");
  await becomes(page, tree, everything);
  await page.keyboard.press("M");
  await sum(page, "3.00 s in 3000 samples");
  await becomes(page, () => document.querySelectorAll(".list .row").length, 8);
  await page.keyboard.press("u");
  // From callees to callers; the path starts with the callee there.
  await page.keyboard.press("i");
  await becomes(page, tree, ["1 memcpy 2.00 s", "2 json::parse 1.50 s", "2 calls::main 500 ms", "1 json::parse 1.00 s"]);
  await page.locator(".list .row").nth(1).click();
  await page.keyboard.press("F");
  await sum(page, "1.50 s in 1500 samples");
  await chips(page, ["one ✕", "only callers of json::parse ✕", "selected: json::parse ✕"]);
  await quiet();
});

test("a name that is not there is said, and does nothing", async () => {
  const { page, quiet } = await open(browser, "view-calls.html", { hash: "#do=focus%7Cgone&do=drop%7Cmemcpy&thread=nobody" });
  await sum(page, "4.00 s in 4000 samples");
  await chips(page, ["thread nobody (it is not in this recording) ✕", "only gone (there is no function gone here) ✕", "without memcpy ✕"]);
  assert.equal(await page.locator(".chip.idle").count(), 2);
  await quiet();
});

test("a search is counted, and Enter makes it a step", async () => {
  const { page, quiet } = await open(browser, "view-calls.html");
  await sum(page, "6.00 s in 6000 samples");
  await page.keyboard.press("/");
  await page.keyboard.type("mem|walk$");
  await becomes(page, () => document.querySelector(".found").textContent, "2 functions, 3.00 s, 50.0 %");
  await sum(page, "6.00 s in 6000 samples");
  await page.keyboard.press("Enter");
  await sum(page, "3.00 s in 3000 samples");
  await chips(page, ["stacks with mem|walk$ ✕"]);
  await page.reload();
  await sum(page, "3.00 s in 3000 samples");
  await quiet();
});

test("menu, commands and keys do what they say", async () => {
  const { page, quiet } = await open(browser, "view-calls.html", { hash: "#tab=functions" });
  await becomes(page, () => document.querySelectorAll(".list .row").length, 5);
  await page.locator(".list .row", { hasText: "memcpy" }).click({ button: "right" });
  await page.getByRole("menuitem", { name: "Drop samples with this function" }).click();
  await sum(page, "4.00 s in 4000 samples");
  await page.keyboard.press("Control+k");
  await page.keyboard.type("remove last");
  await page.keyboard.press("Enter");
  await sum(page, "6.00 s in 6000 samples");
  await select(page, "calls::walk");
  await page.keyboard.press("Shift+F10");
  await page.getByRole("menu").waitFor();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Escape");
  assert.equal(await page.getByRole("menu").count(), 0);
  await page.keyboard.press("?");
  await page.getByRole("heading", { name: "Keys" }).waitFor();
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => !document.querySelector("dialog"));
  await page.keyboard.press("f");
  await sum(page, "2.00 s in 2000 samples");
  await quiet();
});

test("the flame graph is inverted, ordered and walked by keys", async () => {
  const { page, quiet } = await open(browser, "view-calls.html", { hash: "#threads=1" });
  await sum(page, "3.00 s in 3000 samples");
  const status = (expected) => becomes(page, () => document.querySelector(".flame .told").textContent, expected);
  await page.locator(".flame").focus();
  for (const key of ["ArrowUp", "ArrowUp", "ArrowRight"]) await page.keyboard.press(key);
  await status("json::parse: 500 ms, 16.7 % of the selection; own 0");
  await page.keyboard.press("Enter");
  await becomes(page, () => [...document.querySelectorAll(".crumbs button")].map((button) => button.textContent), ["all", "calls::main", "json::parse"]);
  await page.keyboard.press("Escape");
  await becomes(page, () => document.querySelectorAll(".crumbs").length, 0);
  await page.keyboard.press("Escape");
  await page.keyboard.press("i");
  await page.keyboard.press("ArrowUp");
  // By name: json::parse, then memcpy.
  await status("json::parse: 1.00 s, 33.3 % of the selection; own 1.00 s");
  await page.keyboard.press("Escape");
  await page.keyboard.press("o");
  await page.keyboard.press("ArrowUp");
  await status("memcpy: 2.00 s, 66.7 % of the selection; own 2.00 s");
  await quiet();
});

test("time order shows the calls of one thread", async () => {
  const { page, quiet } = await open(browser, "view-calls.html", { hash: "#tab=order&threads=1" });
  await page.getByRole("checkbox", { name: "as a table" }).check();
  const rows = () => [...document.querySelectorAll(".list .row")].map((row) => [...row.children].map((cell) => cell.textContent).join(" "));
  await becomes(page, rows, [
    "0 3.00 s 1 calls::main", "0 1.00 s 2 calls::walk", "0 1.00 s 3 calls::walk", "0 1.00 s 4 calls::walk", "0 1.00 s 5 json::parse",
    "1.00 s 500 ms 2 json::parse", "1.00 s 500 ms 3 memcpy", "1.50 s 500 ms 2 memcpy", "2.00 s 1.00 s 2 calls::walk", "2.00 s 1.00 s 3 json::parse",
    "2.00 s 1.00 s 4 memcpy",
  ]);
  await page.getByRole("checkbox", { name: "as a table" }).uncheck();
  await settled(page);
  const canvas = await page.locator(".order canvas").boundingBox();
  await page.mouse.move(canvas.x + canvas.width * 0.4, canvas.y + 20 + 1.5 * 19);
  await becomes(page, () => document.querySelector(".tip strong").textContent, "json::parse");
  await quiet();
});

test("two ranges are compared", async () => {
  const { page, quiet } = await open(browser, "view-calls.html", { hash: "#tab=functions&range=0-1000000000" });
  await sum(page, "2.00 s in 2000 samples");
  await page.keyboard.press("p");
  await becomes(page, () => location.hash.includes("pinned=0-1000000000") && !location.hash.includes("&range"), true);
  await page.evaluate(() => { location.hash = "tab=functions&pinned=0-1000000000&range=2000000000-3000000000"; });
  await sum(page, "2.00 s in 2000 samples");
  const rows = () => [...document.querySelectorAll(".list .row")].map((row) => {
    const cells = [...row.children].map((cell) => cell.textContent);
    return `${cells[4].replace(/a{9,}/, "aa")} ${cells[7]} ${cells[8]}`;
  }).map((row, i, all) => (i < 2 ? row : all.slice(2).sort()[i - 2]));
  await page.locator(".headings button", { hasText: "change" }).click();
  await becomes(page, rows, [
    "memcpy 0.0 % +50.0 % ± 2.2 %", "calls::main 100.0 % +0.0 % ± 0.0 %", "aa! 50.0 % +0.0 % ± 3.1 %", "calls::walk 50.0 % +0.0 % ± 3.1 %", "json::parse 50.0 % +0.0 % ± 3.1 %",
  ]);
  assert.equal(await page.locator(".changed").count(), 1);
  assert.equal(await page.locator(".noise").count(), 4);
  await quiet();
});

test("what is shown goes out of the page", async () => {
  const { page, quiet } = await open(browser, "view-calls.html", { hash: "#threads=1&do=drop%7Cmemcpy" });
  await sum(page, "1.00 s in 1000 samples");
  const save = (choice) => saved(page, () => page.selectOption(".save", choice));
  const [name, folded] = await save("stacks as folded text");
  assert.equal(name, "calls.folded");
  assert.equal(String(folded), "calls::main;calls::walk;calls::walk;calls::walk;json::parse 1000000000\n");
  const [, svg] = await save("flame graph as SVG");
  assert.match(String(svg), /^<svg [^]*<title>json::parse: 1\.00 s, 100\.0 %<\/title>[^]*<\/svg>\n$/);
  const [, json] = await save("what is shown as JSON");
  const { total_ns, selection, functions } = JSON.parse(String(json));
  assert.deepEqual([total_ns, selection.transforms, functions.length], [1e9, ["without memcpy"], 3]);
  const [, png] = await save("flame graph as PNG");
  // Its width, in twice the pixels.
  assert.deepEqual([String(png.subarray(1, 4)), png.readUInt32BE(16)], ["PNG", 2400]);
  assert.equal(await page.locator(".tabs code").textContent(), "stackglass flamegraph --threads 1");
  await quiet();
});

// Another seed of the steps: `SEED=8 cargo xtask test browser`.
const SEED = Number(process.env.SEED ?? 7);

test(`100 random steps are undone (SEED=${SEED})`, async () => {
  const { page, quiet } = await open(browser, "view-calls.html", { hash: "#tab=functions" });
  await sum(page, "6.00 s in 6000 samples");
  const first = await page.evaluate(() => [document.querySelector("main").textContent, location.hash]);
  const keys = ["f", "m", "d", "c", "C", "r", "i", "t", "o", "g", "h", "1", "2", "3"];
  let state = SEED;
  for (let i = 0; i < 100; i++) {
    state = (state * 1103515245 + 12345) % 2147483648;
    if (state % 3 === 0) {
      // What is counted meanwhile may leave no row there.
      const row = await page.evaluate(() => {
        const { x, y, width, height } = document.querySelector(".list .row")?.getBoundingClientRect() ?? {};
        return width > 0 ? [x + width / 2, y + height / 2] : null;
      });
      if (row) await page.mouse.click(...row);
    }
    await page.keyboard.press(keys[Math.floor(state / 7) % keys.length]);
  }
  for (let i = 0; i < 110; i++) await page.keyboard.press("u");
  await becomes(page, () => history.state?.step ?? 0, 0);
  await page.keyboard.press("Escape");
  await sum(page, "6.00 s in 6000 samples");
  await becomes(page, () => [document.querySelector("main").textContent, location.hash.replace(/&?func=[^&]*/g, "")], first);
  await quiet();
});

test("what is done right after an undo counts, while the browser is still on its way", async () => {
  const { page, quiet } = await open(browser, "view-calls.html");
  await sum(page, "6.00 s in 6000 samples");
  const press = (...keys) => page.evaluate((keys) => { for (const key of keys) dispatchEvent(new KeyboardEvent("keydown", { key })); }, keys);
  const shown = (hash) => becomes(page, () => location.hash.slice(1), hash);
  await press("i", "h", "u", "t");
  await shown("icicle=1&inverted=1");
  await press("u", "u", "o", "t");
  await shown("icicle=1&order=size");
  await press("u", "u", "u", "U", "U");
  await shown("icicle=1&order=size");
  // The browser has the same steps, and one for each address that somebody types.
  await page.goBack();
  await shown("order=size");
  await page.goForward();
  await shown("icicle=1&order=size");
  await page.evaluate(() => { location.hash = "tab=tree"; });
  await shown("tab=tree");
  await press("u");
  await shown("icicle=1&order=size");
  await press("u", "u");
  await shown("");
  await quiet();
});

test("nothing stands in the way of people with screen readers", async () => {
  const { page, quiet } = await open(browser, "view-calls.html", { bypassCSP: true });
  await sum(page, "6.00 s in 6000 samples");
  const check = (what) => isAccessible(page, what);
  for (const hash of ["", "tab=functions&func=json::parse", "tab=tree&do=focus|gone", "tab=order", "tab=facts", "tab=tree&inverted=1",
    "tab=functions&pinned=0-1000000000&range=1000000000-3000000000", "pinned=0-1000000000", "zoom=calls::main&zoom=calls::walk&icicle=1"]) {
    await follow(page, hash);
    await check(hash);
  }
  await page.keyboard.press("?");
  await check("keys");
  await page.keyboard.press("Escape");
  await page.keyboard.press("Control+k");
  await check("commands");
  await page.keyboard.press("Escape");
  await page.evaluate(() => { location.hash = "tab=functions&func=memcpy"; });
  await page.locator(".list .row", { hasText: "memcpy" }).click({ button: "right" });
  await check("menu");
  await quiet();
});
