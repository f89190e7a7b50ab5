// What every job of the drain contests is about: a Stripe event of the usual size, and the row that its handler changes.

/** How many rows there are; neighbouring jobs change different ones. */
export const ACCOUNTS = 10_000;

/** Where the numbers of this process's events begin: several may store into one database, one after the other. */
export const FIRST_NUMBER = Number(process.env.BENCH_FIRST ?? 0);

/** The effect, as a handler writes it. */
export const EFFECT = "update accounts set balance = balance + 1 where id = $1";

/** An event as a handler sees it. */
export interface DrainEvent {
  readonly id: string;
  readonly data: { readonly object: { readonly account: number } };
}

const BODY_BYTES = 1500;
const ID = "evt_drain_@number";
const ACCOUNT = '"@account"';

/** The event with holes in it: one text for those who make events by SQL and for those who cannot. */
export const TEMPLATE = templateOf(BODY_BYTES);

function templateOf(bytes: number): string {
  const event = {
    id: ID,
    object: "event",
    api_version: "2026-10-28.acacia",
    created: 1_794_800_000,
    type: "payment_intent.succeeded",
    livemode: true,
    pending_webhooks: 1,
    request: { id: "req_bench", idempotency_key: null },
    data: { object: { id: "pi_@number", object: "payment_intent", account: "@account", description: "" } },
  };
  event.data.object.description = "x".repeat(bytes - JSON.stringify(event).length);
  return JSON.stringify(event);
}

/** SQL: the text of the event with this number; `$1` is the template. */
export const eventSql = (number: string, template = "$1::text") =>
  `replace(replace(${template}, '@number', (${number})::text), '${ACCOUNT}', ((${number}) % ${ACCOUNTS} + 1)::text)`;

/** The same without SQL. */
export function eventOf(number: number): DrainEvent {
  const text = TEMPLATE.replaceAll("@number", String(number)).replace(
    ACCOUNT,
    String((number % ACCOUNTS) + 1),
  );
  return JSON.parse(text) as DrainEvent;
}
