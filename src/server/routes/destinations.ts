// /api/v1/destinations: whom effects go to, and holding up what goes there. A name holds slashes: it stands in the body.
import { Type } from "typebox";
import { PAUSE_MINUTES_MAX } from "../../operate/destinations.ts";
import { REASON, Text } from "../fields.ts";
import { route, type Route } from "../route.ts";
import { count, listOf, OrNull, thing, Time } from "../things.ts";

const Destination = thing("Destination", {
  name: Type.String(),
  paused_until: OrNull(Time),
  pause_reason: OrNull(Type.String()),
  open: Type.Boolean({
    description: "True where its circuit is open: it failed too often or refused us, and nothing goes there.",
  }),
  open_reason: OrNull(Type.String()),
  opened_at: OrNull(Time),
  probe_at: OrNull(
    Type.Unsafe<Date | string>({ ...Time, description: "When one effect tries it out next." }),
  ),
  failures: count("Calls in a row that failed."),
  sending: count("Calls under way."),
  waiting: count("Effects that have still to go there."),
  calls_day: OrNull(count("Calls of the last 24 hours; null where they are not counted.")),
});

const NAME = Text("The destination, as it is listed.");

export const destinationRoutes: readonly Route[] = [
  route({
    id: "listDestinations",
    method: "GET",
    path: "/destinations",
    scope: "read",
    reach: "everything",
    text: "Lists whom effects go to, with what waits for each.",
    answer: listOf(Destination),
    run: async (_, { destinations }) => ({ items: await destinations.list() }),
  }),
  route({
    id: "pauseDestination",
    method: "POST",
    path: "/destinations/pause",
    scope: "operate",
    reach: "everything",
    text: "Lets no call to a destination begin for some time; a longer pause that it has already holds.",
    body: Type.Object({
      name: NAME,
      minutes: Type.Integer({ minimum: 1, maximum: PAUSE_MINUTES_MAX, description: "For how long." }),
      ...REASON,
    }),
    answer: thing("DestinationPause", { name: Type.String(), paused_until: Time }),
    async run({ body: { name, minutes }, mandate }, { destinations }) {
      return { name, paused_until: await destinations.pause(name, minutes, mandate) };
    },
  }),
  route({
    id: "resumeDestination",
    method: "POST",
    path: "/destinations/resume",
    scope: "operate",
    reach: "everything",
    text: "Ends a destination's pause and resets its circuit; what waited for it goes out now.",
    body: Type.Object({ name: NAME, ...REASON }),
    answer: thing("DestinationResumption", {
      name: Type.String(),
      changed: Type.Boolean({ description: "False where it was neither paused nor open." }),
      woken: Type.Integer({ description: "Effects that go out now instead of later." }),
    }),
    run: async ({ body: { name }, mandate }, { destinations }) => ({
      name,
      ...(await destinations.resume(name, mandate)),
    }),
  }),
];
