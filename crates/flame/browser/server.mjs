// One Chromium for all test files: prints its address, and ends with its input.

import { launchServer } from "./pages.mjs";

const server = await launchServer();
console.log(server.wsEndpoint());
process.stdin.resume().once("end", () => server.close());
