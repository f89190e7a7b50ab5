// The quarantine is bounded: the oldest rejections go when new ones come.
import { expect, test } from "vitest";
import { keepRejections, type Rejection } from "../../src/storage/rejections.ts";
import { createDatabase } from "../support/database.ts";

const rejection = (requestId: string): Rejection => ({
  source: "stripe",
  reason: "wrong_secret",
  diagnosis: "no configured secret matches",
  address: "203.0.113.7",
  requestId,
  headers: "{}",
  bodyBytes: 3,
  bodySample: Buffer.from([0, 255, 1]),
});

test("keeps the newest rows up to its limit", async () => {
  const { pool } = await createDatabase();
  for (let round = 0; round < 5; round++) {
    const batch = Array.from({ length: 10 }, (_, index) => rejection(`r${round * 10 + index}`));
    await keepRejections(pool, batch, 25);
  }
  const { rows } = await pool.query<{ request_id: string }>(
    "select request_id from ukemi.rejections order by id",
  );
  expect(rows.map((row) => row.request_id)).toEqual(
    Array.from({ length: 25 }, (_, index) => `r${index + 25}`),
  );
});

test("keeps the bytes of a body as they were", async () => {
  const { pool } = await createDatabase();
  await keepRejections(pool, [rejection("r")], 10);
  const { rows } = await pool.query("select body_sample from ukemi.rejections");
  expect(rows).toEqual([{ body_sample: Buffer.from([0, 255, 1]) }]);
});

test("keeps nothing where its limit is 0", async () => {
  const { pool } = await createDatabase();
  await keepRejections(pool, [rejection("r")], 0);
  const { rows } = await pool.query("select count(*)::int as kept from ukemi.rejections");
  expect(rows).toEqual([{ kept: 0 }]);
});
