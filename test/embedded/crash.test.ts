// Whatever is killed, and in whatever order, the next start works and keeps what was committed.
import { spawn } from "node:child_process";
import { readFile, readdir, stat, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { describe, expect, it, onTestFinished } from "vitest";
import { spawnStarter } from "./starter.ts";
import {
  ask,
  preparedFolder,
  serversBelow,
  start,
  stateOf,
  temporaryFolder,
  timed,
  tryKill,
  until,
  watcherOf,
} from "./support.ts";

/** Starting after a kill takes the server's recovery and little more; measured values are printed. */
const restartMsMax = 10_000;

describe("kill -9 of our process", () => {
  it("takes the server with it, and the next start keeps what was committed", async () => {
    const data = await preparedFolder();
    const starter = spawnStarter({ data });
    const { url, pid } = await starter.ready;
    await ask(url, "create table kept as select 1 as one");
    const begun = performance.now();
    tryKill(starter.pid, "SIGKILL");
    await until("the server is gone", async () => [undefined, "Z"].includes(await stateOf(pid)));
    console.info(`the server ended ${Math.round(performance.now() - begun)} ms after its owner was killed`);
    const { value: server } = await timed(() => start({ data }));
    expect(server.adopted).toBe(false);
    expect(await ask(server.url, "select one from kept")).toEqual({ one: 1 });
  });

  it("does not let the next start adopt the server that is about to end", async () => {
    const data = await preparedFolder();
    for (let round = 0; round < 3; round++) {
      const starter = spawnStarter({ data });
      const { pid } = await starter.ready;
      tryKill(starter.pid, "SIGKILL");
      const { ms, value: server } = await timed(() => start({ data }));
      console.info(`ready ${ms} ms after kill -9 of the owner`);
      expect(ms).toBeLessThan(restartMsMax);
      expect(server.adopted).toBe(false);
      expect(server.pid).not.toBe(pid);
      await until("the old server is gone", async () => [undefined, "Z"].includes(await stateOf(pid)));
      expect(await ask(server.url, "select 1 as one")).toEqual({ one: 1 });
      await server.stop();
    }
  });

  it("blocks nothing where the watcher was killed too and the server stayed", async () => {
    const data = await preparedFolder();
    const starter = spawnStarter({ data });
    const { url, pid } = await starter.ready;
    await ask(url, "create table kept as select 1 as one");
    const watcher = watcherOf(join(data, "postgres"));
    expect(watcher).toBeDefined();
    tryKill(watcher ?? 0, "SIGKILL");
    tryKill(starter.pid, "SIGKILL");
    await starter.exited;
    expect(await ask(url, "select one from kept")).toEqual({ one: 1 }); // an orphan indeed
    const { ms, value: server } = await timed(() => start({ data }));
    console.info(`ready ${ms} ms after kill -9 of owner and watcher`);
    expect(server).toMatchObject({ adopted: false });
    expect(server.pid).not.toBe(pid);
    expect(await ask(server.url, "select one from kept")).toEqual({ one: 1 });
  });

  it("in the middle of the first start leaves nothing that blocks the next", async () => {
    const data = join(await temporaryFolder(), "data");
    const starter = spawnStarter({ data });
    await until("initdb writes", async () =>
      (await readdir(data).catch(() => [])).some((name) => name.includes(".new-")),
    );
    tryKill(starter.pid, "SIGKILL");
    await starter.exited;
    const server = await start({ data });
    expect(await ask(server.url, "select 1 as one")).toEqual({ one: 1 });
    expect((await readdir(data)).toSorted()).toEqual(["postgres", "postgres.log", "postgres.owner"]);
  });
});

describe("kill -9 of our process and of the server", () => {
  it("recovers within two seconds and the recovery itself", async () => {
    const data = await preparedFolder();
    const starter = spawnStarter({ data });
    const { url, pid } = await starter.ready;
    await ask(url, "create table kept as select generate_series(1, 10000) as n");
    tryKill(pid, "SIGKILL");
    tryKill(starter.pid, "SIGKILL");
    const { ms, value: server } = await timed(() => start({ data }));
    console.info(`ready ${ms} ms after kill -9 of both`);
    expect(ms).toBeLessThan(restartMsMax);
    expect(await ask(server.url, "select count(*)::int as n from kept")).toEqual({ n: 10_000 });
  });

  it("ends backends that still work for the dead server", async () => {
    const data = await preparedFolder();
    const starter = spawnStarter({ data });
    const { url, pid } = await starter.ready;
    const client = new pg.Client({ connectionString: url });
    client.on("error", () => undefined);
    await client.connect();
    // Busy without ever waiting: it does not notice that its postmaster is gone.
    const backend = (await client.query<{ pid: number }>("select pg_backend_pid() as pid")).rows[0]?.pid ?? 0;
    const busy = client
      .query("select count(*) from generate_series(1, 400000000) as n")
      .catch(() => undefined);
    await until("the backend works", async () => (await stateOf(backend)) === "R");
    tryKill(pid, "SIGKILL");
    tryKill(starter.pid, "SIGKILL");
    await starter.exited;
    expect(await stateOf(backend)).toBeDefined();
    const { ms, value: server } = await timed(() => start({ data }));
    console.info(`ready ${ms} ms after kill -9 of both with a busy backend`);
    expect(ms).toBeLessThan(restartMsMax);
    expect([undefined, "Z"]).toContain(await stateOf(backend));
    expect(await ask(server.url, "select 1 as one")).toEqual({ one: 1 });
    await busy;
    await client.end().catch(() => undefined);
  });

  it("starts although the dead server is a zombie that nobody reaps", async () => {
    const data = await preparedFolder();
    const starter = spawnStarter({ data });
    const { pid } = await starter.ready;
    tryKill(starter.pid, "SIGSTOP"); // a stopped parent reaps no child
    tryKill(pid, "SIGKILL");
    await until("the server is a zombie", async () => (await stateOf(pid)) === "Z");
    const { ms, value: server } = await timed(() => start({ data }));
    console.info(`ready ${ms} ms beside the zombie`);
    expect(await stateOf(pid)).toBe("Z");
    expect(server.adopted).toBe(false);
    expect(await ask(server.url, "select 1 as one")).toEqual({ one: 1 });
  });
});

describe("a pid that was given to somebody else", () => {
  it("does not block the start, and its new bearer is left alone", async () => {
    const data = await preparedFolder();
    const stranger = spawn("sleep", ["300"], { stdio: "ignore", ...(await ownerOf(join(data, "postgres"))) });
    onTestFinished(() => void stranger.kill("SIGKILL"));
    await leavePid(data, stranger.pid ?? 0);
    const server = await start({ data });
    expect(await ask(server.url, "select 1 as one")).toEqual({ one: 1 });
    expect(await stateOf(stranger.pid ?? 0)).toBe("S");
  });

  it("is not taken for ours when it is the server of another folder", async () => {
    const other = await start({ data: await preparedFolder() });
    const data = await preparedFolder();
    await leavePid(data, other.pid);
    const server = await start({ data });
    expect(server.adopted).toBe(false);
    expect(server.pid).not.toBe(other.pid);
    await server.stop();
    expect(await ask(other.url, "select 1 as one")).toEqual({ one: 1 });
  });

  it("does not keep the lock of a start that was killed", async () => {
    const data = await preparedFolder();
    await writeFile(join(data, "postgres.lock"), `${process.pid} 1 some-uuid ${hostname()}`);
    const { ms, value: server } = await timed(() => start({ data }));
    expect(ms).toBeLessThan(restartMsMax);
    expect(await ask(server.url, "select 1 as one")).toEqual({ one: 1 });
    expect(await readdir(data)).not.toContain("postgres.lock");
  });
});

it("leaves no server when the process ends without stop()", async () => {
  const data = await preparedFolder();
  const starter = spawnStarter({ data });
  await starter.ready;
  tryKill(starter.pid, "SIGTERM");
  await starter.exited;
  await until("the server is gone", () => serversBelow(data).length === 0);
  expect(await readFile(join(data, "postgres.log"), "utf8")).toContain("database system is shut down");
});

async function leavePid(data: string, pid: number): Promise<void> {
  const cluster = join(data, "postgres");
  await writeFile(
    join(cluster, "postmaster.pid"),
    `${pid}\n${cluster}\n1700000000\n5432\n.\n\n  5432001    0\nready   \n`,
  );
}

async function ownerOf(path: string): Promise<{ uid: number; gid: number }> {
  const { uid, gid } = await stat(path);
  return { uid, gid };
}
