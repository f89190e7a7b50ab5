// /api/v1/dead: dead letters, why they died, and putting them back to work or giving them up.
import { Type, type Static } from "typebox";
import type { Selection } from "../../operate/selection.ts";
import type { DeadFilter } from "../../storage/dead-filter.ts";
import { wrong } from "../../operate/mandate.ts";
import { IDS_MAX } from "../../operate/selection.ts";
import { DEATHS } from "../../storage/states.ts";
import { requireTenant, type Caller } from "../caller.ts";
import { PAGE, REASON, span, Text, timesOf } from "../fields.ts";
import { route, type Route } from "../route.ts";
import {
  BriefEffect,
  DeadGroup,
  DeadLetter,
  JobDetail,
  listOf,
  Many,
  OneOf,
  OrNull,
  pageOf,
  thing,
} from "../things.ts";
import { readId, showJob } from "./jobs.ts";

/** Which dead letters; every field narrows it. */
const FILTER = {
  handler: Type.Optional(Text("Only of this handler or task.")),
  queue: Type.Optional(Text("Only of this queue.")),
  type: Type.Optional(Text("Only about events of this type.")),
  source: Type.Optional(Text("Only about events of this source.")),
  tenant: Type.Optional(Text("Only of this tenant.")),
  ref: Type.Optional(Text("Only about events with this business id.")),
  event: Type.Optional(Text("Only about this event, by our id or by the sender's.")),
  error_class: Type.Optional(Text("Only that died of this class of error.")),
  death: Type.Optional(OneOf(DEATHS, "Only that died in this way.")),
  ...span("Died"),
};

const IDS = Type.Optional(Text("Only these, separated by commas."));

export const Filter = Type.Object(FILTER, { title: "DeadFilter", additionalProperties: false });

/** Which dead letters a change means. */
export const SELECTION = {
  ids: Type.Optional(
    Type.Array(Type.Integer({ minimum: 1 }), { minItems: 1, maxItems: IDS_MAX, description: "These jobs." }),
  ),
  filter: Type.Optional(Filter),
  all: Type.Optional(Type.Unsafe<true>({ type: "boolean", enum: [true], description: "Every dead letter." })),
};

const CHANGE = Type.Object({
  ...SELECTION,
  dry_run: Type.Optional(Type.Boolean({ description: "Only say what would be changed." })),
  reason: Type.Optional(REASON.reason),
});

export const PreviewGroup = thing("PreviewGroup", {
  handler: Type.String(),
  error_class: OrNull(Type.String()),
  count: Type.Integer(),
  without_body: Type.Integer(),
  workers: Type.Integer({ description: "How many live workers have the handler." }),
});

const EffectCount = thing("EffectCount", {
  count: Type.Integer(),
  items: Type.Unsafe<readonly Static<typeof BriefEffect>[]>({
    ...Many(BriefEffect),
    description: "The first twenty.",
  }),
});

const EffectPreview = thing("EffectPreview", {
  would_run: EffectCount,
  done: EffectCount,
});

const Changed = thing("DeadChange", {
  dry_run: Type.Boolean(),
  count: Type.Optional(Type.Integer({ description: "How many would be changed." })),
  without_body: Type.Optional(Type.Integer({ description: "Those of them that cannot be replayed." })),
  groups: Type.Optional(Many(PreviewGroup)),
  effects: Type.Optional(EffectPreview),
  changed: Type.Optional(Type.Integer()),
  skipped: Type.Optional(Type.Integer()),
  skips: Type.Optional(
    Many(
      thing("Skip", {
        id: Type.Integer(),
        reason: OneOf(["unknown", "not_dead", "died_again", "no_body", "erased"]),
      }),
    ),
  ),
});

const change = (act: "replay" | "drop", text: string) =>
  route({
    id: `${act}Dead`,
    method: "POST",
    path: `/dead/${act}`,
    scope: "operate",
    reach: "tenants",
    text,
    body: CHANGE,
    answer: Changed,
    async run({ body, caller, mandate }, { dead }) {
      const selection = selectionOf(body, caller);
      if (body.dry_run) {
        const preview = await dead.preview(selection, caller);
        const effects = act === "replay" ? { effects: await dead.previewEffects(selection, caller) } : {};
        return { dry_run: true, ...preview, ...effects };
      }
      return { dry_run: false, ...(await dead[act](selection, mandate, caller)) };
    },
  });

export const deadRoutes: readonly Route[] = [
  route({
    id: "listDead",
    method: "GET",
    path: "/dead",
    scope: "read",
    reach: "tenants",
    text: "Lists dead letters, newest first.",
    query: Type.Object({ ...FILTER, ids: IDS, ...PAGE }),
    answer: pageOf(DeadLetter),
    run({ query: { limit, cursor, ids, ...fields }, caller }, { dead }) {
      const { tenants } = caller;
      return dead.list(filterOf(fields, caller, ids), { limit, cursor, tenants });
    },
  }),
  route({
    id: "groupDead",
    method: "GET",
    path: "/dead/groups",
    scope: "read",
    reach: "tenants",
    text: "Groups dead letters by error class and handler, the largest first.",
    query: Type.Object({ ...FILTER, ids: IDS }),
    answer: listOf(DeadGroup),
    async run({ query: { ids, ...fields }, caller }, { dead }) {
      return { items: await dead.groups(filterOf(fields, caller, ids), caller) };
    },
  }),
  route({
    id: "getDead",
    method: "GET",
    path: "/dead/{id}",
    scope: "read",
    reach: "tenants",
    text: "One dead letter with its event, every try and what was done to it; also where it is no longer dead.",
    answer: JobDetail,
    run: ({ params, caller }, { jobs }) => showJob(jobs, params.id!, caller),
  }),
  change("replay", "Puts dead letters back to work, up to 1,000 in one commit; an operation takes more."),
  change("drop", "Gives dead letters up for good, up to 1,000 in one commit; an operation takes more."),
];

/** The selection of a request, within what its caller may touch. */
export function selectionOf(
  { ids, filter, all }: { readonly ids?: number[]; readonly filter?: Static<typeof Filter>; all?: true },
  caller: Caller,
): Selection {
  if ([ids, filter, all].filter((way) => way !== undefined).length !== 1)
    throw wrong("ids", "or a filter or all must be given, exactly one of them");
  if (all) return { all };
  return ids === undefined ? { filter: filterOf(filter!, caller) } : { ids };
}

function filterOf(
  { error_class, since, until, ...texts }: Static<typeof Filter>,
  caller: Caller,
  ids?: string,
): DeadFilter {
  requireTenant(caller, texts.tenant);
  return {
    ...texts,
    ...(error_class === undefined ? {} : { errorClass: error_class }),
    ...timesOf({ since, until }),
    ...(ids === undefined ? {} : { ids: ids.split(",").map(readId) }),
  };
}
