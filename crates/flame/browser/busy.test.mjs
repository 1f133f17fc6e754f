// The page while its worker is busy. Frames are counted: no other test runs meanwhile.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { found, launch, open } from "./pages.mjs";

let browser;
before(async () => { browser = await launch(); });
after(() => browser.close());

test("an expression that takes for ever does not hold up the page, also from a link", async () => {
  const { page, quiet } = await open(browser, "hostile.html", { settles: false, hash: "#regex=1&search=(long(::)%3F|long::long(::)%3F)*%24x" });
  const frames = await page.evaluate(() => new Promise((resolve) => {
    let count = 0;
    const start = performance.now(), frame = (now) => (now - start > 500 ? resolve(count) : requestAnimationFrame(frame, count++));
    requestAnimationFrame(frame);
  }));
  assert.ok(frames > 5, `${frames} frames in half a second`);
  assert.match(await found(page), /takes more than 1.5 s/);
  await page.fill("#query", "backw.rds");
  assert.equal(await found(page), "100 % matched", "and the next one is searched");
  await quiet();
});
