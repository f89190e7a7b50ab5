// /api/v1/suppressions: whom no mail goes to, each tenant's own list.
import { expect, test } from "vitest";
import { createClient } from "../../src/client/client.ts";
import { readAudit } from "../support/dead.ts";
import { startLedger } from "../support/ledger.ts";
import { makeToken } from "../support/token.ts";

async function start() {
  const world = await startLedger();
  return { ...world, client: createClient({ url: world.url }) };
}

test("adds, lists and removes addresses; the audit shows none of them", async () => {
  const { client, pool } = await start();
  const reason = "asked us to";
  expect(await client.addSuppression({ address: " Jane@Example.com ", reason })).toEqual({
    address: "jane@example.com",
    tenant: null,
    suppressed: true,
    changed: true,
  });
  expect(await client.addSuppression({ address: "jane@example.com", reason })).toMatchObject({
    changed: false,
  });
  await client.addSuppression({ address: "jane@example.com", tenant: "org_1", reason });
  await client.addSuppression({ address: "adam@example.com", reason });
  const { items } = await client.listSuppressions();
  expect(items).toEqual([
    { address: "adam@example.com", tenant: null, reason: "operator", effect: null, at: expect.any(String) },
    { address: "jane@example.com", tenant: null, reason: "operator", effect: null, at: expect.any(String) },
    {
      address: "jane@example.com",
      tenant: "org_1",
      reason: "operator",
      effect: null,
      at: expect.any(String),
    },
  ]);
  const first = await client.listSuppressions({ limit: 2 });
  expect((await client.listSuppressions({ limit: 2, cursor: first.cursor })).items).toEqual(items.slice(2));
  expect((await client.listSuppressions({ address: "JANE@example.com" })).items).toHaveLength(2);
  expect((await client.listSuppressions({ tenant: "org_1" })).items).toEqual(items.slice(2));
  expect(await client.removeSuppression({ address: "jane@example.com", reason: "a mistake" })).toMatchObject({
    suppressed: false,
    changed: true,
  });
  await expect(
    client.removeSuppression({ address: "jane@example.com", reason: "twice" }),
  ).rejects.toMatchObject({
    status: 404,
  });
  const audit = await readAudit(pool);
  expect(audit.map(({ action, target, tenant }) => [action, target, tenant])).toEqual([
    ["suppression.added", "j***@e***.com", null],
    ["suppression.added", "j***@e***.com", "org_1"],
    ["suppression.added", "a***@e***.com", null],
    ["suppression.removed", "j***@e***.com", null],
  ]);
  expect(JSON.stringify(audit)).not.toMatch(/jane@|adam@/i);
});

test("refuses what is no mailbox, and what nobody would read", async () => {
  const { client, pool, url } = await start();
  for (const address of [
    "jane",
    "jane@",
    "a@b, c@d",
    "Jane <jane@example.com>",
    "jane@example.com\r\nBcc: x@y.jp",
  ])
    await expect(client.addSuppression({ address, reason: "x" }), address).rejects.toMatchObject({
      status: 400,
    });
  await expect(client.addSuppression({ address: "a@example.com", reason: "" })).rejects.toMatchObject({
    status: 400,
  });
  expect((await fetch(`${url}/api/v1/suppressions?cursor=nothing`)).status).toBe(400);
  expect((await pool.query("select from ukemi.mail_suppressions")).rowCount).toBe(0);
});

test("another tenant's token sees and changes nothing", async () => {
  const { client, ukemi, url, pool } = await start();
  for (const tenant of ["org_1", "org_2", undefined])
    await client.addSuppression({ address: "jane@example.com", ...(tenant && { tenant }), reason: "x" });
  const bound = createClient({
    url,
    token: await makeToken(ukemi, { scope: "operate", tenants: ["org_1"] }),
  });
  expect((await bound.listSuppressions()).items.map(({ tenant }) => tenant)).toEqual(["org_1"]);
  await expect(bound.listSuppressions({ tenant: "org_2" })).rejects.toMatchObject({ status: 403 });
  const theirs = { address: "jane@example.com", tenant: "org_2", reason: "x" };
  await expect(bound.removeSuppression(theirs)).rejects.toMatchObject({ status: 403 });
  await expect(bound.addSuppression({ ...theirs, address: "b@example.com" })).rejects.toMatchObject({
    status: 403,
  });
  const nobodys = { address: "jane@example.com", reason: "x" };
  await expect(bound.removeSuppression(nobodys)).rejects.toMatchObject({ status: 400 });
  await bound.removeSuppression({ ...nobodys, tenant: "org_1" });
  const { rows } = await pool.query("select tenant from ukemi.mail_suppressions order by tenant");
  expect(rows).toEqual([{ tenant: "" }, { tenant: "org_2" }]);
});
