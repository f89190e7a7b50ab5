// Deliveries that came before: they must cost less than new ones, and leave nothing behind.
import type { Bench } from "../bench.ts";
import { figureOf, ratioOf, type Rounds } from "../contest.ts";
import { tableOf } from "../tables.ts";
import { countRows, grownTables } from "./rows.ts";
import { UKEMI, type Listening } from "./servers.ts";
import type { Shoot } from "./shoot.ts";

/** The name of the contestant, and the share of what it is sent that it has seen before. */
export const DUPLICATES = "ukemi, 90 % duplicates";
export const DUPLICATES_SHARE = 0.9;

const CHECK_SECONDS = 1;

/** Throws where a table has grown: that would be a fault, not a figure. */
export async function reportDuplicates(
  { report, judge }: Bench,
  figures: Rounds,
  ukemi: Listening,
  { shoot, perSecond }: { readonly shoot: Shoot; readonly perSecond: number },
): Promise<void> {
  const before = await countRows(ukemi.database);
  const { count } = await shoot(ukemi, { seconds: CHECK_SECONDS, perSecond, duplicates: 1 });
  const grown = grownTables(before, await countRows(ukemi.database));
  if (grown.length > 0) throw new Error(`${count} duplicates made tables grow: ${grown.join(", ")}`);
  const ratio = ratioOf(figures, DUPLICATES, UKEMI);
  report(
    tableOf({
      title: "Duplicates",
      unit: "events/s",
      ratioOf: "÷ new events",
      rows: [
        { name: UKEMI, figure: figureOf(figures, UKEMI), ratio: undefined },
        {
          name: DUPLICATES,
          figure: figureOf(figures, DUPLICATES),
          ratio,
          notes: `${count} more of nothing but duplicates: no table grew`,
        },
      ],
    }),
  );
  judge({ bar: "duplicates", measured: ratio.median });
}
