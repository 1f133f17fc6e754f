// The command that the page of `stackglass view` prints, run: its figures are those of the page, to the nanosecond. The recording is of a
// real program, made here.

import assert from "node:assert/strict";
import { execFileSync, execSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { launch, open, saved } from "../../flame/browser/pages.mjs";

// Two processes compute, read a pipe and sleep.
const PROGRAM = `
  spin() {
    for round in 1 2 3 4 5; do
      for i in {1..15000}; do :; done
      echo "$round" | sort > /dev/null
      sleep 0.01
    done
  }
  spin & spin; wait
`;

// `length`: of the recording, ns.
let browser, folder, length;
before(async () => {
  browser = await launch();
  folder = mkdtempSync(path.join(tmpdir(), "view commands "));
  execFileSync(process.env.STACKGLASS, ["record", "-q", "-o", "a b.glass", "--", "bash", "-c", PROGRAM], { cwd: folder });
  execFileSync(process.env.STACKGLASS, ["view", "a b.glass", "-o", "page.html"], { cwd: folder, stdio: "ignore" });
  length = JSON.parse(/id="head">([^<]*)</.exec(readFileSync(path.join(folder, "page.html"), "utf8"))[1]).wall;
});
after(async () => {
  await browser.close();
  rmSync(folder, { recursive: true, force: true });
});

// What the page counts for an address: as it is saved, and what the command prints.
async function both(hash) {
  const { page, quiet } = await open(browser, path.join(folder, "page.html"), { hash });
  await page.waitForFunction(() => document.querySelector(".sum").textContent !== "");
  const command = await page.locator(".tabs code").textContent();
  const [, bytes] = await saved(page, () => page.selectOption(".save", "what is shown as JSON"));
  const shown = JSON.parse(String(bytes));
  await quiet();
  return { command, shown };
}

// Runs a command that the page printed.
const run = (command) => execSync(command.replace(/^stackglass/, `'${process.env.STACKGLASS}'`), { cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });

// The total times of functions whose name is the only one.
function byName(rows, name, total) {
  const times = new Map();
  for (const row of rows) times.set(row[name], times.has(row[name]) ? null : row[total]);
  return times;
}

test("functions have the times that the command prints", async () => {
  const wall = (await both("#tab=functions&measure=wall")).shown;
  assert.ok(wall.total_ns > 1e8, `the program took ${wall.total_ns} ns`);
  const at = (share) => Math.round(share * length);
  const parts = ["", "&measure=asleep", `&range=${at(0.5)}-${at(0.9)}`, `&range=${at(0.6)}-${at(0.6) + 1234567}&measure=wall`, `&threads=1&range=0-${at(0.7)}`];
  for (const part of parts) {
    const { command, shown } = await both(`#tab=functions${part}`);
    assert.match(command, /^stackglass print 'a b.glass' --format flat --sortedby overhead/);
    assert.ok(!command.includes("#"), `${command} leaves nothing out`);
    run(command);
    // The same selection, in ns.
    const printed = JSON.parse(run(command.replace("print", "hot").replace("--format flat --sortedby overhead", "--json")));
    assert.deepEqual([printed.total, printed.samples], [shown.total_ns, shown.samples], command);
    const known = byName(shown.functions, "name", "total_ns");
    // `hot` gives functions of the C library what they call inside of it.
    const others = printed.rows.filter(({ module }) => !module?.startsWith("libc."));
    const rows = [...byName(others, "function", "total")].filter(([name, time]) => time && known.get(name));
    assert.ok(rows.length > others.length / 2, `${rows.length} of ${others.length} functions of ${command}`);
    for (const [name, time] of rows) assert.equal(known.get(name), time, `${name} of ${command}`);
  }
});

test("the other tabs print commands that run", async () => {
  const most = (await both("#tab=functions")).shown.functions.toSorted((a, b) => b.own_ns - a.own_ns)[0].name;
  const { command: callers } = await both(`#tab=functions&func=${encodeURIComponent(most)}`);
  assert.match(callers, /^stackglass callers .* 'a b.glass'/);
  assert.ok(run(callers).length > 0);
  const range = `range=0-${length}`;
  const { command: tree } = await both(`#tab=tree&${range}`);
  assert.match(run(tree), /Overhead[^]*main/);
  run((await both(`#${range}`)).command);
  assert.match(readFileSync(path.join(folder, "a b.html"), "utf8"), /^<!doctype html>/i);
});
