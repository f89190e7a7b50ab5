// `npm start`: installs what is missing, builds, and runs everything on this machine.
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { ensureBuilt } from "./build.mjs";
import { ensureInstalled } from "./install.mjs";

process.chdir(fileURLToPath(new URL("..", import.meta.url)));
ensureInstalled("root");
ensureBuilt();

const server = spawn(process.execPath, ["dist/cli/bin.js", "dev", ...process.argv.slice(2)], {
  stdio: "inherit",
});
// Ctrl-C reaches the server by itself, from the terminal; this process only waits for it. A signal sent to npm is passed on.
process.on("SIGINT", () => {});
process.on("SIGTERM", () => server.kill("SIGTERM"));
server.on("exit", (code, signal) => process.exit(signal ? 1 : (code ?? 0)));
