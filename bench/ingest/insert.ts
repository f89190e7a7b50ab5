// What a careful beginner writes: one insert for each delivery, answered after its commit.
import pg from "pg";
import { serve } from "./verify.ts";

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 16 });
await pool.query(`
  create table if not exists received (
    id text primary key,
    type text not null,
    received_at timestamptz not null default now(),
    body text not null
  )`);

await serve(
  async ({ body, event }) => {
    await pool.query({
      name: "insert",
      text: "insert into received (id, type, body) values ($1, $2, $3) on conflict do nothing",
      values: [event.id, event.type, body.toString("utf8")],
    });
  },
  () => pool.end(),
);
