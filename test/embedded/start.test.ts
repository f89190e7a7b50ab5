// The embedded server starts anywhere, keeps what was committed, and leaves nothing behind.
import { existsSync } from "node:fs";
import { mkdir, readFile, readdir, stat, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { describe, expect, it } from "vitest";
import { spawnStarter } from "./starter.ts";
import {
  ask,
  preparedFolder,
  serversBelow,
  start,
  systemBinaries,
  temporaryFolder,
  timed,
  tryKill,
  until,
} from "./support.ts";

describe("start and stop", () => {
  it("keeps data over a restart, with durable settings and UTF8", async () => {
    const data = join(await temporaryFolder({ parent: tmpdir() }), "data");
    const first = await timed(() => start({ data }));
    await ask(first.value.url, "create table kept as select 'ありがとう' as word");
    expect(await ask(first.value.url, settingsQuery)).toEqual({
      fsync: "on",
      synchronous_commit: "on",
      full_page_writes: "on",
      encoding: "UTF8",
      listens: "",
      max_connections: "100",
    });
    await first.value.stop();
    const second = await timed(() => start({ data }));
    expect(await ask(second.value.url, "select word from kept")).toEqual({ word: "ありがとう" });
    expect(second.value).toMatchObject({ adopted: false, version: expect.stringMatching(/^18\./) });
    console.info(`first start ${first.ms} ms, warm start ${second.ms} ms`);
  });

  it("gives a URL that URL and pg both understand, and that names no trusting door", async () => {
    const data = await preparedFolder();
    const { url } = await start({ data });
    expect(new pg.Client(url)).toMatchObject({
      host: join(data, "postgres"),
      port: 5432,
      database: "ukemi",
      user: "app",
    });
    const stranger = new URL(url);
    stranger.password = "guess";
    await expect(ask(stranger.href, "select 1")).rejects.toMatchObject({ code: "28P01" });
  });

  it("stops once however often it is asked, and leaves neither process nor socket nor note", async () => {
    const data = await preparedFolder();
    const server = await start({ data });
    await Promise.all([server.stop(), server.stop()]);
    await server.stop();
    expect(serversBelow(data)).toEqual([]);
    expect((await readdir(data)).toSorted()).toEqual(["postgres", "postgres.log"]);
    expect((await readdir(join(data, "postgres"))).filter((name) => name.startsWith(".s."))).toEqual([]);
    expect(await readdir(join(data, ".."))).toEqual(["data"]);
  });

  it("stops although a backend does not answer, and loses nothing", async () => {
    const data = await preparedFolder();
    const server = await start({ data });
    const client = new pg.Client({ connectionString: server.url });
    client.on("error", () => undefined);
    await client.connect();
    await client.query("create table kept as select 1 as one");
    const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
    tryKill(rows[0]?.pid ?? 0, "SIGSTOP");
    const { ms } = await timed(() => server.stop());
    console.info(`stopped in ${ms} ms beside a backend that does not answer`);
    expect(serversBelow(data)).toEqual([]);
    const again = await start({ data });
    expect(await ask(again.url, "select one from kept")).toEqual({ one: 1 });
  });

  it("keeps the password in a file of mode 0600 inside a folder of mode 0700", async () => {
    const data = await preparedFolder();
    await start({ data });
    expect((await stat(join(data, "postgres"))).mode & 0o777).toBe(0o700);
    expect((await stat(join(data, "postgres/ukemi.password"))).mode & 0o777).toBe(0o600);
    const rules = (await readFile(join(data, "postgres/pg_hba.conf"), "utf8"))
      .split("\n")
      .filter((line) => /^\w/.test(line));
    expect(rules.every((line) => line.endsWith("scram-sha-256"))).toBe(true);
  });

  it.skipIf(!systemBinaries)("also runs another PostgreSQL when told where it is", async () => {
    const data = join(await temporaryFolder(), "data");
    const { url } = await start({ data, binaries: systemBinaries ?? "" });
    expect(await ask(url, settingsQuery)).toMatchObject({ encoding: "UTF8", fsync: "on" });
  });

  it("makes a UTF8 database where LANG is C", async () => {
    const data = join(await temporaryFolder(), "data");
    const starter = spawnStarter({ data, env: { LANG: "C", LC_ALL: "C" } });
    const { url } = await starter.ready;
    expect(await ask(url, settingsQuery)).toMatchObject({ encoding: "UTF8" });
    expect(await ask(url, "select lower('ÄÉ') as word")).toEqual({ word: "äé" });
    await starter.stop();
  });
});

describe("odd folders", () => {
  it("takes a path with blanks, quotes and letters beyond ASCII", async () => {
    const data = join(await temporaryFolder(), `it's "my" día%20 +&?#受`);
    const { url } = await start({ data });
    expect(url).toContain("host=");
    expect(await ask(url, "select 1 as one")).toEqual({ one: 1 });
  });

  it("listens on loopback with a password where the path is too long for a socket", async () => {
    const data = await preparedFolder("long".repeat(30));
    const first = await start({ data });
    expect(first.url).toMatch(/@127\.0\.0\.1:\d+\//);
    expect(await ask(first.url, "select 1 as one")).toEqual({ one: 1 });
    const stranger = new URL(first.url);
    stranger.password = "guess";
    await expect(ask(stranger.href, "select 1")).rejects.toMatchObject({ code: "28P01" });
    const second = await start({ data });
    expect(second).toMatchObject({ adopted: true, url: first.url });
  });

  it("takes over an empty cluster folder that somebody made", async () => {
    const data = await temporaryFolder();
    await mkdir(join(data, "postgres"));
    const { url } = await start({ data });
    expect(await ask(url, "select 1 as one")).toEqual({ one: 1 });
  });
});

describe("the server's log", () => {
  it("is quoted when the server does not start, and the next start works", async () => {
    const data = await preparedFolder();
    await expect(start({ data, settings: { shared_buffers: "plenty" } })).rejects.toMatchObject({
      code: "embedded_failed",
      message: expect.stringMatching(/postgres\.log[^]*shared_buffers/),
    });
    expect(serversBelow(data)).toEqual([]);
    const { url } = await start({ data, settings: { work_mem: "5MB" } });
    expect(await ask(url, "show work_mem")).toEqual({ work_mem: "5MB" });
  });

  it("holds no statement and no value, and is set aside over 10 MB", async () => {
    const data = await preparedFolder();
    const server = await start({ data });
    await expect(ask(server.url, "select 'secret-value'::int")).rejects.toThrow();
    await server.stop();
    const log = join(data, "postgres.log");
    expect(await readFile(log, "utf8")).toContain("ready to accept connections");
    expect(await readFile(log, "utf8")).not.toContain("secret-value");
    await writeFile(log, "");
    await truncate(log, 11 * 1024 * 1024);
    await start({ data });
    expect((await stat(log)).size).toBeLessThan(1024 * 1024);
    expect(existsSync(`${log}.1`)).toBe(true);
  });
});

it("does not hear Ctrl-C in the terminal of its owner", async () => {
  const data = await preparedFolder();
  const starter = spawnStarter({ data });
  const { url, pid } = await starter.ready;
  process.kill(-starter.pid, "SIGINT"); // as a terminal does: to the whole foreground group
  // A second server, started and stopped meanwhile, gives the signal time to arrive.
  await (await start({ data: await preparedFolder() })).stop();
  expect(await ask(url, "select 1 as one")).toEqual({ one: 1 });
  expect(serversBelow(data)).toContain(pid);
  tryKill(starter.pid, "SIGKILL");
  await until("the server is gone", () => serversBelow(data).length === 0);
});

const settingsQuery = `select current_setting('fsync') as fsync, current_setting('synchronous_commit') as synchronous_commit,
  current_setting('full_page_writes') as full_page_writes, current_setting('server_encoding') as encoding,
  current_setting('listen_addresses') as listens, current_setting('max_connections') as max_connections`;
