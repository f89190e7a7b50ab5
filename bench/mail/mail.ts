// Contest 9: mail at the rate that is set, by five connections; the server says how many came a second.
import type { Bench } from "../bench.ts";
import { figureOf, runContest } from "../contest.ts";
import { startProgram, type Program } from "../programs.ts";
import { tableOf } from "../tables.ts";

/** The rate of SES outside its sandbox, and one at which the ledger has something to do. */
const RATES = [14, 100];
const SECONDS = 4;

interface Seen {
  readonly mails: number;
  readonly perSecond: number;
  readonly busiest: number;
}

export async function measureMail(bench: Bench): Promise<void> {
  const programs: Program[] = [];
  try {
    const inbox = await startProgram("./mail/inbox.ts", { node: bench.node });
    programs.push(inbox);
    const port = await inbox.ask<number>("port");
    const database = await bench.store.create("mail", { schema: true });
    const ukemi = await startProgram("./mail/ukemi.ts", {
      node: bench.node,
      env: { DATABASE_URL: database },
    });
    programs.push(ukemi);
    const busiest = new Map<number, number>();
    const figures = await runContest(
      RATES.map((perSecond) => ({
        name: nameOf(perSecond),
        async run() {
          await ukemi.ask("send", { count: perSecond * SECONDS, perSecond, port });
          const seen = await inbox.ask<Seen>("seen");
          busiest.set(perSecond, Math.max(busiest.get(perSecond) ?? 0, seen.busiest));
          return seen.perSecond;
        },
      })),
      bench,
    );
    const shareOf = (rate: number) => figureOf(figures, nameOf(rate)).median / rate;
    bench.report(
      tableOf({
        title: "Mail",
        unit: "mails/s",
        rows: RATES.map((rate) => ({
          name: nameOf(rate),
          figure: figureOf(figures, nameOf(rate)),
          ratio: undefined,
          notes: `${(100 * shareOf(rate)).toFixed(0)} % of the rate; ${busiest.get(rate)} in the busiest second of all rounds`,
        })),
      }),
    );
    for (const rate of RATES) bench.judge({ bar: "mailRate", measured: shareOf(rate), of: nameOf(rate) });
  } finally {
    await Promise.all(programs.map((program) => program.stop()));
  }
}

const nameOf = (perSecond: number) => `${perSecond} a second are allowed`;
