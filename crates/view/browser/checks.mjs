// What the browser tests of the page share: waiting for what it shows, and accessibility.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { isDeepStrictEqual } from "node:util";
import { follow, open } from "../../flame/browser/pages.mjs";

const axe = readFileSync(createRequire(path.join(path.resolve(process.env.BROWSER_TESTS ?? "."), "package.json")).resolve("axe-core/axe.min.js"), "utf8");

// How long a page may take that does what it should, ms: Playwright, too, waits so long.
export const LONGEST = 30_000;

// Once an expression of the page has this value.
export async function becomes(page, read, expected, message) {
  let is;
  for (const end = Date.now() + LONGEST; Date.now() < end; await page.waitForTimeout(30)) {
    is = await page.evaluate(read).catch((error) => String(error));
    if (isDeepStrictEqual(is, expected)) return;
  }
  assert.deepEqual(is, expected, message);
}

// Checks the page with axe-core, once it is there. `what`: the name of what is shown.
export async function isAccessible(page, what) {
  if (!await page.evaluate(() => "axe" in window)) await page.evaluate(axe);
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
    assert.deepEqual(violations.map(({ id, nodes }) => [`${what} (${colorScheme})`, id, ...nodes.map(({ html, failureSummary }) => `${html.slice(0, 200)} ${failureSummary}`)]), []);
  }
}

// The same for addresses of a page, on narrow and wide screens, where nothing is cut off.
export async function areAccessible(browser, name, hashes) {
  const { page, quiet } = await open(browser, name, { bypassCSP: true });
  for (const width of [390, 1280]) {
    await page.setViewportSize({ width, height: 800 });
    for (const hash of hashes) {
      await follow(page, hash);
      await isAccessible(page, `${hash}, ${width} pixels`);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${hash} fits into ${width} pixels`);
    }
  }
  await quiet();
}
