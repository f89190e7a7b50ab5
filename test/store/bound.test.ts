// Statements whose parameters are written straight into what is sent: the server must read what was meant, whatever it is.
import { createHash, randomBytes } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { askBound, type BoundStatement } from "../../src/storage/bound.ts";
import {
  all,
  BOOL,
  BYTEA,
  INT,
  one,
  TEXT,
  TIMESTAMPTZ,
  UUID,
  type Parameter,
} from "../../src/storage/message.ts";
import { createDatabase } from "../support/database.ts";
import { withConnection } from "../support/store.ts";

const ECHO = `
select
  array_to_json($1::text[]),
  (select json_agg(encode(b, 'hex') order by n) from unnest($2::bytea[]) with ordinality as t (b, n)),
  array_to_json($3::uuid[]),
  array_to_json($4::bool[]),
  array_to_json($5::int4[]),
  (select json_agg((extract(epoch from at) * 1000000)::int8::text order by n)
   from unnest($6::timestamptz[]) with ordinality as t (at, n)),
  $7::text, $8::uuid, $9::bool, $10::int4`;

/** Some of each kind, as many as there are. */
interface Given {
  readonly texts: readonly (string | null)[];
  readonly bytes: readonly (Buffer | null)[];
  readonly uuids: readonly (string | null)[];
  readonly bools: readonly (boolean | null)[];
  readonly ints: readonly (number | null)[];
  readonly dates: readonly (Date | null)[];
}

const listOf = <T>(value: fc.Arbitrary<T>) => fc.array(fc.option(value), { maxLength: 20 });

const given = fc.record<Given>({
  // what PostgreSQL can hold: no NUL, no half of a pair
  texts: listOf(fc.string({ unit: "grapheme", maxLength: 300 }).map((text) => text.replaceAll("\0", ""))),
  bytes: listOf(fc.uint8Array({ maxLength: 5000 }).map((bytes) => Buffer.from(bytes))),
  uuids: listOf(fc.uuid()),
  bools: listOf(fc.boolean()),
  ints: listOf(fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 })),
  // as far as events may say that they occurred, beyond where a number holds microseconds
  dates: listOf(
    fc.date({ min: new Date("-003000-01-01"), max: new Date("9999-12-31"), noInvalidDate: true }),
  ),
});

function parametersOf({ texts, bytes, uuids, bools, ints, dates }: Given): Parameter[] {
  return [
    all(TEXT, texts),
    all(BYTEA, bytes),
    all(UUID, uuids),
    all(BOOL, bools),
    all(INT, ints),
    all(TIMESTAMPTZ, dates),
    one(TEXT, texts[0] ?? null),
    one(UUID, uuids[0] ?? null),
    one(BOOL, bools[0] ?? null),
    one(INT, ints[0] ?? null),
  ];
}

/** What the server should read. */
function meant({ texts, bytes, uuids, bools, ints, dates }: Given): unknown[] {
  const listed = (list: readonly unknown[]) => (list.length === 0 ? null : list);
  return [
    texts,
    listed(bytes.map((one) => one && one.toString("hex"))),
    uuids,
    bools,
    ints,
    listed(dates.map((date) => date && String(BigInt(date.getTime()) * 1000n))),
    texts[0] ?? null,
    uuids[0] ?? null,
    bools[0] ?? null,
    ints[0] ?? null,
  ];
}

function asRead(row: readonly (string | null)[]): unknown[] {
  const [text, uuid, bool, int] = row.slice(6);
  return [
    ...row.slice(0, 6).map((json) => (json === null ? null : (JSON.parse(json) as unknown))),
    text,
    uuid,
    bool === null ? null : bool === "t",
    int === null ? null : Number(int),
  ];
}

test("the server reads what was meant, on a connection of our own and in somebody's transaction", async () => {
  const { url, pool } = await createDatabase();
  await withConnection(url, async (connection) => {
    const echo = async (values: Given) => {
      const statement = { name: "echo", text: ECHO, parameters: parametersOf(values) };
      expect(asRead(await askBound(connection, statement))).toEqual(meant(values));
      expect(asRead(await askBound(pool, { ...statement, name: undefined }))).toEqual(meant(values));
    };
    await fc.assert(fc.asyncProperty(given, echo), { numRuns: 150 });
  });
});

test("memory that is used again never mixes what two connections send, however large it is", async () => {
  const { url } = await createDatabase();
  const digest = async (connection: Parameters<typeof askBound>[0], bytes: Buffer) => {
    const [hex] = await askBound(connection, {
      name: "digest",
      text: "select encode(sha256($1), 'hex')",
      parameters: [one(BYTEA, bytes)],
    });
    expect(hex).toBe(createHash("sha256").update(bytes).digest("hex"));
  };
  // the larger ones are more than a socket takes at once
  const sizes = [10, 3_000_000, 70_000, 900_000, 1, 2_000_000, 65_530, 500_000];
  await withConnection(url, (left) =>
    withConnection(url, async (right) => {
      for (const [index, size] of sizes.entries()) {
        const other = sizes.at(-1 - index)!;
        await Promise.all([digest(left, randomBytes(size)), digest(right, randomBytes(other))]);
      }
    }),
  );
});

test("what the server refuses is told as its error, and the connection goes on", async () => {
  const { url } = await createDatabase();
  await withConnection(url, async (connection) => {
    const ask = (statement: Omit<BoundStatement, "name">) =>
      askBound(connection, { name: "ask", ...statement });
    const half = { text: "select 10 / $1::int4", parameters: [one(INT, 0)] };
    await expect(ask(half)).rejects.toMatchObject({ code: "22012" });
    expect(await ask({ ...half, parameters: [one(INT, 2)] })).toEqual(["5"]);
    const wrong = { name: "wrong", text: "select $1::int4 from nothing", parameters: [one(INT, 1)] };
    await expect(askBound(connection, wrong)).rejects.toMatchObject({ code: "42P01" });
    // a name whose text was refused stands for nothing
    expect(await askBound(connection, { ...wrong, text: "select $1::int4 + 1" })).toEqual(["2"]);
    const nul = { name: "nul", text: "select $1::text", parameters: [one(TEXT, "a\0b")] };
    await expect(askBound(connection, nul)).rejects.toMatchObject({ code: "22021" });
    expect(await askBound(connection, { ...nul, parameters: [one(TEXT, "a")] })).toEqual(["a"]);
  });
});

test("a value that cannot be written is told, and the connection goes on", async () => {
  const { url } = await createDatabase();
  await withConnection(url, async (connection) => {
    const ask = (value: number) =>
      askBound(connection, { name: "ask", text: "select $1::int4 + 1", parameters: [one(INT, value)] });
    await expect(ask(2 ** 40)).rejects.toThrow(RangeError);
    expect(await ask(1)).toEqual(["2"]);
    await expect(ask(2 ** 40)).rejects.toThrow(RangeError);
    expect(await ask(2)).toEqual(["3"]);
  });
});

test("a connection that is cut tells whoever waits", async () => {
  const { url } = await createDatabase();
  await withConnection(url, async (connection) => {
    const statement = { name: "slow", text: "select pg_sleep($1::int4)", parameters: [one(INT, 60)] };
    const asked = askBound(connection, statement);
    connection.destroy();
    await expect(asked).rejects.toThrow(/terminated|ended|closed/i);
    await expect(askBound(connection, statement)).rejects.toThrow(/not queryable|closed|terminated/i);
  });
});
