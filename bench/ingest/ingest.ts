// Contest 1: verify, commit durably, answer 204. One server process each, 64 connections, every event with its own id.
import type { Bench } from "../bench.ts";
import { figureOf, ratioOf, runContest, type Contestant, type Rounds } from "../contest.ts";
import { versionOf } from "../nodes.ts";
import { startProgram } from "../programs.ts";
import { tableOf } from "../tables.ts";
import { DUPLICATES, DUPLICATES_SHARE, reportDuplicates } from "./duplicates.ts";
import { measureQuarter } from "./quarter.ts";
import {
  isOurs,
  LIMIT,
  named,
  ON_MACHINE,
  PEERS,
  peerSettings,
  QUIET,
  REDIS,
  SERVER_NAMES,
  startServers,
  UKEMI,
  type Listening,
} from "./servers.ts";
import { shootWith, type Shoot } from "./shoot.ts";

export const SECONDS = { run: 3, warmUp: 2 };
export const SECONDS_QUICK = { run: 0.8, warmUp: 0.4 };
/** More than any server here answers in a second. */
const PER_SECOND_MOST = 45_000;
/** Requests are made ready for a server that is so much faster than it was cold. */
const ROOM = 4;
const PER_SECOND_LEAST = 10_000;

export async function measureIngest(bench: Bench): Promise<void> {
  const { run: seconds, warmUp: warmUpSeconds } = bench.quick ? SECONDS_QUICK : SECONDS;
  const loader = await startProgram("./ingest/load.ts", { node: bench.node });
  const shoot = shootWith(loader);
  const { servers, stop } = await startServers(bench);
  try {
    const most = await warmUp(servers, shoot, warmUpSeconds);
    const p99 = new Map<string, number[]>();
    const contestant = (name: string, server: Listening, duplicates = 0): Contestant => ({
      name,
      async run() {
        const loaded = await shoot(server, { seconds, perSecond: most(server), duplicates });
        p99.set(name, [...(p99.get(name) ?? []), loaded.p99]);
        return loaded.perSecond;
      },
    });
    const ukemi = named(servers, UKEMI);
    const figures = await runContest(
      [
        ...servers.map((server) => contestant(server.name, server)),
        contestant(DUPLICATES, ukemi, DUPLICATES_SHARE),
      ],
      bench,
    );
    await reportIngest(bench, servers, { figures, p99 });
    judgeIngest(bench, { figures, p99 });
    await reportDuplicates(bench, figures, ukemi, { shoot, perSecond: most(ukemi) });
    await measureQuarter(bench, servers, { shoot, seconds, rate: figureOf(figures, UKEMI).median / 4 });
  } finally {
    await stop();
    await loader.stop();
  }
}

/** Lets each compile and connect, and so learns how many requests must be made ready for it. */
export async function warmUp(
  servers: readonly Listening[],
  shoot: Shoot,
  seconds: number,
): Promise<(server: Listening) => number> {
  const reached = new Map<string, number>();
  for (const server of servers) {
    const shot = { seconds, perSecond: PER_SECOND_MOST };
    reached.set(server.name, (await shoot(server, shot)).perSecond);
  }
  return ({ name }) => Math.min(PER_SECOND_MOST, Math.max(PER_SECOND_LEAST, reached.get(name)! * ROOM));
}

interface Ran {
  readonly figures: Rounds;
  readonly p99: Rounds;
}

async function reportIngest(bench: Bench, servers: readonly Listening[], ran: Ran): Promise<void> {
  const rows = SERVER_NAMES.map(async (name) => {
    const server = servers.find((one) => one.name === name);
    if (!server) return { name, figure: undefined, ratio: undefined };
    const version = name === ON_MACHINE && bench.machineNode ? `${versionOf(bench.machineNode)}; ` : "";
    return {
      name,
      figure: figureOf(ran.figures, name),
      ratio: name === UKEMI ? undefined : ratioOf(ran.figures, UKEMI, name),
      memory: isOurs(name) ? await server.program.memory() : undefined,
      notes: `${version}${slowest(ran, name)}`,
    };
  });
  bench.report(
    tableOf({ title: "Ingest", unit: "events/s", rows: await Promise.all(rows), remarks: peerSettings() }),
  );
}

function slowest({ p99 }: Ran, name: string): string {
  const ms = `p99 ${figureOf(p99, name).median.toFixed(1)} ms`;
  return name === UKEMI ? ms : `${ms}, ours ÷ theirs ${ratioOf(p99, UKEMI, name).median.toFixed(2)}`;
}

function judgeIngest({ judge }: Bench, { figures, p99 }: Ran): void {
  const between = (ours: string, name: string) =>
    figures.has(name) ? ratioOf(figures, ours, name).median : undefined;
  const ratio = (name: string) => between(UKEMI, name);
  const toBest = (ours: string) => Math.min(...PEERS.map((name) => between(ours, name)!));
  judge({ bar: "ingestLimit", measured: ratio(LIMIT) });
  judge({ bar: "ingestPeers", measured: toBest(UKEMI), byHand: toBest(LIMIT) });
  judge({ bar: "ingestRedis", measured: ratio(REDIS), byHand: between(LIMIT, REDIS) });
  judge({ bar: "ingestSlowest", measured: ratioOf(p99, UKEMI, LIMIT).median });
  judge({ bar: "ingestLogs", measured: ratio(QUIET) });
}
