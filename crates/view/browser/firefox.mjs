// Firefox by WebDriver BiDi (https://w3c.github.io/webdriver-bidi/): what tests need of it. Playwright has a Firefox of its own only.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";

const { ws: WebSocket } = createRequire(path.join(path.resolve(process.env.BROWSER_TESTS ?? "."), "package.json"))("playwright-core/lib/utilsBundle");

// Starts it, and opens a page; `close()` ends it. `preload`: a function that runs in the page before its scripts. `wait`: for what.
export async function openFirefox(url, { width = 1280, height = 800, preload, wait = "complete" } = {}) {
  const profile = mkdtempSync(path.join(tmpdir(), "stackglass-firefox-"));
  const firefox = spawn(process.env.FIREFOX, ["--headless", "--no-remote", "--profile", profile, "--remote-debugging-port=0", "about:blank"], {
    // As root, it refuses the home of somebody else.
    env: { ...process.env, HOME: profile }, stdio: ["ignore", "ignore", "pipe"],
  });
  const ended = new Promise((resolve) => { firefox.once("exit", resolve); });
  const close = async () => {
    firefox.kill();
    await ended;
    rmSync(profile, { recursive: true, force: true });
  };
  try {
    return { ...await connect(firefox, url, { width, height }, preload, wait), close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function connect(firefox, url, viewport, preload, wait) {
  const address = await new Promise((resolve, reject) => {
    let text = "";
    firefox.stderr.on("data", (part) => {
      text += part;
      const found = /WebDriver BiDi listening on (\S+)/.exec(text);
      if (found) resolve(found[1]);
    });
    firefox.once("exit", () => reject(new Error(`Firefox ended: ${text}`)));
  });
  const socket = new WebSocket(`${address}/session`);
  await new Promise((resolve, reject) => {
    socket.onopen = resolve;
    socket.onerror = () => reject(new Error("no connection to Firefox"));
  });
  const pending = new Map(), complaints = [];
  let last = 0;
  socket.onmessage = ({ data }) => {
    const { id, type, result, method, params, error, message } = JSON.parse(data);
    if (method === "log.entryAdded" && params.level === "error") complaints.push(params.text);
    const { resolve, reject } = pending.get(id) ?? {};
    pending.delete(id);
    if (type === "success") resolve(result);
    else reject?.(new Error(`${error}: ${message}`));
  };
  const send = (method, params) => new Promise((resolve, reject) => {
    pending.set(++last, { resolve, reject });
    socket.send(JSON.stringify({ id: last, method, params }));
  });
  await send("session.new", { capabilities: {} });
  await send("session.subscribe", { events: ["log.entryAdded"] });
  const { contexts: [{ context }] } = await send("browsingContext.getTree", {});
  await send("browsingContext.setViewport", { context, viewport });
  if (preload) await send("script.addPreloadScript", { functionDeclaration: String(preload) });
  await send("browsingContext.navigate", { context, url, wait });
  return {
    complaints,
    // The value of a function in the page.
    async evaluate(of, ...values) {
      const declaration = `async () => JSON.stringify(await (${of})(...${JSON.stringify(values)}))`;
      const { type, result, exceptionDetails } = await send("script.callFunction", { functionDeclaration: declaration, awaitPromise: true, target: { context } });
      if (type !== "success") throw new Error(exceptionDetails.text);
      return result.value === undefined ? undefined : JSON.parse(result.value);
    },
    // `key`: a letter, or a name of KEYS.
    async press(key) {
      const value = KEYS[key] ?? key;
      await send("input.performActions", { context, actions: [{ type: "key", id: "keys", actions: [{ type: "keyDown", value }, { type: "keyUp", value }] }] });
    },
  };
}

// https://w3c.github.io/webdriver/#keyboard-actions
const KEYS = { ArrowLeft: "\uE012", ArrowUp: "\uE013", ArrowRight: "\uE014", ArrowDown: "\uE015", Home: "\uE011", End: "\uE010", Enter: "\uE007", Escape: "\uE00C" };
