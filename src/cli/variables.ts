// Environment variables that look like ours and are not: a typo in one of them would otherwise pass in silence.
import { OPTION_NAMES, OPTIONS } from "../options.ts";
import { nearest } from "../suggest.ts";

/** Those that belong to no option: the server that commands speak to, and the crash points of our tests. */
const OTHERS = ["UKEMI_URL", "UKEMI_TOKEN", "UKEMI_CRASH_AT", "UKEMI_PAUSE_AT"];

/** Every variable that Ukemi reads. */
const KNOWN: readonly string[] = [
  ...OPTION_NAMES.flatMap((name) => (OPTIONS[name] as { readonly env?: string }).env ?? []),
  ...OTHERS,
];

/** Compared without what they have in common: else every name would be near every other. */
const ENDS = KNOWN.filter((name) => name.startsWith("UKEMI_")).map(endOf);

/** One sentence for each variable that begins with UKEMI_ and means nothing. Values are not quoted. */
export function strayVariables(env: Readonly<Record<string, string | undefined>>): readonly string[] {
  return Object.keys(env)
    .filter((name) => /^UKEMI_/i.test(name) && !name.startsWith("UKEMI_TEST_"))
    .filter((name) => !KNOWN.includes(name) && env[name] !== "")
    .toSorted()
    .map((name) => {
      const end = nearest(endOf(name), ENDS);
      const meant = end === undefined ? "." : `: did you mean UKEMI_${end}?`;
      return `there is no variable named ${name}${meant}`;
    });
}

function endOf(name: string): string {
  return name.slice("UKEMI_".length);
}
