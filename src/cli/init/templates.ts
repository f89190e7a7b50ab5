// The files that `ukemi init` writes, as a reader will see them. Where TypeScript and JavaScript differ, it is by a line.
import type { Project } from "./project.ts";

/** Where the files go, and how they import each other. */
export interface Layout {
  readonly config: string;
  readonly handlers: string;
  readonly test: string;
  /** From the configuration file to the handlers. */
  readonly handlersImport: string;
  /** From the test to the configuration file. */
  readonly configFromTest: string;
}

/** The configuration file. */
export function configText({ manager }: Project, layout: Layout): string {
  return `// The configuration of Ukemi: options, who may send, and what is done with what they send.
//
//   ${manager.run} ukemi dev      runs all of it on this machine, with nothing to set up
//   ${manager.run} ukemi send     sends a signed test event to it (in another terminal)
//   ${manager.run} ukemi doctor   shows every option with where it came from, and says what is wrong
//
// Flags win over environment variables, and those over this file.
import { defineConfig, stripe } from "ukemi";
import { addPaymentHandlers } from "${layout.handlersImport}";

export default defineConfig({
  // Not set: an embedded PostgreSQL in the folder .ukemi, which is enough to develop with.
  // In production, the database of your application: then handlers and your own tables share a transaction.
  database: process.env.DATABASE_URL,

  sources: {
    // Received at /webhooks/stripe. The signing secret (whsec_…) is on the endpoint's page in Stripe's dashboard; keep it
    // in the environment, never in this file. While one is being rolled, give both, separated by a comma.
    // Where it is not set, \`ukemi dev\` makes one up.
    stripe: stripe({ secrets: (process.env.STRIPE_WEBHOOK_SECRET ?? "").split(",") }),
  },

  // Queues that need something else than the defaults, such as a service that bears only two calls at once:
  //   queues: { mail: { concurrency: 2 } },

  // Told of what a person should know at once, such as a dead letter. It is logged in any case.
  //   onAlert: (alert) => notify(alert),

  handlers(ukemi) {
    addPaymentHandlers(ukemi);
  },
});
`;
}

/** The handlers. */
export function handlersText({ language, manager }: Project): string {
  const typed = language === "typescript";
  const imports = typed
    ? 'import { terminal, type stripe, type Ukemi } from "ukemi";'
    : 'import { terminal } from "ukemi";';
  const type = "Ukemi<{ stripe: ReturnType<typeof stripe> }>";
  const head = typed
    ? `/** Says what is done about payments. */
export function addPaymentHandlers(ukemi: ${type}): void {`
    : `/**
 * Says what is done about payments.
 * @param {import("ukemi").Ukemi<{ stripe: ReturnType<typeof import("ukemi").stripe> }>} ukemi
 */
export function addPaymentHandlers(ukemi) {`;
  return `// What happens when Stripe tells of a payment.
${imports}

${head}
  ukemi.on("stripe", "payment_intent.succeeded", async ({ event, audit }) => {
    const intent = event.data.object; // typed by Stripe's own SDK, where it is installed

    // No retry can help: a dead letter at once, which a person looks at with \`${manager.run} ukemi dead\`.
    if (intent.amount_received === 0) throw terminal("nothing was paid");

    // Your own tables are written through \`tx\` (take it beside \`event\` above): one transaction with this job, so that
    // what is written happens once, however often the event arrives and whatever crashes.
    //   await tx.query("update orders set status = 'paid' where intent = $1", [intent.id]);
    //
    // Drizzle, Kysely, Knex and Prisma work in it too.

    // Something that must come first has not come yet: waits for it, and no attempt is burnt.
    //   throw notYet("the order has not been stored yet", { within: 60 * 60_000 });
    // A service asks for patience:
    //   throw retryAfter(30_000);
    // Anything else that is thrown is tried again after 1 s, 2 s and 4 s; then it is a dead letter.

    event.link({ payment: intent.id }); // the event is found by this id
    await audit("payment.paid", { target: intent.id, details: { amount: intent.amount_received } });
  });
}
`;
}

/** The test. In JavaScript, so that every Node runs it as it is. */
export function testText(layout: Layout): string {
  return `// What the handlers do, on a real PostgreSQL that is started for this test alone.
//
//   node --test ${layout.test}
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { startTrial } from "ukemi/testing";

const trial = await startTrial(new URL("${layout.configFromTest}", import.meta.url));
after(() => trial.stop());

const noted = "select action, details from ukemi.audit_log where target = $1";

test("notes a payment once, however often Stripe sends it", async () => {
  const event = { id: "evt_paid", amount: 4800, ids: { paymentIntent: "pi_paid" } };
  const first = await trial.send("payment_intent.succeeded", event);
  const again = await trial.send("payment_intent.succeeded", event);
  assert.deepEqual(first, { status: 204, duplicate: false });
  assert.deepEqual(again, { status: 204, duplicate: true });

  await trial.settled();
  assert.deepEqual(await trial.query(noted, ["pi_paid"]), [
    { action: "payment.paid", details: { amount: 4800 } },
  ]);
});

test("lays aside a payment of nothing, for a person to look at", async () => {
  const event = { id: "evt_zero", amount: 0, ids: { paymentIntent: "pi_zero" } };
  await trial.send("payment_intent.succeeded", event);

  await trial.settled();
  const { items } = await trial.ukemi.operate.dead.list();
  assert.deepEqual(
    items.map((job) => job.error_message),
    ["nothing was paid"],
  );
  assert.deepEqual(await trial.query(noted, ["pi_zero"]), []);
});
`;
}
