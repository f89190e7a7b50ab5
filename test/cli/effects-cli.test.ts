// `ukemi effects`, `suppressions` and `destinations` as a support person or an operator meets them.
import { expect, test } from "vitest";
import { runCli } from "../support/cli.ts";
import { createDatabase } from "../support/database.ts";
import { readAudit } from "../support/dead.ts";
import { insertEffect, readStates } from "../support/ledger.ts";

async function start() {
  const store = await createDatabase();
  return { ...store, ukemi: (...args: string[]) => runCli(args, { DATABASE_URL: store.url }) };
}

test("the mail did not arrive: says of each mail to an address what became of it", async () => {
  const { ukemi, pool } = await start();
  expect((await ukemi("effects", "--to", "jane@example.com")).stdout).toBe("There are no effects here.\n");
  const at = new Date("2026-11-15T09:00:00Z");
  const sent = await insertEffect(pool, {
    ended_at: at,
    planned_at: at,
    receipt: '{"response":"250 2.0.0 OK 17"}',
  });
  await insertEffect(pool, { feedback: "bounced", feedback_at: at, receipt: '{"response":"250 OK"}' });
  await insertEffect(pool, { state: "cancelled", reason: "switched off by the recipient" });
  await insertEffect(pool, {
    state: "suppressed",
    reason: "the address is on the list of those not to write to: bounce",
  });
  await insertEffect(pool, { state: "suppressed", suppressed_by: sent });
  await insertEffect(pool, { state: "failed", reason: "SMTP 550: no such mailbox" });
  const held = await insertEffect(pool, {
    state: "held",
    reason: "the connection broke after the mail was given",
  });
  await insertEffect(pool, { state: "planned", after: held });
  await insertEffect(pool, { target: "other@example.com" });
  const { stdout, code } = await ukemi("effects", "--to", "Jane@example.com");
  expect(code).toBe(0);
  const lines = stdout.split("\n");
  expect(lines[0]).toBe("8 mails to Jane@example.com, newest first:");
  const words = [
    `not sent yet; waits for effect ${held}, which is held`,
    `HELD, nobody knows whether it was sent: the connection broke after the mail was given. A person must find out: ukemi effects resolve ${held}`,
    "NOT SENT: SMTP 550: no such mailbox",
    `not sent a second time: the same was intended before, as ${sent}`,
    "NOT SENT: the address is on the list of those not to write to: bounce",
    "not sent: switched off by the recipient",
    "It BOUNCED 2026-11-15 09:00:00Z: it did not reach the mailbox",
    "2026-11-15 09:00:00Z  receipt  sent 2026-11-15 09:00:00Z",
  ];
  for (const [index, said] of words.entries()) expect(lines[index + 2]).toContain(said);
  expect(stdout).toContain("the mail server took it: 250 2.0.0 OK 17");
  expect(stdout).not.toContain("other@");
  const json = JSON.parse((await ukemi("effects", "--to", "jane@example.com", "--json")).stdout) as {
    items: unknown[];
  };
  expect(json.items).toHaveLength(8);
  const table = await ukemi("effects", "--kind", "email", "--state", "failed");
  expect(table.stdout).toMatch(/^id +intended +kind +state +to +event +what\n/);
  const shown = await ukemi("effects", "show", sent);
  expect(shown.stdout).toMatch(/^effect +[0-9a-f-]{36} {2}email, done$/m);
  expect(shown.stdout).toMatch(/^mail +receipt, in en$/m);
  expect(shown.output).not.toContain("1234");
  expect(await ukemi("effects", "show", "17")).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("There is no effect with this id."),
  });
});

test("resolves and cancels with a reason, after a look, and says why it cannot", async () => {
  const { ukemi, pool } = await start();
  const held = await insertEffect(pool, {
    state: "held",
    attempt: 1,
    uncertainties: 1,
    begun_at: new Date(),
  });
  const next = await insertEffect(pool, { state: "planned", after: held });
  expect(await ukemi("effects", "resolve", held, "--reason", "x")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("--as"),
  });
  expect(await ukemi("effects", "resolve", held, "--as", "done")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("--reason must say why"),
  });
  expect(await ukemi("effects", "resolve", held, "--as", "maybe", "--reason", "x")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("done, failed, again"),
  });
  const dry = await ukemi("effects", "resolve", held, "--as", "done", "--dry-run");
  expect(dry.stdout).toContain(
    "It would count as done, and never be tried again. 1 that waited for it would begin.",
  );
  expect((await ukemi("effects", "resolve", held, "--as", "done", "--reason", "x")).code).toBe(1);
  expect(await readStates(pool)).toEqual({ [held]: "held", [next]: "planned" });
  const done = await ukemi("effects", "resolve", held, "--as", "done", "--reason", "she has it", "--yes");
  expect(done).toMatchObject({ code: 0, stdout: `The effect ${held} is done.\n` });
  const again = await ukemi("effects", "resolve", held, "--as", "done", "--reason", "she has it", "--yes");
  expect(again).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("The effect cannot be resolved: it is done."),
  });
  const cancelled = await ukemi("effects", "cancel", next, "--reason", "void", "--yes", "--json");
  expect(JSON.parse(cancelled.stdout)).toMatchObject({
    preview: { id: next },
    result: { state: "cancelled", followers: [] },
  });
  expect(await readStates(pool)).toEqual({ [held]: "done", [next]: "cancelled" });
  const { rows } = await pool.query("select state from ukemi.jobs");
  expect(rows).toEqual([{ state: "cancelled" }]);
  expect((await readAudit(pool)).map(({ action }) => action)).toEqual([
    "effect.resolved",
    "effect.cancelled",
  ]);
});

test("keeps the list of addresses that get no mail", async () => {
  const { ukemi } = await start();
  expect((await ukemi("suppressions")).stdout).toBe("There are no such addresses on the list.\n");
  const yes = ["--reason", "asked us to", "--yes"];
  expect((await ukemi("suppressions", "add", "Jane@Example.com", ...yes)).stdout).toBe(
    "jane@example.com gets no mail.\n",
  );
  expect((await ukemi("suppressions", "add", "jane@example.com", ...yes)).stdout).toBe(
    "jane@example.com gets no mail, as before.\n",
  );
  expect((await ukemi("suppressions", "list")).stdout).toMatch(
    /^address +since +because +effect\njane@example.com +\d+ s ago +operator/,
  );
  expect(await ukemi("suppressions", "add", "jane", ...yes)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("The address must be one plain mailbox"),
  });
  expect((await ukemi("suppressions", "remove", "jane@example.com", ...yes)).stdout).toBe(
    "jane@example.com gets mail again.\n",
  );
  expect(await ukemi("suppressions", "remove", "jane@example.com", ...yes)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("not on the list"),
  });
});

test("shows, pauses and resumes destinations", async () => {
  const { ukemi, pool } = await start();
  expect((await ukemi("destinations")).stdout).toMatch(/^There are no destinations yet/);
  await insertEffect(pool, { state: "planned" });
  const name = "smtp://mail.example.com";
  expect((await ukemi("destinations")).stdout).toMatch(
    /^destination +sending +waiting +failures +state\nsmtp:\/\/mail.example.com +0 +1 +0 +well/,
  );
  const reason = ["--reason", "new password", "--yes"];
  expect((await ukemi("destinations", "pause", name, "--minutes", "30", ...reason)).stdout).toMatch(
    /^smtp.* is paused until \d{4}-/,
  );
  expect((await ukemi("destinations", "list")).stdout).toMatch(/PAUSED until .*, in 30 min: new password/);
  expect(
    await ukemi("destinations", "pause", "smtp://mial.example.com", "--minutes", "1", ...reason),
  ).toMatchObject({ code: 2, stderr: expect.stringContaining("did you mean smtp://mail.example.com?") });
  expect(await ukemi("destinations", "pause", name, "--minutes", "0", ...reason)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("--minutes must be a whole number from 1 to 43200"),
  });
  expect((await ukemi("destinations", "resume", name, ...reason)).stdout).toBe(
    `${name} takes effects; 0 go out now.\n`,
  );
  expect((await ukemi("destinations", "resume", name, ...reason)).stdout).toContain("as it was before");
});

test("a dead letter that is dropped: what never went out is cancelled, what nobody knows is held", async () => {
  const { ukemi, pool } = await start();
  const dead = async (state: string) => {
    const { rows } = await pool.query<{ id: string }>(
      `insert into ukemi.jobs (queue, kind, subscription, state, death, max_attempts, policy, run_at, finished_at, created_at)
       values ('effects.email', 'effect', 'effect.email', 'dead', 'crashed', 3, 'effect', ukemi.now(), ukemi.now(), ukemi.now())
       returning id`,
    );
    return insertEffect(pool, { state, job: rows[0]!.id });
  };
  const [planned, uncertain] = [await dead("planned"), await dead("uncertain")];
  const follower = await insertEffect(pool, { state: "planned", after: planned });
  const dropped = await ukemi("dead", "drop", "--all", "--reason", "a test", "--yes");
  expect(dropped).toMatchObject({ code: 0, stdout: expect.stringContaining("Dropped 2 dead letters.") });
  expect(await readStates(pool)).toEqual({
    [planned]: "cancelled",
    [uncertain]: "held",
    [follower]: "cancelled",
  });
  const { stdout } = await ukemi("effects", "--to", "jane@example.com");
  expect(stdout).toContain("not sent: what it waited for was given up: a test");
  expect(stdout).toContain("not sent: its job was dropped by an operator: a test");
  expect(stdout).toContain(`A person must find out: ukemi effects resolve ${uncertain}`);
  expect((await ukemi("effects", "show", uncertain)).stdout).toMatch(/effect\.held .* by cli:.*: a test/);
});
