// What an operator looks at: jobs, workers, the quarantine and the audit.
import { listAudit, type AuditEntry, type AuditFilter } from "../storage/audit-list.ts";
import type { Page } from "../storage/conditions.ts";
import { listJobs, type JobFilter, type ListedJob } from "../storage/job-list.ts";
import { showJob, type ShownJob } from "../storage/job-show.ts";
import type { Keyring } from "../storage/keyring.ts";
import {
  listRejections,
  showRejection,
  type ListedRejection,
  type RejectionFilter,
  type ShownRejection,
} from "../storage/rejection-list.ts";
import { JOB_STATES } from "../storage/states.ts";
import { listWorkers, type ListedWorker } from "../storage/worker-list.ts";
import { wrong } from "./mandate.ts";
import { NUMBER, readPage, type PageRequest } from "./page.ts";
import type { Reach } from "./reach.ts";
import type { Read } from "./read.ts";

/** Jobs of every state, newest first. */
export interface Jobs {
  list(filter?: JobFilter, page?: PageRequest): Promise<Page<ListedJob>>;
  /** One job with its event and every try. */
  show(id: number, reach?: Reach): Promise<ShownJob | undefined>;
}

/** Those who do the work. */
export interface Workers {
  /** Those that live, and, where asked, those that have ended. */
  list(withEnded?: boolean): Promise<readonly ListedWorker[]>;
}

/** Refused requests, newest first. */
export interface Rejections {
  list(filter?: RejectionFilter, page?: PageRequest): Promise<Page<ListedRejection>>;
  show(id: number): Promise<ShownRejection | undefined>;
}

/** Who did what, newest first. */
export interface Audit {
  list(filter?: AuditFilter, page?: PageRequest): Promise<Page<AuditEntry>>;
}

export function createJobs(read: Read, keyring: Keyring): Jobs {
  return {
    async list(filter = {}, page = {}) {
      if (filter.state !== undefined && !JOB_STATES.includes(filter.state)) {
        throw wrong("state", `must be one of ${JOB_STATES.join(", ")}`);
      }
      const wanted = readPage(page, NUMBER);
      return read((client) => listJobs(client, filter, wanted));
    },
    show: async (id, { tenants } = {}) =>
      Number.isSafeInteger(id) ? read((client) => showJob(client, id, tenants, keyring)) : undefined,
  };
}

export function createWorkers(read: Read): Workers {
  return { list: (withEnded = false) => read((client) => listWorkers(client, withEnded)) };
}

export function createRejections(read: Read): Rejections {
  return {
    async list(filter = {}, page = {}) {
      const wanted = readPage(page, NUMBER);
      return read((client) => listRejections(client, filter, wanted));
    },
    show: async (id) => (Number.isSafeInteger(id) ? read((client) => showRejection(client, id)) : undefined),
  };
}

export function createAudit(read: Read): Audit {
  return {
    async list(filter = {}, page = {}) {
      const wanted = readPage(page, NUMBER);
      return read((client) => listAudit(client, filter, wanted));
    },
  };
}
