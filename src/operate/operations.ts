// Operations in an operator's hands: many dead letters replayed or dropped as one thing that has a name, a pace and an end.
import { UkemiError } from "../errors.ts";
import { isUuid } from "../storage/ids.ts";
import {
  abortOperation,
  resumeOperation,
  type ChangedOperation,
  type OperationChange,
} from "../storage/operations-change.ts";
import { countBusy, createOperation, type Created } from "../storage/operations-create.ts";
import {
  ITEM_STATES,
  listItems,
  listOperations,
  OPERATION_STATES,
  readAtWork,
  readOperation,
  type AtWork,
  type ItemState,
  type ListedOperation,
  type OperationItem,
  type OperationKind,
  type OperationState,
} from "../storage/operations.ts";
import { pageOf, type Page } from "../storage/conditions.ts";
import type { Pool, Queryable } from "../storage/postgres.ts";
import { previewDead, type DeadPreview } from "../storage/replay.ts";
import { within, type Reach } from "./reach.ts";
import type { Read } from "./read.ts";
import { readMandate, readText, wrong, type Mandate } from "./mandate.ts";
import { AT_WORK_MAX } from "./operation-plan.ts";
import { readPage, UUID, type PageRequest } from "./page.ts";
import { filterOf, shownSelection, type Selection } from "./selection.ts";
import { afterCommit, inTransaction } from "./transaction.ts";

/** What an operation would do: which dead letters, and how. */
export type OperationDraft = Selection &
  Reach & {
    readonly kind: OperationKind;
    /** Items per second. @default as fast as it goes */
    readonly rate?: number | undefined;
    /** First one, then ten, then all: each stage waits until the one before has ended. Only for replays. @default false */
    readonly canary?: boolean | undefined;
    /** Above this share of items that died again it stops by itself, from 0 to 1. Only for replays. @default 0.1 */
    readonly failureLimit?: number | undefined;
  };

/** An operation that is to be made. */
export type OperationRequest = OperationDraft & {
  /** In a person's words: 1 to 100 characters. */
  readonly name: string;
};

/** What an operation would touch. */
export interface OperationPreview extends DeadPreview {
  /** How many wait in another operation that runs: they would be skipped. */
  readonly in_operation: number;
  /** How long it would take at the rate, without the time that handlers need; null without a rate. */
  readonly seconds: number | null;
  /** More than this many need several operations. */
  readonly most: number;
}

/** An operation with what it waits for. */
export interface ShownOperation extends ListedOperation {
  /** Why replayed jobs have not ended, the most frequent first. */
  readonly at_work: readonly AtWork[];
  /** Why it does not go on at this moment, in words; null where it does, or has ended. */
  readonly waits_for: string | null;
}

type Paging = Reach & PageRequest;

/** What can be done with operations. An id that the caller may not see is one that is not there: `not_found`. */
export interface Operations {
  /** What an operation would touch. */
  preview(request: OperationDraft): Promise<OperationPreview>;
  /** Chooses the jobs now, and begins. */
  create(request: OperationRequest, mandate: Mandate): Promise<ShownOperation>;
  /** The newest first. */
  list(page?: Paging & { readonly state?: OperationState | undefined }): Promise<Page<ListedOperation>>;
  show(id: string, reach?: Reach): Promise<ShownOperation>;
  /** What became of each job, in their order. */
  items(id: string, page?: Paging & { readonly state?: ItemState | undefined }): Promise<Page<OperationItem>>;
  /** From the commit on no further item is touched. What was replayed before goes on to its end. */
  abort(id: string, mandate: Mandate, reach?: Reach): Promise<ChangedOperation>;
  /** Goes on with the items that wait, after an abort or a stop; after a stop failures count anew. */
  resume(id: string, mandate: Mandate, reach?: Reach): Promise<ChangedOperation>;
}

export interface OperationsOptions {
  readonly open: () => Promise<Pool>;
  readonly read: Read;
  /** Called when an operation was made or resumed here. */
  readonly wake?: (() => void) | undefined;
  /** How many items one may have. @default 100000 */
  readonly itemsMax?: number | undefined;
}

const NAME_MAX = 100;
const ITEMS_MAX = 100_000;
const RATE = { least: 0.001, most: 10_000 };
const FAILURE_LIMIT = 0.1;
/** The cursor of items: the position of the last one. */
const POSITION = /^\d{1,9}$/;

export function createOperations(options: OperationsOptions): Operations {
  const { open, read, wake = () => {}, itemsMax = ITEMS_MAX } = options;

  async function change(
    apply: (client: Queryable, asked: OperationChange) => Promise<ChangedOperation | undefined>,
    id: string,
    mandate: Mandate,
    { tenants }: Reach = {},
  ): Promise<ChangedOperation> {
    const asked = { ...readMandate(mandate), id: readId(id), tenants };
    const changed = await inTransaction(await open(), (client) => apply(client, asked));
    return changed ?? missing();
  }

  const show = (id: string, { tenants }: Reach = {}) =>
    read(async (client) => {
      const operation = (await readOperation(client, readId(id), tenants)) ?? missing();
      const atWork = operation.counts.replayed === 0 ? [] : await readAtWork(client, operation.id);
      return { ...operation, at_work: atWork, waits_for: waitsFor(operation, atWork) };
    });

  return {
    show,
    async preview(request) {
      const { rate } = readManner(request);
      const filter = within(filterOf(request), request);
      const preview = await read((client) => previewDead(client, filter));
      const busy = await read((client) => countBusy(client, filter));
      const able = preview.count - busy;
      return {
        ...preview,
        in_operation: busy,
        seconds: rate === undefined ? null : able / rate,
        most: itemsMax,
      };
    },
    async create(request, mandate) {
      const name = readText("name", request.name, NAME_MAX);
      const operation = {
        name,
        kind: request.kind,
        ...readManner(request),
        ...readMandate(mandate),
        filter: within(filterOf(request), request),
        selection: shownSelection(request),
        tenants: request.tenants,
        most: itemsMax,
      };
      const created = await inTransaction(await open(), async (client) => {
        const made = await createOperation(client, operation);
        refuse(made, itemsMax);
        return made;
      });
      await afterCommit(() => Promise.resolve(wake()));
      return show(created.id, request);
    },
    async list({ state, tenants, ...page } = {}) {
      const { limit, before } = readPage(page, UUID);
      if (state !== undefined && !OPERATION_STATES.includes(state)) {
        throw wrong("state", `must be one of ${OPERATION_STATES.join(", ")}`);
      }
      const found = await read((client) => listOperations(client, { state, limit, after: before, tenants }));
      return pageOf(found, limit, (last) => last.id);
    },
    async items(id, { state, tenants, ...page } = {}) {
      const { limit, before } = readPage(page, POSITION);
      if (state !== undefined && !ITEM_STATES.includes(state)) {
        throw wrong("state", `must be one of ${ITEM_STATES.join(", ")}`);
      }
      const found = await read(async (client) => {
        const operation = (await readOperation(client, readId(id), tenants)) ?? missing();
        return listItems(client, { operation: operation.id, state, limit, after: Number(before ?? 0) });
      });
      return pageOf(found, limit, (last) => String(last.position));
    },
    abort: (id, mandate, scope) => change(abortOperation, id, mandate, scope),
    async resume(id, mandate, scope) {
      const changed = await change(resumeOperation, id, mandate, scope);
      await afterCommit(() => Promise.resolve(wake()));
      return changed;
    },
  };
}

/** How it is to be done, or an error that names what cannot be. */
function readManner({
  kind,
  rate,
  canary = false,
  failureLimit,
}: Pick<OperationDraft, "kind" | "rate" | "canary" | "failureLimit">) {
  if (kind !== "replay" && kind !== "drop") throw wrong("kind", "must be replay or drop");
  if (rate !== undefined && !(Number.isFinite(rate) && rate >= RATE.least && rate <= RATE.most)) {
    throw wrong("rate", `must be a number of items per second from ${RATE.least} to ${RATE.most}`);
  }
  if (typeof canary !== "boolean") throw wrong("canary", "must be true or false");
  if (kind === "drop" && (canary || failureLimit !== undefined)) {
    throw wrong(canary ? "canary" : "failureLimit", "is for replays: a drop runs no handler that could fail");
  }
  if (
    failureLimit !== undefined &&
    !(Number.isFinite(failureLimit) && failureLimit >= 0 && failureLimit <= 1)
  ) {
    throw wrong("failureLimit", "must be a share from 0 to 1");
  }
  return { rate, canary, failureLimit: kind === "drop" ? undefined : (failureLimit ?? FAILURE_LIMIT) };
}

/** Throws where the operation cannot be: what was written of it is rolled back. */
function refuse({ chosen, waiting, busy }: Created, most: number): void {
  if (chosen > most) {
    throw wrong(
      "filter",
      `matches more than ${most} dead letters, and one operation has at most so many: narrow it, by time for example`,
    );
  }
  if (waiting > 0) return;
  if (busy === 0) throw wrong("filter", "matches no dead letter");
  throw wrong(
    "filter",
    "matches only dead letters that wait in another operation: let it end, or abort it first",
  );
}

function readId(id: string): string {
  return typeof id === "string" && isUuid(id) ? id : missing();
}

function missing(): never {
  throw new UkemiError("not_found", "There is no operation with this id.");
}

/** After so many seconds without a look it is clear that nobody will. */
const OVERDUE_SECONDS = 15;

/** Why it does not go on at this moment. */
function waitsFor(operation: ListedOperation, atWork: readonly AtWork[]): string | null {
  const { state, stage, fault } = operation;
  const { waiting, replayed } = operation.counts;
  if (state !== "running") return null;
  if (operation.overdue_seconds > OVERDUE_SECONDS) {
    return "No process runs it: start a worker or a server on this database.";
  }
  if (fault !== null) return `Its last step failed, and is tried again: ${fault}.`;
  if (replayed === 0) return null;
  const items = replayed === 1 ? "1 item" : `${replayed} items`;
  const said = atWork.map((group) => `${group.count} ${WHY[group.delay](group)}`).join(", ");
  const why = said === "" ? "." : `: ${said}.`;
  if (waiting === 0) return `Waits for the last ${items} to end${why}`;
  if (stage !== "all") return `The canary waits for ${items} to end${why}`;
  return replayed < AT_WORK_MAX ? null : `${items} are at work, and no more may be at once${why}`;
}

const WHY: Readonly<Record<AtWork["delay"], (group: AtWork) => string>> = {
  running: () => "running",
  queue_paused: ({ queue }) => `in the paused queue ${queue}`,
  no_worker: ({ handler }) => `for ${handler}, which no live worker has`,
  later: () => "to be tried again later",
  key: () => "behind others of their key",
  ready: () => "ready to run",
};
