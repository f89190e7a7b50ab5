// Contest 1: verify, commit durably, answer 204. One server process each, 64 connections, every event with its own id.
import { figureOf, ratioOf, runContest, type Contestant, type Rounds } from "../contest.ts";
import { startProgram } from "../programs.ts";
import type { Bench } from "../run.ts";
import { DUPLICATES, DUPLICATES_SHARE, reportDuplicates } from "./duplicates.ts";
import { measureQuarter } from "./quarter.ts";
import { named, peerSettings, SERVER_NAMES, startServers, UKEMI, type Listening } from "./servers.ts";
import { shootWith, type Shoot } from "./shoot.ts";

const SECONDS = { run: 3, warmUp: 2 };
const SECONDS_QUICK = { run: 1, warmUp: 0.5 };
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
    reportIngest(bench, figures, p99);
    await reportDuplicates(bench, figures, ukemi, { shoot, perSecond: most(ukemi) });
    await measureQuarter(bench, servers, { shoot, seconds, rate: figureOf(figures, UKEMI).median / 4 });
  } finally {
    await stop();
    await loader.stop();
  }
}

/** Lets each compile and connect, and so learns how many requests must be made ready for it. */
async function warmUp(
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

function reportIngest({ report }: Bench, figures: Rounds, p99: Rounds): void {
  report({
    title: "Ingest",
    unit: "events/s",
    rows: SERVER_NAMES.map((name) => {
      if (!figures.has(name)) return { name, figure: undefined, ratio: undefined };
      const slowest = `p99 ${figureOf(p99, name).median.toFixed(1)} ms`;
      const figure = figureOf(figures, name);
      if (name === UKEMI) return { name, figure, ratio: undefined, notes: slowest };
      const ofTheirs = ratioOf(p99, UKEMI, name).median.toFixed(2);
      return {
        name,
        figure,
        ratio: ratioOf(figures, UKEMI, name),
        notes: `${slowest}, ours ÷ theirs ${ofTheirs}`,
      };
    }),
    remarks: peerSettings(),
  });
}
