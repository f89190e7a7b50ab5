// `ukemi destinations`: whom effects go to, what waits for each, and holding one up.
import { Command } from "commander";
import type { Destination } from "../../client/client.ts";
import { UkemiError } from "../../errors.ts";
import { didYouMean } from "../../suggest.ts";
import { changeWithConsent, reasonOf, withChangeFlags, type ChangeFlags } from "../consent.ts";
import { listCommand, shown, type Listing } from "../list.ts";
import { showTime, showUntil } from "../moment.ts";
import { withApi, withTarget } from "../target.ts";

const LISTING: Listing<"listDestinations"> = {
  name: "list",
  call: "listDestinations",
  description: "List whom effects go to, with what waits for each.",
  row: (destination, all) => ({
    destination: destination.name,
    sending: String(destination.sending),
    waiting: String(destination.waiting),
    ...(all.some(({ calls_day }) => calls_day !== null)
      ? { "in 24 h": String(destination.calls_day ?? "") }
      : {}),
    failures: String(destination.failures),
    state: stateOf(destination),
  }),
  table: { cut: ["destination", "state"], names: ["destination"], optional: ["failures", "in 24 h"] },
  empty: "There are no destinations yet: no effect was ever intended.",
};

function stateOf({ paused_until, pause_reason, open, open_reason, probe_at }: Destination): string {
  const paused =
    paused_until === null
      ? []
      : [`PAUSED until ${showTime(paused_until)}, ${showUntil(paused_until)}: ${pause_reason ?? ""}`];
  const tried = probe_at === null ? "" : `, tried out ${showUntil(probe_at)}`;
  const closed = open ? [`FAILING${tried}: ${open_reason ?? ""}`] : [];
  const said = [...paused, ...closed];
  return said.length === 0 ? "well" : said.join("; ");
}

export function destinationsCommand(): Command {
  return new Command("destinations")
    .description("See whom effects go to and what waits for each, and pause or resume one.")
    .addCommand(listCommand(LISTING), { isDefault: true })
    .addCommand(pauseCommand())
    .addCommand(resumeCommand());
}

function pauseCommand(): Command {
  const command = new Command("pause")
    .description("Let no call to a destination begin for some time; those that are under way go on.")
    .argument("<destination>", "Its name: ukemi destinations lists them.")
    .requiredOption("--minutes <number>", "For how long, up to 43200: 30 days.");
  withChangeFlags(command);
  return withTarget(command).action(async (name: string) => {
    const flags = command.opts<ChangeFlags & { readonly minutes: string }>();
    const reason = reasonOf(flags);
    const minutes = Number(flags.minutes);
    await withApi(command, async (api, place) => {
      const preview = find(name, (await api.listDestinations()).items);
      const words = `${shown(LISTING, { items: [preview] })}\n\nNo call would begin for ${flags.minutes} minutes.`;
      const question = `Pause ${name}?`;
      await changeWithConsent(flags, { place, preview, words, any: true, question }, async () => {
        const result = await api.pauseDestination({ name, minutes, reason });
        return { result, words: `${name} is paused until ${showTime(result.paused_until)}.` };
      });
    });
  });
}

function resumeCommand(): Command {
  const command = new Command("resume")
    .description("End a destination's pause and what its failures led to; what waited for it goes out now.")
    .argument("<destination>", "Its name: ukemi destinations lists them.");
  withChangeFlags(command);
  return withTarget(command).action(async (name: string) => {
    const flags = command.opts<ChangeFlags>();
    const reason = reasonOf(flags);
    await withApi(command, async (api, place) => {
      const preview = find(name, (await api.listDestinations()).items);
      const words = `${shown(LISTING, { items: [preview] })}\n\n${preview.waiting} waiting: would go out now.`;
      const question = `Resume ${name}?`;
      await changeWithConsent(flags, { place, preview, words, any: true, question }, async () => {
        const result = await api.resumeDestination({ name, reason });
        const before = result.changed ? "" : ", as it was before";
        return { result, words: `${name} takes effects${before}; ${result.woken} go out now.` };
      });
    });
  });
}

/** A mistyped name would look paused, and nothing would have stopped. */
function find(name: string, items: readonly Destination[]): Destination {
  const found = items.find((item) => item.name === name);
  if (found) return found;
  const names = items.map((item) => item.name);
  const there = names.length === 0 ? "there are none yet" : `there is ${names.join(", ")}`;
  throw new UkemiError(
    "invalid_option",
    `There is no destination ${JSON.stringify(name)}; ${there}${didYouMean(name, names)}`,
  );
}
