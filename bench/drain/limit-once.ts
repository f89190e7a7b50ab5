// The limit of "exactly once": begin, the UPDATE, a fence that raises, and commit, sent in one flush (pipelined) by several
// lanes, and jobs that were claimed ahead. BENCH_BATCH effects share a commit; with 1, each has its own. No
// audit, no time limits, no retries, no leases that are kept alive.
import type { Writable } from "node:stream";
import type pg from "pg";
import { claimByHand, connectLanes, FENCE, FENCE_ONE, type Claimed } from "./claim.ts";
import { answerDrain, noteHandled, openBenchPool } from "./drainer.ts";
import { countUnfinished, storeReadyEvents } from "./events.ts";
import { EFFECT } from "./job.ts";

const [batch, lanes] = process.env.BENCH_BATCH!.split("x").map(Number) as [number, number];
const CLAIM_ROWS = 500;

/** Hands out claimed jobs, and claims more before they run out. */
function createSupply(client: pg.Client) {
  let ready: Claimed[] = [];
  let claiming: Promise<void> | undefined;
  const claim = () => (claiming ??= claimMore());
  async function claimMore(): Promise<void> {
    const more = await claimByHand(client, CLAIM_ROWS);
    ready = [...ready, ...more];
    claiming = undefined;
  }
  return {
    async take(most: number): Promise<Claimed[]> {
      if (ready.length < CLAIM_ROWS) void claim();
      if (ready.length === 0) await claim();
      return ready.splice(0, most);
    },
    left: () => Promise.resolve(claiming).then(() => ready),
  };
}

async function commit(client: pg.Client, jobs: readonly Claimed[]): Promise<void> {
  const run = (query: string | pg.QueryConfig<unknown[]>) => client.query(query as string);
  const effects = jobs.map(({ event }) => ({
    name: "effect",
    text: EFFECT,
    values: [event.data.object.account],
  }));
  const { stream } = (client as unknown as { connection: { stream: Writable } }).connection;
  stream.cork();
  process.nextTick(() => stream.uncork());
  const answers = await Promise.all(["begin", ...effects, fenceOf(jobs), "commit"].map(run));
  if (answers.at(-1)!.command !== "COMMIT") throw new Error("the transaction was rolled back");
  jobs.forEach(noteHandled);
}

function fenceOf(jobs: readonly Claimed[]): pg.QueryConfig<unknown[]> {
  if (batch === 1) return { name: "fence", text: FENCE_ONE, values: [jobs[0]!.id, jobs[0]!.token] };
  return { name: "fence", text: FENCE, values: [jobs.map(({ id }) => id), jobs.map(({ token }) => token)] };
}

const pool = openBenchPool(1);
const [claimer] = await connectLanes(1, false);
const clients = await connectLanes(lanes, true);

await answerDrain({
  store: (first, count) => storeReadyEvents(pool, first, count),
  unfinished: () => countUnfinished(pool),
  async work() {
    const supply = createSupply(claimer!);
    const over = new AbortController();
    const running = clients.map(async (client) => {
      while (!over.signal.aborted) {
        const jobs = await supply.take(batch);
        if (jobs.length === 0) return;
        await commit(client, jobs);
      }
    });
    return async () => {
      over.abort();
      await Promise.all(running);
      await supply.left();
      await pool.query(
        `update ukemi.jobs set state = 'ready', lease_until = null, lease_token = null, worker = null
         where state = 'running'`,
      );
    };
  },
  async end() {
    await Promise.all([claimer!, ...clients].map((client) => client.end()));
    await pool.end();
  },
});
