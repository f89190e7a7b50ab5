// /api/v1/jobs: work of every state.
import { Type } from "typebox";
import { UkemiError } from "../../errors.ts";
import type { Jobs } from "../../operate/lists.ts";
import type { ShownJob } from "../../storage/job-show.ts";
import { JOB_STATES } from "../../storage/states.ts";
import { requireTenant, type Caller } from "../caller.ts";
import { PAGE, span, Text, timesOf } from "../fields.ts";
import { route, type Route } from "../route.ts";
import { Job, JobDetail, OneOf, pageOf } from "../things.ts";

export const jobRoutes: readonly Route[] = [
  route({
    id: "listJobs",
    method: "GET",
    path: "/jobs",
    scope: "read",
    reach: "tenants",
    text: "Lists jobs, newest first.",
    query: Type.Object({
      state: Type.Optional(OneOf(JOB_STATES, "Only in this state.")),
      queue: Type.Optional(Text("Only of this queue.")),
      handler: Type.Optional(Text("Only of this handler or task.")),
      tenant: Type.Optional(Text("Only of this tenant.")),
      key: Type.Optional(Text("Only with this key.")),
      event: Type.Optional(Text("Only of this event, by our id or by the sender's.")),
      worker: Type.Optional(Text("Only those that this worker holds now: its id, or host/pid.")),
      ...span("Made"),
      ...PAGE,
    }),
    answer: pageOf(Job),
    run({ query: { limit, cursor, since, until, ...filter }, caller }, { jobs }) {
      requireTenant(caller, filter.tenant);
      const { tenants } = caller;
      return jobs.list(
        { ...filter, ...timesOf({ since, until }), ...(tenants && { tenants }) },
        { limit, cursor },
      );
    },
  }),
  route({
    id: "getJob",
    method: "GET",
    path: "/jobs/{id}",
    scope: "read",
    reach: "tenants",
    text: "One job of any state with its event, every try and what was done to it.",
    answer: JobDetail,
    run: ({ params, caller }, { jobs }) => showJob(jobs, params.id!, caller),
  }),
];

/** The job, or an error where the caller sees none with this id. */
export async function showJob(jobs: Jobs, id: string, caller: Caller): Promise<ShownJob> {
  const job = await jobs.show(readId(id), caller);
  if (!job) throw new UkemiError("not_found", "There is no job with this id.");
  return job;
}

/** What is no id belongs to no job. */
export const readId = (text: string) => (/^\d{1,15}$/.test(text) ? Number(text) : Number.NaN);
