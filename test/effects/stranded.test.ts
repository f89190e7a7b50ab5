// An effect whose job has died while its call was under way is held: nobody else would find out how it ended.
import { expect, test } from "vitest";
import { createDatabase } from "../support/database.ts";
import { until } from "../support/until.ts";
import { makeUkemi } from "../support/work.ts";

test("a call under which the process died too often is held, and audited", async () => {
  const { url, pool } = await createDatabase();
  const { ukemi } = makeUkemi(url, { http: {} });
  const { id } = await ukemi.effects.http(null, { url: "https://example.com/", dedupe: "k" });
  // as the fourth crash leaves it
  await pool.query(
    "update ukemi.jobs set state = 'dead', death = 'crashed', recoveries = 4, finished_at = ukemi.now()",
  );
  await pool.query("update ukemi.effects set state = 'sending', attempt = 4");
  await ukemi.work();
  const state = async () => (await pool.query("select state, uncertainties from ukemi.effects")).rows[0];
  await until(async () => (await state()).state === "held", "the effect to be held");
  expect(await state()).toEqual({ state: "held", uncertainties: 1 });
  const { rows } = await pool.query("select action, target from ukemi.audit_log");
  expect(rows).toEqual([{ action: "http.held", target: id }]);
});
