// /api/v1/dead: dead letters, why they died, and putting them back to work or giving them up.
import { Hono, type Context } from "hono";
import { UkemiError } from "../../errors.ts";
import type { DeadLetters } from "../../operate/dead.ts";
import type { Selection } from "../../operate/selection.ts";
import type { DeadFilter } from "../../storage/dead-filter.ts";
import { isObject, readBody, readLimit, readTime, requireKnown, wrong } from "../parameters.ts";

const FILTER_FIELDS = [
  "handler",
  "queue",
  "type",
  "source",
  "tenant",
  "ref",
  "event",
  "error_class",
  "death",
  "since",
  "until",
] as const;

/** Every query parameter of the groups. */
const GROUP_PARAMETERS = [...FILTER_FIELDS, "ids"] as const;

/** Every query parameter of the list. */
export const DEAD_PARAMETERS = [...GROUP_PARAMETERS, "limit", "cursor"] as const;

/** Every field of the body that changes dead letters. */
export const CHANGE_FIELDS = ["ids", "filter", "reason", "dry_run"] as const;

/** The routes below /api/v1/dead. */
export function deadRoutes(dead: DeadLetters, actor: string): Hono {
  const routes = new Hono();
  routes.get("/", async (context) => {
    const query = context.req.query();
    requireKnown(query, DEAD_PARAMETERS);
    const { limit, cursor, ids, ...fields } = query;
    const page = { ...(limit === undefined ? {} : { limit: readLimit(limit) }), cursor };
    return context.json(await dead.list(readFilter(fields, ids), page));
  });
  routes.get("/groups", async (context) => {
    const query = context.req.query();
    requireKnown(query, GROUP_PARAMETERS);
    const { ids, ...fields } = query;
    return context.json({ items: await dead.groups(readFilter(fields, ids)) });
  });
  routes.get("/:id", async (context) => {
    const id = context.req.param("id");
    if (!/^\d{1,15}$/.test(id)) return context.notFound();
    const job = await dead.show(Number(id));
    if (!job) throw new UkemiError("not_found", "There is no job with this id.");
    return context.json(job);
  });
  routes.post("/replay", (context) => change(context, dead, "replay", actor));
  routes.post("/drop", (context) => change(context, dead, "drop", actor));
  return routes;
}

async function change(
  context: Context,
  dead: DeadLetters,
  act: "replay" | "drop",
  actor: string,
): Promise<Response> {
  const body = await readBody(context, CHANGE_FIELDS);
  const selection = readSelection(body);
  const { dry_run: dryRun = false, reason } = body;
  if (typeof dryRun !== "boolean") throw wrong("dry_run", "must be true or false");
  if (dryRun) return context.json({ dry_run: true, ...(await dead.preview(selection)) });
  // before the preview: a request that can never be carried out should not cost a count
  if (typeof reason !== "string" || reason.trim() === "") throw wrong("reason", "must say why, in words");
  return context.json({ dry_run: false, ...(await dead[act](selection, { actor, reason })) });
}

function readSelection({ ids, filter }: Readonly<Record<string, unknown>>): Selection {
  if ((ids === undefined) === (filter === undefined))
    throw wrong("ids", "or a filter must be given, not both");
  if (ids !== undefined) return { ids: ids as readonly number[] }; // looked at where they are used
  if (!isObject(filter)) throw wrong("filter", "must be an object");
  requireKnown(filter, FILTER_FIELDS);
  return { filter: readFilter(filter) };
}

function readFilter(fields: Readonly<Record<string, unknown>>, ids?: string): DeadFilter {
  const { error_class, since, until, ...texts } = fields;
  for (const [name, value] of Object.entries({ error_class, ...texts })) {
    if (value !== undefined && typeof value !== "string") throw wrong(name, "must be text");
  }
  return {
    ...texts,
    ...(error_class === undefined ? {} : { errorClass: error_class as string }),
    ...(since === undefined ? {} : { since: readTime("since", since) }),
    ...(until === undefined ? {} : { until: readTime("until", until) }),
    ...(ids === undefined ? {} : { ids: ids.split(",").map(readId) }),
  };
}

/** What is no id is refused with the others. */
const readId = (text: string) => (/^\d{1,15}$/.test(text) ? Number(text) : Number.NaN);
