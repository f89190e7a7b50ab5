// /api/v1/operations: replay or drop of many dead letters as an object that can be watched and stopped.
import { Type } from "typebox";
import { ITEM_STATES, OPERATION_STATES, type ItemState } from "../../storage/operations.ts";
import { PAGE, REASON, Text } from "../fields.ts";
import { route, type Route } from "../route.ts";
import { Many, Names, OneOf, OrNull, Time, pageOf, text, thing } from "../things.ts";
import { PreviewGroup, SELECTION, selectionOf } from "./dead.ts";

const operationFacts = {
  id: Type.String(),
  name: Type.String(),
  kind: OneOf(["replay", "drop"]),
  reason: Type.String(),
  actor: Type.String(),
  tenants: OrNull(Names),
  selection: Type.Record(Type.String(), Type.Unknown()),
  state: OneOf(OPERATION_STATES, "stopped is by itself, above the limit of failures; aborted by a person."),
  rate_per_second: OrNull(Type.Number()),
  canary: Type.Boolean(),
  stage: OneOf(["one", "ten", "all"]),
  failure_limit: OrNull(Type.Number()),
  stop_reason: OrNull(Type.String()),
  total: Type.Integer(),
  counts: thing(
    "ItemCounts",
    Object.fromEntries(ITEM_STATES.map((state) => [state, Type.Integer()])) as Record<
      ItemState,
      Type.TInteger
    >,
  ),
  progress: Type.Number({ description: "The share of its items that have ended, from 0 to 1." }),
  ended_per_second: OrNull(Type.Number()),
  estimated_end_at: OrNull(Time),
  created_at: Time,
  started_at: OrNull(Time),
  stopped_at: OrNull(Time),
  finished_at: OrNull(Time),
  overdue_seconds: Type.Number({ description: "How long a process should have looked at it already." }),
  fault: OrNull(text("Why its last step failed.")),
};

const Operation = thing("Operation", operationFacts);

const OperationDetail = thing("OperationDetail", {
  ...operationFacts,
  at_work: Many(
    thing("AtWork", {
      delay: OneOf(["running", "queue_paused", "no_worker", "later", "key", "ready"]),
      handler: Type.String(),
      queue: Type.String(),
      count: Type.Integer(),
      next_at: OrNull(Time),
    }),
  ),
  waits_for: OrNull(text("Why it does not go on at this moment, in words.")),
});

const OperationItem = thing("OperationItem", {
  position: Type.Integer(),
  job: Type.Integer(),
  state: OneOf(ITEM_STATES),
  handler: OrNull(Type.String()),
  queue: OrNull(Type.String()),
  event: OrNull(Type.String()),
  event_id: OrNull(Type.String()),
  tenant: OrNull(Type.String()),
  error_class: OrNull(text("Of one that died again.")),
  message: OrNull(text("Why it died again, or was skipped.")),
  changed_at: Time,
});

/** Which dead letters, and how. */
export const OPERATION = {
  kind: OneOf(["replay", "drop"], "What is done to each of them."),
  ...SELECTION,
  rate: Type.Optional(
    Type.Number({
      minimum: 0.001,
      maximum: 10_000,
      description: "Items per second. Left out: as fast as it goes.",
    }),
  ),
  canary: Type.Optional(
    Type.Boolean({
      default: false,
      description: "First one, then ten, then all; each stage waits until the one before has ended.",
    }),
  ),
  failure_limit: Type.Optional(
    Type.Number({
      minimum: 0,
      maximum: 1,
      default: 0.1,
      description: "Above this share of items that died again it stops by itself.",
    }),
  ),
};

const change = (act: "abort" | "resume", text: string) =>
  route({
    id: `${act}Operation`,
    method: "POST",
    path: `/operations/{id}/${act}`,
    scope: "operate",
    reach: "tenants",
    text,
    body: Type.Object(REASON),
    answer: thing("OperationChange", {
      id: Type.String(),
      state: OneOf(OPERATION_STATES),
      changed: Type.Boolean({ description: "False where it was so before, or has ended." }),
    }),
    run: ({ params, mandate, caller }, { operations }) => operations[act](params.id!, mandate, caller),
  });

export const operationRoutes: readonly Route[] = [
  route({
    id: "listOperations",
    method: "GET",
    path: "/operations",
    scope: "read",
    reach: "tenants",
    text: "Lists operations, newest first.",
    query: Type.Object({ state: Type.Optional(OneOf(OPERATION_STATES, "Only in this state.")), ...PAGE }),
    answer: pageOf(Operation),
    run: ({ query, caller: { tenants } }, { operations }) => operations.list({ ...query, tenants }),
  }),
  route({
    id: "previewOperation",
    method: "POST",
    manner: "reads",
    path: "/operations/preview",
    scope: "read",
    reach: "tenants",
    text: "Says what an operation would touch, and changes nothing.",
    body: Type.Object(OPERATION),
    answer: thing("OperationPreview", {
      count: Type.Integer(),
      without_body: Type.Integer({ description: "Those of them that cannot be replayed." }),
      groups: Many(PreviewGroup),
      in_operation: Type.Integer({
        description: "Those that wait in another operation: they would be skipped.",
      }),
      seconds: OrNull(Type.Number({ description: "How long it would take at the rate." })),
      most: Type.Integer({ description: "How many items one operation may have." }),
    }),
    run: (
      { body: { kind, rate, canary, failure_limit: failureLimit, ...selection }, caller },
      { operations },
    ) =>
      operations.preview({
        ...selectionOf(selection, caller),
        kind,
        rate,
        canary,
        failureLimit,
        tenants: caller.tenants,
      }),
  }),
  route({
    id: "createOperation",
    method: "POST",
    path: "/operations",
    scope: "operate",
    reach: "tenants",
    text: "Chooses the dead letters now, and begins.",
    body: Type.Object({ name: Text("In a person's words."), ...OPERATION, ...REASON }),
    answer: OperationDetail,
    run: ({ body, caller, mandate }, { operations }) => {
      const { kind, rate, canary, failure_limit: failureLimit, name, reason: _, ...selection } = body;
      const { tenants } = caller;
      return operations.create(
        { ...selectionOf(selection, caller), kind, rate, canary, failureLimit, name, tenants },
        mandate,
      );
    },
  }),
  route({
    id: "getOperation",
    method: "GET",
    path: "/operations/{id}",
    scope: "read",
    reach: "tenants",
    text: "One operation with how far it has come, and what it waits for.",
    answer: OperationDetail,
    run: ({ params, caller }, { operations }) => operations.show(params.id!, caller),
  }),
  route({
    id: "listOperationItems",
    method: "GET",
    path: "/operations/{id}/items",
    scope: "read",
    reach: "tenants",
    text: "What became of each job of an operation, in their order.",
    query: Type.Object({ state: Type.Optional(OneOf(ITEM_STATES, "Only in this state.")), ...PAGE }),
    answer: pageOf(OperationItem),
    run: ({ params, query, caller: { tenants } }, { operations }) =>
      operations.items(params.id!, { ...query, tenants }),
  }),
  change("abort", "Touches no further item. What was replayed before goes on to its end."),
  change("resume", "Goes on with the items that wait, after an abort or a stop."),
];
