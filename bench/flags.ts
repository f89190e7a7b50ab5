// The flags of `npm run bench`.
import { parseArgs } from "node:util";

export interface Flags {
  /** The contests to run, in the order that was asked for. */
  readonly names: readonly string[];
  /** Those that a quick run leaves out. */
  readonly leftOut: readonly string[];
  readonly quick: boolean;
  readonly rounds: number;
  readonly rows: number;
}

const ROUNDS = 15;
const ROUNDS_QUICK = 2;
const ROWS = 10_000_000;

/** Ends the process where a flag is wrong. */
export function readFlags(
  args: readonly string[],
  { contests, notQuick }: { readonly contests: readonly string[]; readonly notQuick: readonly string[] },
): Flags {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: "boolean", default: false },
      only: { type: "string" },
      rounds: { type: "string" },
      rows: { type: "string" },
    },
  });
  const { quick } = values;
  const asked = values.only?.split(",");
  const unknown = asked?.find((name) => !contests.includes(name));
  if (unknown !== undefined) refuse(`There is no contest ${unknown}; there are ${contests.join(", ")}.`);
  const isLeftOut = (name: string) => quick && notQuick.includes(name);
  return {
    names: asked ?? contests.filter((name) => !isLeftOut(name)),
    leftOut: asked ? [] : contests.filter(isLeftOut),
    quick,
    rounds: whole("rounds", values.rounds) ?? (quick ? ROUNDS_QUICK : ROUNDS),
    rows: whole("rows", values.rows) ?? ROWS,
  };
}

function whole(flag: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^[1-9]\d*$/.test(text)) refuse(`--${flag} must be a whole number above 0, not ${text}.`);
  return Number(text);
}

function refuse(why: string): never {
  console.error(why);
  process.exit(2);
}
