// The page of `stackglass view` while its worker is busy. Time is measured: no other test runs meanwhile.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch, open } from "../../flame/browser/pages.mjs";
import { becomes } from "./checks.mjs";

let browser;
before(async () => { browser = await launch(); });
after(() => browser.close());

const sum = (page, expected) => becomes(page, () => document.querySelector(".sum").textContent, expected);

test("a hostile expression is stopped, and the page answers meanwhile", async () => {
  const { page, quiet } = await open(browser, "view-calls.html", { hash: "#tab=functions" });
  await sum(page, "6.00 s in 6000 samples");
  const start = Date.now();
  await page.locator("header input").fill("(a+)+$");
  await becomes(page, () => document.querySelector(".found").textContent, "searching …");
  await page.selectOption("select", "wall");
  await sum(page, "6.00 s in 6000 samples");
  await page.locator(".headings button", { hasText: "total" }).click();
  await becomes(page, () => document.querySelector(".list .row").children[4].textContent, "calls::main");
  await page.waitForFunction(() => document.querySelector(".found").textContent.startsWith("stopped"));
  assert.ok(Date.now() - start < 8000, "stopped in time");
  // The next one is searched.
  await page.locator("header input").fill("walk");
  await becomes(page, () => document.querySelector(".found").textContent, "1 function, 2.00 s, 33.3 %");
  await quiet();
});
