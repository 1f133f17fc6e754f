// Sources and instructions in the page of `stackglass view`: lines with the times that `annotate` gives them. The recording, and what
// `annotate --json` says of it, are made by crates/view/examples/view-sources.rs.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";
import { launch, open, saved } from "../../flame/browser/pages.mjs";
import { areAccessible, becomes, LONGEST } from "./checks.mjs";

let browser;
before(async () => { browser = await launch(); });
after(() => browser.close());

const annotated = (name) => JSON.parse(readFileSync(path.join(process.env.BROWSER_TESTS ?? ".", "pages", `view-sources-${name}.json`), "utf8"));
const heading = () => document.querySelector('[role="grid"]')?.getAttribute("aria-label");
const activeRow = (label) => `[...document.querySelectorAll('[aria-label^="${label}"] .row[aria-selected="true"] [role="gridcell"]')].map((cell) => cell.textContent)`;

// What is shown, as it is saved.
async function asSaved(page) {
  const [, bytes] = await saved(page, () => page.selectOption(".save", { label: "what is shown as JSON" }));
  return JSON.parse(String(bytes));
}

test("each line of each file has the times of annotate, to the nanosecond, for parts of the time and all kinds of it", async () => {
  const { page, quiet } = await open(browser, "view-sources.html");
  for (const [part, range] of [["all", ""], ["part", "&range=333000000-1777000000"]]) {
    for (const [measure, states] of [["cpu", "cpu"], ["asleep", "asleep"], ["wall", "wall"]]) {
      const { files } = annotated(`${part}-${states}`);
      assert.ok(files.length >= 3, "main.rs, sum.rs, and the standard library");
      for (const { file, lines } of files) {
        await page.evaluate((hash) => { location.hash = hash; }, `tab=source&measure=${measure}${range}&source=${encodeURIComponent(file)}`);
        let shown;
        for (const end = Date.now() + LONGEST; Date.now() < end && !(shown?.source?.file === file && shown.selection.measure === measure && !shown.selection.range_ns === !range);) shown = await asSaved(page);
        const of = (lines, own, total) => lines.filter((line) => line[total] > 0 || line.own_samples > 0 || line.total_samples > 0)
          .map((line) => [line.line, line[own], line[total], line.own_samples, line.total_samples]);
        assert.deepEqual(of(shown.source.lines, "own_ns", "total_ns"), of(lines, "own", "total"), `${file} ${part} ${measure}`);
      }
    }
  }
  await quiet();
});

test("the hottest line and its hottest instruction: one action", async () => {
  const { page, quiet } = await open(browser, "view-sources.html");
  const { files } = annotated("all-cpu");
  const hottest = files.find(({ file }) => file.endsWith("sum.rs")).lines.reduce((best, line) => (line.own > best.own ? line : best));
  await page.getByRole("tab", { name: "Source" }).click();
  await becomes(page, heading, "Lines of /home/me/app/src/sum.rs");
  await becomes(page, `${activeRow("Lines of")}[4]`, String(hottest.line));
  const { instructions } = await asSaved(page);
  const of = instructions.filter(({ line }) => line === hottest.line);
  const most = (of.length ? of : instructions).reduce((best, one) => (one.own_ns > best.own_ns ? one : best));
  await becomes(page, `${activeRow("Instructions of")}.slice(2)`, [most.address.toString(16), most.instruction]);
  // Each sample is at its own address: the sums are those of the leaves.
  assert.deepEqual(instructions.map(({ address }) => address), [0x100c, 0x1010, 0x1014, 0x1018]);
  await quiet();
});

test("a function that is chosen anywhere is shown at its hottest line", async () => {
  const { page, quiet } = await open(browser, "view-sources.html", { hash: "#tab=functions" });
  await page.locator(".list .row", { hasText: "app::run" }).first().click();
  await page.keyboard.press("l");
  await becomes(page, heading, "Lines of /home/me/app/src/main.rs");
  const line = Number((await page.evaluate(activeRow("Lines of")))[4]);
  assert.ok([10, 12].includes(line), `${line}`);
  assert.match(await page.locator('[role="note"]').textContent(), /^changed since the recording: lines may have moved · \/home\/me\/app\/src\/main\.rs$/);
  // From there to the next ones, by the key.
  await page.keyboard.press("j");
  await becomes(page, `${activeRow("Lines of")}.length`, 6);
  // A line that the file does not have.
  await page.selectOption('select[aria-label="Source file"]', { label: await page.locator("option", { hasText: "sum.rs" }).first().textContent() });
  await becomes(page, heading, "Lines of /home/me/app/src/sum.rs");
  await page.locator('[aria-label^="Lines of"]').focus();
  await page.keyboard.press("End");
  await becomes(page, `${activeRow("Lines of")}.slice(4)`, ["99", "(the file has no such line: it is not that of the recording)"]);
  await quiet();
});

test("threads and transforms say which stacks count", async () => {
  const { page, quiet } = await open(browser, "view-sources.html", { hash: "#tab=source&do=drop%7Cmemcpy" });
  await becomes(page, heading, "Lines of /home/me/app/src/sum.rs");
  const without = await asSaved(page);
  await page.evaluate(() => { location.hash = "tab=source"; });
  let all = without;
  for (const end = Date.now() + LONGEST; Date.now() < end && all.total_ns === without.total_ns;) all = await asSaved(page);
  assert.ok(without.total_ns < all.total_ns);
  // All of sum.rs is below none of memcpy; main.rs calls it.
  assert.deepEqual(without.source, all.source);
  await quiet();
});

test("sources are text, and pages without them say what to do", async () => {
  const { page, quiet } = await open(browser, "view-sources.html", { hash: "#tab=source&source=%2Fhome%2Fme%2Fapp%2Fsrc%2Fsum.rs" });
  await becomes(page, heading, "Lines of /home/me/app/src/sum.rs");
  const texts = await page.locator('[aria-label^="Lines of"] code').allTextContents();
  assert.deepEqual(texts.slice(0, 3), ["/// Adds </script><b>up</b>.", "pub fn sum(all: &[u64]) -> u64 {", "    let mut sum = 0; /* not"]);
  await page.evaluate(() => { location.hash = "tab=source&source=%2Frustc%2F0123%2Flibrary%2Fcore%2Fsrc%2Fslice%2Fiter.rs"; });
  await becomes(page, () => document.querySelector('[role="note"]').textContent, "/rustc/0123/library/core/src/slice/iter.rs was not found when this page was made");
  await becomes(page, () => [...document.querySelectorAll('[aria-label^="Lines of"] .list .row')].map((row) => row.lastChild.textContent), ["[core::slice::iter::next]"]);
  await quiet();
  const none = await open(browser, "view-sources-none.html", { hash: "#tab=source" });
  await becomes(none.page, () => document.querySelector('[role="note"]')?.textContent, "/home/me/app/src/sum.rs: the text is not in this page; `stackglass view --with-source` writes it");
  assert.match(await none.page.locator(".assembly").textContent(), /`stackglass view --with-asm` writes them/);
  await none.quiet();
});

test("nothing stands in the way of people with screen readers", () => areAccessible(browser, "view-sources.html", ["", "&source=%2Fhome%2Fme%2Fapp%2Fsrc%2Fmain.rs", "&func=memcpy"].map((hash) => `tab=source${hash}`)));
