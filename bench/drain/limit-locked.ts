// The limit without a claim: jobs are locked, run and completed in one transaction, BENCH_BATCH of them in each of several lanes.
// Nobody sees what runs, a crash counts against nobody, and a handler that takes its time holds the others' rows.
import { connectLanes } from "./claim.ts";
import { answerDrain, HAS_EFFECT, noteHandled, openBenchPool } from "./drainer.ts";
import { countUnfinished, storeReadyEvents, SUBSCRIPTION } from "./events.ts";
import { EFFECT, type DrainEvent } from "./job.ts";

const [batch, lanes] = process.env.BENCH_BATCH!.split("x").map(Number) as [number, number];

const LOCK = `
with taken as materialized (
  select id, event from ukemi.jobs
  where queue = 'default' and subscription = '${SUBSCRIPTION}' and state = 'ready' and recoveries = 0
  order by priority desc, coalesce(tenant, ''), run_at, id
  limit $1
  for update skip locked
)
select t.id, b.body
from taken t
join ukemi.events e on e.id = t.event
join ukemi.event_bodies b on b.event = e.id and b.received_at = e.received_at`;

const COMPLETE = `
update ukemi.jobs j
set state = 'done', attempt = attempt + 1, started_at = now(), finished_at = now()
from unnest($1::bigint[]) as d (id)
where j.id = d.id`;

const pool = openBenchPool(1);
const clients = await connectLanes(lanes, true);

/** Returns how many there were. */
async function workOnSome(client: (typeof clients)[number]): Promise<number> {
  const begun = client.query("begin");
  const { rows } = await client.query<{ id: string; body: Buffer }>({
    name: "lock",
    text: LOCK,
    values: [batch],
  });
  const effects = rows.map(async ({ body }) => {
    const event = JSON.parse(body.toString()) as DrainEvent;
    noteHandled();
    if (HAS_EFFECT) await client.query({ name: "effect", text: EFFECT, values: [event.data.object.account] });
  });
  const completed = client.query({ name: "complete", text: COMPLETE, values: [rows.map(({ id }) => id)] });
  await Promise.all([begun, ...effects, completed, client.query("commit")]);
  return rows.length;
}

await answerDrain({
  store: (first, count) => storeReadyEvents(pool, first, count),
  unfinished: () => countUnfinished(pool),
  work() {
    const over = new AbortController();
    const running = clients.map(async (client) => {
      while (!over.signal.aborted) if ((await workOnSome(client)) === 0) return;
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
