// Allocations in the page of `stackglass view`, of a C program, a Rust program, python3 and git: every row is that of `stackglass allocs --json`,
// in the whole time and in parts of it, and every measure has its total. `cargo xtask test browser` records the programs.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";
import { launch, open } from "../../flame/browser/pages.mjs";
import { areAccessible, becomes } from "./checks.mjs";

const folder = path.resolve(process.env.BROWSER_TESTS ?? ".", "pages");
const PROGRAMS = ["c", "rust", "python", "git"];
const answersOf = (program) => JSON.parse(readFileSync(path.join(folder, `allocs-${program}.json`), "utf8"));

let browser;
before(async () => { browser = await launch(); });
after(() => browser.close());

// As the reports write them (crates/report/src/text/numbers.rs).
function withPrefix(value, units) {
  let unit;
  for (unit of units) {
    value /= 1000;
    if (value < 999.5) break;
  }
  return `${value.toFixed(value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2)} ${unit}`;
}
const bytes = (size) => (size < 1000 ? `${size} B` : withPrefix(size, ["kB", "MB", "GB"]));
const count = (number) => (number >= 100_000 ? withPrefix(number, ["k", "M"]) : number < 10_000 ? String(number) : `${Math.floor(number / 1000)} ${String(number % 1000).padStart(3, "0")}`);
const counted = (number, one) => `${count(number)} ${one}${number === 1 ? "" : "s"}`;

// All rows by name: exact figures, which are in the titles of the cells. Only rows in sight exist, so the list is scrolled.
async function rowsOf(page) {
  return page.evaluate(async () => {
    const table = document.querySelector(".table.allocations"), rows = new Map();
    const number = (cell) => parseInt(cell.firstElementChild.title, 10);
    for (let top = 0; ; top += table.clientHeight) {
      table.scrollTop = top;
      await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
      for (const row of table.querySelectorAll(".list .row")) {
        const cells = [...row.children];
        const [count, bytes, live_bytes, live_count, peak_bytes] = cells.slice(1, 6).map(number);
        rows.set(row.getAttribute("aria-rowindex"), {
          name: cells[9].firstElementChild.title, count, bytes, live_bytes, live_count, peak_bytes, temporary_count: number(cells[6]), sites: cells[8].textContent.replace(" ", ""),
        });
      }
      if (top > table.scrollHeight) break;
    }
    return { rows: [...rows.values()], count: Number(table.getAttribute("aria-rowcount")) - 1 };
  });
}

const byName = (a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);

for (const program of PROGRAMS) {
  test(`rows are those of \`stackglass allocs\`: ${program}`, async () => {
    const { page, quiet } = await open(browser, `allocs-${program}.html`, { viewport: { width: 1280, height: 2000 } });
    let seen = 0;
    for (const { by, range, answer } of answersOf(program)) {
      const processes = await page.evaluate(() => JSON.parse(document.getElementById("head").textContent).processes.length);
      if (by === "process" && processes === 1) continue;
      await page.evaluate((hash) => { location.hash = hash; }, `tab=allocations&by=${by}${range ? `&range=${range.join("-")}` : ""}`);
      const { total } = answer;
      const alive = total.live_count === 0 ? "nothing alive" : `${bytes(total.live_bytes)} in ${counted(total.live_count, "block")} alive`;
      const share = (part) => (total.count ? `${((100 * part) / total.count).toFixed(1)} %` : null);
      const typed = total.count ? `${(100 * answer.typed_share).toFixed(1)} %` : "100 %";
      const summary = `${bytes(total.bytes)} in ${counted(total.count, "allocation")}; peak ${bytes(total.peak_bytes)}; at end ${alive}; ${share(total.temporary_count) ?? "0 %"} temporary; ${typed} with a type`;
      await becomes(page, () => document.querySelector(".heapbar .dim").textContent, summary, `${by} ${range}`);
      await becomes(page, () => document.querySelectorAll('.lists [aria-pressed="true"]').length, 1);
      await becomes(page, () => Number(document.querySelector(".table.allocations").getAttribute("aria-rowcount")) - 1, answer.rows.length, `${by} ${range}`);
      await becomes(page, () => [...document.querySelectorAll(".column > .note")].filter(({ textContent }) => textContent.startsWith("Counted from")).map(({ textContent }) => textContent),
        range ? [`Counted from ${(answer.range.from / 1e9).toFixed(3)} s to ${(answer.range.to / 1e9).toFixed(3)} s, ${answer.range.slices} ${answer.range.slices === 1 ? "slice" : "slices"} of time`] : []);
      const { rows } = await rowsOf(page);
      const expected = answer.rows.map((row) => ({
        name: row[by], count: row.count, bytes: row.bytes, live_bytes: row.live_bytes, live_count: row.live_count, peak_bytes: row.peak_bytes, temporary_count: row.temporary_count, sites: String(row.sites),
      }));
      assert.deepEqual(rows.sort(byName), expected.sort(byName), `${by} ${range}`);
      seen += rows.length;
    }
    assert.ok(seen > 10, `${seen} rows`);
    // The memory above the lanes ends with what is alive at the end.
    await becomes(page, () => [...document.querySelectorAll(".memory tbody tr")].at(-1).lastElementChild.textContent, bytes(answersOf(program)[0].answer.total.live_bytes));
    await quiet();
  });

  test(`notes are those of the report: ${program}`, async () => {
    const { page, quiet } = await open(browser, `allocs-${program}.html`, { hash: "#tab=allocations&measure=bytes" });
    const report = execFileSync(process.env.STACKGLASS, ["allocs", "--metric", "leaked-bytes", path.join(folder, `allocs-${program}.glass`)], { encoding: "utf8" });
    const said = report.slice(report.indexOf("\nnote: ") + 1).split(/^note: /m).slice(1).map((note) => note.replace(/\s+/g, " ").trim());
    const shown = () => page.locator(".column > .note").evaluateAll((all) => all.map(({ textContent }) => textContent));
    const { allocations, remarks } = await page.evaluate(() => JSON.parse(document.getElementById("head").textContent));
    // What is said of the whole recording is a fact, and is in that tab.
    const expected = said.filter((note) => !remarks.includes(note)).map((note) => `${note[0].toUpperCase()}${note.slice(1)}.`);
    assert.equal(expected.length, allocations.notes.length + allocations.leakNotes.length);
    await becomes(page, () => document.querySelectorAll(".column > .note").length > 0 || document.querySelector(".list .row") !== null, true);
    const without = (await shown()).filter((note) => !note.startsWith("In no total"));
    await page.evaluate(() => { location.hash = "tab=allocations&measure=leaked-bytes"; });
    await becomes(page, () => document.querySelector("header select").value, "leaked-bytes");
    const all = (await shown()).filter((note) => !note.startsWith("In no total"));
    assert.deepEqual(all.toSorted(), expected.toSorted());
    assert.equal(without.length, allocations.notes.length);
    await quiet();
  });

  test(`every measure has its total, in every panel: ${program}`, async () => {
    const { page, quiet } = await open(browser, `allocs-${program}.html`);
    const measures = [
      ["bytes", ({ bytes: value, count: of }) => `${bytes(value)} in ${counted(of, "allocation")}`], ["count", ({ count: of }) => counted(of, "allocation")],
      ["live-bytes", ({ live_bytes, live_count }) => `${bytes(live_bytes)} in ${counted(live_count, "block")}`], ["live-count", ({ live_count }) => counted(live_count, "block")],
      ["leaked-bytes", ({ leaked_bytes, leaked_count }) => `${bytes(leaked_bytes)} in ${counted(leaked_count, "block")}`], ["temporary", ({ temporary_count }) => counted(temporary_count, "allocation")],
    ];
    for (const { range, answer: { total } } of answersOf(program).filter(({ by }) => by === "type")) {
      for (const [measure, text] of measures) {
        await page.evaluate((hash) => { location.hash = hash; }, `tab=functions&measure=${measure}${range ? `&range=${range.join("-")}` : ""}`);
        const isUnknown = range && measure === "leaked-bytes";
        await becomes(page, () => document.querySelector(".sum").textContent, isUnknown ? "what has leaked is known at the end only: it needs the whole time" : text(total), `${measure} ${range}`);
      }
      await page.evaluate((hash) => { location.hash = hash; }, `measure=peak-bytes${range ? `&range=${range.join("-")}` : ""}`);
      await page.waitForFunction((text) => document.querySelector(".sum").textContent.startsWith(text), `${bytes(total.peak_bytes)} in `);
    }
    await quiet();
  });
}

test("a click on a type counts it alone, one on a site selects its function, and both are undone", async () => {
  const { page, quiet } = await open(browser, "allocs-rust.html", { hash: "#tab=allocations&measure=bytes" });
  const [, { answer }] = answersOf("rust"), types = answersOf("rust")[0].answer;
  await page.locator(".list .row").first().click();
  await becomes(page, () => document.querySelector(".chips").textContent, `only type ${types.rows[0].type} ✕`);
  await becomes(page, () => document.querySelector(".sum").textContent, `${bytes(types.rows[0].bytes)} in ${counted(types.rows[0].count, "allocation")}`);
  const file = await page.evaluate(() => JSON.parse(document.getElementById("head").textContent).file);
  assert.equal(path.basename(file), "allocs-rust.glass");
  assert.equal(await page.locator(".tabs code").textContent(), `stackglass allocs ${file} --by type --metric bytes --type '${types.rows[0].type}'`);
  await page.keyboard.press("u");
  await becomes(page, () => document.querySelector(".sum").textContent, `${bytes(answer.total.bytes)} in ${counted(answer.total.count, "allocation")}`);
  await page.getByRole("button", { name: "By site" }).click();
  await page.waitForFunction(() => document.querySelector(".table.allocations .headings")?.textContent.includes("site ("));
  await page.locator(".list .row").first().click();
  await page.waitForFunction(() => document.querySelector(".chips").textContent.startsWith("selected: "));
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelector(".sandwich .of"));
  await quiet();
});

test("the table and the measures are reached by keys alone", async () => {
  const { page, quiet } = await open(browser, "allocs-c.html", { hash: "#tab=allocations&by=function" });
  await page.locator(".table").focus();
  await page.keyboard.press("ArrowDown");
  await becomes(page, () => document.querySelector('.row[aria-selected="true"] > :last-child').textContent, "second");
  await becomes(page, () => document.querySelector(".chips").textContent, "selected: second ✕");
  await page.keyboard.press("/");
  await page.keyboard.type("firs");
  await becomes(page, () => [...document.querySelectorAll(".list .row > :last-child")].map(({ textContent }) => textContent), ["first"]);
  await quiet();
});

test("nothing stands in the way of people with screen readers", () => areAccessible(browser, "allocs-rust.html", ["tab=allocations", "tab=allocations&by=site&measure=live-bytes", "tab=allocations&allocated=Node&measure=bytes", "tab=allocations&range=0-400000000", "tab=allocations&range=1-2", "tab=functions&measure=bytes", "measure=peak-bytes"]));
