// The closed catalogue of errors: each has a stable code, says whether trying again helps, and what to do.

/** One kind of error that Ukemi can report. */
interface CatalogueEntry {
  /** HTTP status of the answer; absent where the error never reaches an HTTP caller. */
  readonly status?: number;
  /** Short, fixed summary (the `title` of a problem document). */
  readonly title: string;
  /** True where the same request may succeed later without being changed. */
  readonly retryable: boolean;
  /** What the reader should do. */
  readonly remedy: string;
}

/** Every error code, and nothing else. `docs/reference/errors.md` is compared with this list by a test. */
export const catalogue = {
  invalid_webhook: {
    status: 400,
    title: "The request was refused",
    retryable: false,
    remedy:
      "Check the signing secret and that the body is sent unchanged. The reason is in the server's log.",
  },
  invalid_parameter: {
    status: 400,
    title: "A parameter is not valid",
    retryable: false,
    remedy: "Correct the parameter that the detail names.",
  },
  malformed_http: {
    status: 400,
    title: "The request is not valid HTTP",
    retryable: false,
    remedy: "Send a well-formed HTTP/1.1 request.",
  },
  unauthorized: {
    status: 401,
    title: "A valid bearer token is needed",
    retryable: false,
    remedy:
      "Send `Authorization: Bearer …` with a token that is active (`ukemi token create`), or with the value of UKEMI_ADMIN_TOKEN.",
  },
  forbidden: {
    status: 403,
    title: "The token may not do this",
    retryable: false,
    remedy:
      "Use a token with the scope and the tenants that the detail names; an admin makes one with `ukemi token create`.",
  },
  address_not_allowed: {
    status: 403,
    title: "This address may not send here",
    retryable: false,
    remedy: "Add the sender's address to the source's allowedAddresses.",
  },
  unknown_source: {
    status: 404,
    title: "No such source",
    retryable: false,
    remedy: "Configure the source, or correct the last part of the webhook URL.",
  },
  not_found: {
    status: 404,
    title: "Not found",
    retryable: false,
    remedy: "Check the path and the id.",
  },
  method_not_allowed: {
    status: 405,
    title: "This method is not allowed here",
    retryable: false,
    remedy: "Use a method named by the Allow header.",
  },
  idempotency_key_reused: {
    status: 422,
    title: "This Idempotency-Key was used for another request",
    retryable: false,
    remedy: "Send each new request with a new key; repeat a request exactly as it was.",
  },
  request_timeout: {
    status: 408,
    title: "The request took too long to arrive",
    retryable: true,
    remedy: "Send the whole request within the time limit.",
  },
  payload_too_large: {
    status: 413,
    title: "The body is too large",
    retryable: false,
    remedy: "Raise bodyBytesMax if the sender is honest.",
  },
  too_many_refused: {
    status: 429,
    title: "Too many refused requests from this address",
    retryable: true,
    remedy: "Wait as long as Retry-After says, and correct the signature.",
  },
  headers_too_large: {
    status: 431,
    title: "The request's headers are too large",
    retryable: false,
    remedy: "Send smaller headers.",
  },
  body_needed: {
    status: 409,
    title: "Jobs still need this body",
    retryable: false,
    remedy:
      "Let them finish, replay or drop the dead ones, or ask for the erasure of bodies that are still needed too.",
  },
  effect_conflict: {
    status: 409,
    title: "This dedupe key stands for something else",
    retryable: false,
    remedy:
      "Give each act a dedupe key of its own: the same key with another recipient, target, amount or currency is never carried out.",
  },
  effect_in_progress: {
    status: 409,
    title: "The same call is being made at this moment",
    retryable: true,
    remedy: "Ask again in a moment: the result of the call that is under way is kept.",
  },
  effect_settled: {
    status: 409,
    title: "The effect is not in a state in which this can be done",
    retryable: false,
    remedy:
      "Look at it (`ukemi effects show`): held ones are resolved, planned ones cancelled, failed ones replayed as dead letters.",
  },
  effect_uncertain: {
    status: 409,
    title: "Nobody knows whether the call was heard",
    retryable: false,
    remedy:
      "Find out at the peer whether it happened, then say so: `ukemi effects resolve`. A new key would make a second call.",
  },
  effect_failed: {
    status: 422,
    title: "The call was made before, and failed for good",
    retryable: false,
    remedy: "Use a new key where the call may be made again.",
  },
  effect_content_removed: {
    status: 410,
    title: "What the effect held was removed",
    retryable: false,
    remedy:
      "It was done, and is not done again: ask the peer for what it gave then. `ukemi effects show` says when it was removed, effectDays for how long it is kept.",
  },
  internal: {
    status: 500,
    title: "A fault in Ukemi",
    retryable: true,
    remedy: "Report it with the request id: this is a bug.",
  },
  handler_failed: {
    status: 500,
    title: "The event could not be processed",
    retryable: true,
    remedy: "Send it again: nothing was stored. The handler's error is in the server's log.",
  },
  body_altered: {
    status: 500,
    title: "A stored body was changed",
    retryable: false,
    remedy:
      "Find out who writes to Ukemi's tables, restore the row from a backup, then replay the dead letter.",
  },
  body_sealed: {
    status: 503,
    title: "A sealed body cannot be opened",
    retryable: true,
    remedy: "Add the master key that the message names to UKEMI_BODY_KEYS (bodyKeys), and start again.",
  },
  store_unavailable: {
    status: 503,
    title: "The event could not be stored",
    retryable: true,
    remedy: "Send it again after Retry-After; run `ukemi doctor` on the server.",
  },
  overloaded: {
    status: 503,
    title: "Too much is waiting to be stored",
    retryable: true,
    remedy: "Send it again after Retry-After; look at ukemi_inbox_commit_duration_seconds.",
  },
  sender_unreachable: {
    status: 503,
    title: "The sender's own service does not answer",
    retryable: true,
    remedy:
      "Send it again after Retry-After. On the server: let it reach the host that its log line names, over HTTPS.",
  },
  database_away: {
    status: 503,
    title: "The store cannot be asked now",
    retryable: true,
    remedy: "Try again after Retry-After; run `ukemi doctor` on the server.",
  },
  contended: {
    status: 503,
    title: "Somebody else holds what this needs",
    retryable: true,
    remedy: "Try again in a moment; `select * from pg_locks where not granted` shows who waits for whom.",
  },
  stopping: {
    status: 503,
    title: "The server is shutting down",
    retryable: true,
    remedy: "Send it again: another process or the next start will take it.",
  },
  transaction_over: {
    title: "The handler's transaction cannot be used like this",
    retryable: false,
    remedy: "Use tx only while the handler runs, and leave COMMIT and ROLLBACK to its return or throw.",
  },
  invalid_option: {
    title: "An option is not valid",
    retryable: false,
    remedy: "Correct the option that the message names.",
  },
  database_unreachable: {
    title: "PostgreSQL cannot be reached",
    retryable: true,
    remedy: "Check DATABASE_URL, that the server runs, and that this machine may connect.",
  },
  permission_denied: {
    title: "The database user lacks a right",
    retryable: false,
    remedy: "Connect as the owner of the database, or grant the right that the message names.",
  },
  database_read_only: {
    title: "The database takes no writes",
    retryable: true,
    remedy: "Point DATABASE_URL at the primary, not at a standby.",
  },
  postgres_unsupported: {
    title: "This PostgreSQL cannot be used",
    retryable: false,
    remedy: "Use PostgreSQL 15 or newer with a UTF8 database.",
  },
  unsafe_durability: {
    title: "This PostgreSQL may lose committed data",
    retryable: false,
    remedy: "Set fsync = on, or pass allowUnsafeDurability where losing events is acceptable.",
  },
  schema_missing: {
    title: "The database has no Ukemi schema, or an old one",
    retryable: false,
    remedy: "Run `ukemi migrate`, or start with --migrate.",
  },
  schema_too_new: {
    title: "The database schema is newer than this version understands",
    retryable: false,
    remedy: "Update the ukemi package to the version that migrated the database.",
  },
  migration_changed: {
    title: "A migration that was applied has changed since",
    retryable: false,
    remedy: "Restore the migration file: migrations are append-only.",
  },
  embedded_unsupported: {
    title: "There is no embedded PostgreSQL for this machine",
    retryable: false,
    remedy: "Set DATABASE_URL to a PostgreSQL 15 or newer.",
  },
  embedded_failed: {
    title: "The embedded PostgreSQL did not start",
    retryable: true,
    remedy: "Read the message and the log file it names, or set DATABASE_URL.",
  },
  data_folder_mismatch: {
    title: "The data folder belongs to another PostgreSQL version",
    retryable: false,
    remedy: "Use the ukemi version that made it, dump and restore, or choose another data folder.",
  },
  data_folder_in_use: {
    title: "The data folder is in use",
    retryable: true,
    remedy: "Stop the process that the message names, or choose another data folder.",
  },
  disk_full: {
    title: "The disk is full",
    retryable: true,
    remedy: "Free space on the disk that holds the data folder, then start again.",
  },
  data_folder_unusable: {
    title: "The data folder cannot be used",
    retryable: false,
    remedy: "Give this user the right to read and write it, or choose another with --data.",
  },
  spool_locked: {
    title: "Another exporter works on this spool",
    retryable: true,
    remedy: "Wait until it has finished, or give each exporter a data folder of its own (--data).",
  },
  spool_failed: {
    title: "The spool cannot be used",
    retryable: true,
    remedy: "Give this user the right to read and write the folder, or choose another with --data.",
  },
  cannot_listen: {
    title: "The server cannot listen there",
    retryable: true,
    remedy: "Choose another --port or --host, or stop the process that has the port.",
  },
  server_unreachable: {
    title: "No server answers",
    retryable: true,
    remedy: "Start one (npm start in a clone, or npx ukemi dev), or name another with --url.",
  },
} as const satisfies Record<string, CatalogueEntry>;

/** A code of the catalogue. */
export type ErrorCode = keyof typeof catalogue;

/** An expected failure with a code of the catalogue. The message never carries secrets or personal data. */
export class UkemiError extends Error {
  override readonly name = "UkemiError";
  readonly code: ErrorCode;
  /** What the reader should do about it. */
  readonly remedy: string;

  constructor(code: ErrorCode, detail?: string, options?: { cause?: unknown; remedy?: string }) {
    super(detail ?? catalogue[code].title, options);
    this.code = code;
    this.remedy = options?.remedy ?? catalogue[code].remedy;
  }

  /** Whether the same request may succeed later, unchanged. */
  get retryable(): boolean {
    return catalogue[this.code].retryable;
  }

  /** The HTTP status; 500 for errors that should never have reached an HTTP caller. */
  get status(): number {
    const entry: CatalogueEntry = catalogue[this.code];
    return entry.status ?? 500;
  }
}
