// Group commit: events that arrive while a commit is under way share the next one. Each is answered after its commit.
import { crashPoint } from "../crash-point.ts";
import { sleep, steadyMs } from "../clock.ts";
import type { NewEvent, StoredBatch, StoredEvent } from "../storage/events.ts";
import { classifyFault, type Fault } from "../storage/faults.ts";
import { createWaitingRoom, type Waiting } from "./waiting-room.ts";

/** One connection to the store, as a lane uses it. */
export interface LaneConnection {
  store(events: readonly NewEvent[]): Promise<Pick<StoredBatch, "events" | "databaseMs">>;
  onLost(callback: () => void): void;
  destroy(): void;
  end(): Promise<void>;
}

/** A fault that a lane has met. */
export interface LaneFault {
  readonly fault: Fault;
  readonly doing: "connecting to PostgreSQL" | "storing received events";
  readonly error: unknown;
  /** Which one in a row this is. */
  readonly failures: number;
}

export interface GroupCommitOptions {
  readonly connect: () => Promise<LaneConnection>;
  /** How many commits may be under way at once. */
  readonly lanes: number;
  /** An event that is not committed after this time is answered with 503. */
  readonly deadlineMs: number;
  readonly batchRowsMax: number;
  readonly batchBytesMax: number;
  /** How many may wait before new ones are turned away. */
  readonly waitingRowsMax: number;
  /** Called after each commit with the database's time and the steady time at which the statement was sent. */
  readonly onCommit?: (databaseMs: number, sentAt: number) => void;
  readonly onFault?: (fault: LaneFault) => void;
  /** Called when a lane stores again after faults of the infrastructure, with how long that took. */
  readonly onRecovery?: (afterMs: number) => void;
}

export interface GroupCommit {
  /** Resolves after the commit. Rejects with a retryable UkemiError, or with the database's error if it refuses this event. */
  store(event: NewEvent): Promise<StoredEvent>;
  /** How many events wait for a commit now. */
  waiting(): number;
  /** Commits what waits, then closes the lanes. */
  stop(): Promise<void>;
}

/** Starts the lanes; they connect when the first event comes and again after every loss. */
export function createGroupCommit(options: GroupCommitOptions): GroupCommit {
  const room = createWaitingRoom(options);
  const lanes = Array.from({ length: options.lanes }, () => runLane(room, options));
  return {
    store: room.enter,
    waiting: room.size,
    async stop() {
      room.close();
      await Promise.all(lanes);
    },
  };
}

type Room = ReturnType<typeof createWaitingRoom>;

/** One lane: take a batch, commit it, answer; for ever. It ends when the room is closed and empty. */
async function runLane(room: Room, options: GroupCommitOptions): Promise<void> {
  let connection: LaneConnection | undefined;
  let failures = 0;
  let failingSince = 0;
  for (;;) {
    const batch = await room.take();
    if (batch.length === 0) break;
    let doing: LaneFault["doing"] = "connecting to PostgreSQL";
    try {
      const open = (connection ??= await options.connect());
      open.onLost(() => {
        if (connection === open) connection = undefined; // a late word from an old connection must not drop the new one
      });
      doing = "storing received events";
      await commit(open, batch, room, options);
      if (failures > 0) options.onRecovery?.(steadyMs() - failingSince);
      failures = 0;
    } catch (error) {
      // The database is away, or the commit's outcome is unknown. The events wait for their deadline and are stored again
      // under the same ids: what was committed after all then counts as stored, not as a duplicate.
      connection?.destroy();
      connection = undefined;
      failures += 1;
      if (failures === 1) failingSince = steadyMs();
      options.onFault?.({ fault: "infrastructure", doing, error, failures });
      room.putBack(batch);
      await sleep(Math.min(1000, 25 * 2 ** failures));
    }
  }
  await connection?.end().catch(() => {});
}

/**
 * Commits a batch. What the database refuses as a whole is halved until the guilty event is alone: all halves of one size
 * before the next smaller ones, so that the innocent are stored first. Throws only for faults of the infrastructure.
 */
async function commit(
  connection: LaneConnection,
  batch: readonly Waiting[],
  room: Room,
  options: GroupCommitOptions,
): Promise<void> {
  const parts = [batch];
  for (let next = parts.shift(); next; next = parts.shift()) {
    const part = next.filter((waiting) => !waiting.settled());
    if (part.length === 0) continue;
    try {
      const stored = await storeInTime(connection, part, options);
      part.forEach((waiting, index) => waiting.resolve(stored[index]!));
    } catch (error) {
      const fault = classifyFault(error);
      if (fault === "infrastructure") throw error;
      options.onFault?.({ fault, doing: "storing received events", error, failures: 1 });
      if (part.length > 1) parts.push(...halvesOf(part));
      else if (fault === "refused") part[0]!.reject(error);
      else room.putAside(part[0]!); // somebody holds a lock: its turn comes again
    }
  }
}

function halvesOf<T>(items: readonly T[]): [T[], T[]] {
  const middle = Math.ceil(items.length / 2);
  return [items.slice(0, middle), items.slice(middle)];
}

/** Cuts the connection when a commit takes longer than the deadline: a peer that went silent would hold the lane for ever. */
async function storeInTime(
  connection: LaneConnection,
  batch: readonly Waiting[],
  options: GroupCommitOptions,
): Promise<readonly StoredEvent[]> {
  const watchdog = setTimeout(() => connection.destroy(), options.deadlineMs);
  const sentAt = steadyMs();
  try {
    crashPoint("inbox.before_commit");
    const { events, databaseMs } = await connection.store(batch.map((waiting) => waiting.event));
    crashPoint("inbox.after_commit");
    options.onCommit?.(databaseMs, sentAt);
    return events;
  } finally {
    clearTimeout(watchdog);
  }
}
