// Holding up the store: another session keeps writers out until it lets go.
import { onTestFinished } from "vitest";
import { connect } from "../../src/storage/postgres.ts";
import { LIMITS } from "./store.ts";

/** Locks ukemi.events against inserts; the end of the test lets go in any case. */
export async function lockEvents(url: string): Promise<{ release(): Promise<void> }> {
  const session = await connect(url, LIMITS);
  onTestFinished(() => session.end());
  await session.query("begin; lock table ukemi.events in share mode");
  return {
    async release() {
      await session.query("commit");
    },
  };
}
