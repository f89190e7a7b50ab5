// How long an answer takes when there is little to do: at a quarter of what Ukemi reached at its most.
import type { Bench } from "../bench.ts";
import { figureOf, ratioOf, runContest, type Rounds } from "../contest.ts";
import { tableOf } from "../tables.ts";
import { LIMIT, named, UKEMI, type Listening } from "./servers.ts";
import type { Shoot } from "./shoot.ts";

export async function measureQuarter(
  { rounds, onRun, report, judge }: Bench,
  servers: readonly Listening[],
  { shoot, seconds, rate }: { readonly shoot: Shoot; readonly seconds: number; readonly rate: number },
): Promise<void> {
  const p99 = new Map<string, number[]>([UKEMI, LIMIT].map((name) => [name, []]));
  const averages = await runContest(
    [UKEMI, LIMIT].map((name) => ({
      name,
      async run() {
        const loaded = await shoot(named(servers, name), { seconds, perSecond: rate * 2, rate });
        p99.get(name)!.push(loaded.p99);
        return loaded.average;
      },
    })),
    { rounds, onRun },
  );
  report(
    tableOf({
      title: `Ingest at a quarter of the load (${Math.round(rate)} events/s)`,
      unit: "ms, average",
      digits: 2,
      rows: [UKEMI, LIMIT].map((name) => ({
        name,
        figure: figureOf(averages, name),
        ratio: name === UKEMI ? undefined : ratioOf(averages, UKEMI, name),
        notes: `p99 ${figureOf(p99, name).median.toFixed(1)} ms`,
      })),
    }),
  );
  const compared = (of: Rounds) => ({
    measured: figureOf(of, UKEMI).median,
    byHand: figureOf(of, LIMIT).median,
  });
  judge({ bar: "quarterSlowest", ...compared(p99) });
  judge({ bar: "quarterAverage", ...compared(averages) });
}
