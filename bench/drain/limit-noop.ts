// The limit of no-op handlers: two lanes that claim 500 jobs with their events and complete them, each time two statements.
import { claimByHand, connectLanes, FENCE } from "./claim.ts";
import { answerDrain, noteHandled, openBenchPool } from "./drainer.ts";
import { countUnfinished, storeReadyEvents } from "./events.ts";

const LANES = 2;
const BATCH = 500;

const pool = openBenchPool(1);
const clients = await connectLanes(LANES, false);

await answerDrain({
  store: (first, count) => storeReadyEvents(pool, first, count),
  unfinished: () => countUnfinished(pool),
  work() {
    const over = new AbortController();
    const running = clients.map(async (client) => {
      while (!over.signal.aborted) {
        const jobs = await claimByHand(client, BATCH);
        if (jobs.length === 0) return;
        jobs.forEach(noteHandled);
        const values = [jobs.map(({ id }) => id), jobs.map(({ token }) => token)];
        await client.query({ name: "fence", text: FENCE, values });
      }
    });
    return Promise.resolve(async () => {
      over.abort();
      await Promise.all(running);
    });
  },
  async end() {
    await Promise.all(clients.map((client) => client.end()));
    await pool.end();
  },
});
