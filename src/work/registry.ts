// The handlers of an application, by name, and the claims that they make on events.
import type { Performer } from "../effects/performer.ts";
import { UkemiError } from "../errors.ts";
import { registerSubscription } from "../storage/subscriptions.ts";
import type { Queryable } from "../storage/postgres.ts";
import {
  effectHandler,
  INLINE,
  matches,
  readHandler,
  type EventHandlerOptions,
  type Handler,
} from "./handler.ts";

export interface Registry {
  readonly handlers: ReadonlyMap<string, Handler>;
  addEventHandler(
    source: string,
    pattern: string,
    run: Handler["run"],
    options?: EventHandlerOptions<unknown>,
  ): void;
  addTask(name: string, run: Handler["run"], options?: EventHandlerOptions<unknown>): void;
  /** From here on this process carries out effects of the performer's kind. */
  addPerformer(performer: Performer): void;
  /** The task of this name, or an error that names those there are. */
  task(name: string): Handler;
  /** The handlers that want this event answered only after they ran. */
  inlineFor(source: string, type: string): readonly Handler[];
  /** From here on handlers cannot be added: receivers would not know of them. */
  close(): void;
}

export function createRegistry(): Registry {
  const handlers = new Map<string, Handler>();
  let closed = false;

  function add(handler: Handler): void {
    if (closed) {
      throw new UkemiError(
        "invalid_option",
        `The handler ${JSON.stringify(handler.name)} comes too late: add handlers before work().`,
      );
    }
    if (handlers.has(handler.name)) {
      throw new UkemiError(
        "invalid_option",
        `There are two handlers named ${JSON.stringify(handler.name)}: give each its own name, as in on(…, …, …, { name: "receipts" }).`,
      );
    }
    handlers.set(handler.name, handler);
  }

  return {
    handlers,
    addEventHandler(source, pattern, run, options = {}) {
      if (typeof pattern !== "string" || pattern === "" || pattern.length > 255) {
        throw new UkemiError("invalid_option", "An event type or pattern must be 1 to 255 characters.");
      }
      const target = { kind: "handler" as const, source, pattern };
      add(readHandler(target, options.name ?? `${source}/${pattern}`, run, options));
    },
    addTask: (name, run, options) => add(readHandler({ kind: "task" }, name, run, options)),
    addPerformer: (performer) => add(effectHandler(performer)),
    task(name) {
      const handler = handlers.get(name);
      if (handler?.target.kind === "task") return handler;
      const known = [...handlers.values()].flatMap((item) =>
        item.target.kind === "task" ? [item.name] : [],
      );
      throw new UkemiError(
        "invalid_option",
        `There is no task named ${JSON.stringify(name)}; ${known.length > 0 ? `there are ${known.join(", ")}` : "declare it with ukemi.task()"}.`,
      );
    },
    inlineFor: (source, type) =>
      [...handlers.values()].filter(
        ({ queue, target }) =>
          queue === INLINE &&
          target.kind === "handler" &&
          target.source === source &&
          matches(target.pattern, type),
      ),
    close: () => void (closed = true),
  };
}

/** Makes the handlers' claims known to every receiver. */
export async function registerHandlers(client: Queryable, handlers: Iterable<Handler>): Promise<void> {
  // in one order: two applications that change the same ones would deadlock
  const sorted = [...handlers].toSorted((a, b) => (a.name < b.name ? -1 : 1));
  for (const { name, target, queue, priority, policy, keyBy, ordered } of sorted) {
    if (target.kind !== "handler") continue;
    const { source, pattern } = target;
    const { maxAttempts, name: policyName } = policy;
    await registerSubscription(client, {
      name,
      source,
      pattern,
      queue,
      priority,
      maxAttempts,
      policy: policyName,
      keyBy,
      ordered,
    });
  }
}
