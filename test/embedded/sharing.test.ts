// Several processes on one data folder use one server.
import { existsSync } from "node:fs";
import { readFile, readdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { spawnStarter } from "./starter.ts";
import { ask, preparedFolder, serversBelow, start, temporaryFolder, tryKill, until } from "./support.ts";

it("lets a second process use the running server, whose stop() leaves it running", async () => {
  const data = await preparedFolder();
  const owner = spawnStarter({ data });
  const first = await owner.ready;
  const second = await start({ data });
  expect(second).toMatchObject({ adopted: true, pid: first.pid, url: first.url, version: first.version });
  expect(await ask(second.url, "select 1 as one")).toEqual({ one: 1 });
  await second.stop();
  expect(await ask(first.url, "select 1 as one")).toEqual({ one: 1 });
  await owner.stop();
  expect(serversBelow(data)).toEqual([]);
});

it("makes one cluster and one server when several processes start at once on an empty folder", async () => {
  const data = join(await temporaryFolder(), "data");
  const starters = [1, 2, 3].map(() => spawnStarter({ data }));
  const servers = await Promise.all(starters.map((starter) => starter.ready));
  expect(new Set(servers.map((server) => server.pid)).size).toBe(1);
  expect(servers.filter((server) => !server.adopted)).toHaveLength(1);
  for (const server of servers) expect(await ask(server.url, "select 1 as one")).toEqual({ one: 1 });
  expect((await readdir(data)).toSorted()).toEqual(["postgres", "postgres.log", "postgres.owner"]);
});

it("joins a server whose process it cannot see, as that of another container, and leaves it", async () => {
  const data = await preparedFolder();
  const owner = spawnStarter({ data });
  const { url, pid } = await owner.ready;
  const pidFile = join(data, "postgres/postmaster.pid");
  const unseen = 4_194_303; // Linux gives no higher pid, and hardly ever this one
  await writeFile(pidFile, (await readFile(pidFile, "utf8")).replace(String(pid), String(unseen)));
  const guest = await start({ data });
  expect(guest).toMatchObject({ adopted: true, url, pid: unseen });
  await guest.stop();
  expect(await ask(url, "select 1 as one")).toEqual({ one: 1 });
  expect(serversBelow(data)).toContain(pid);
});

it("shares the server between two calls in one process", async () => {
  const data = await preparedFolder();
  const [one, other] = await Promise.all([start({ data }), start({ data })]);
  expect(one.pid).toBe(other.pid);
  expect(one.adopted).not.toBe(other.adopted);
});

it("ends with its owner, and a guest that still needs it starts it again at the same address", async () => {
  for (const data of [await preparedFolder(), await preparedFolder("long".repeat(30))]) {
    const owner = spawnStarter({ data });
    const first = await owner.ready;
    const guest = await start({ data });
    await owner.stop();
    await until("the guest has its server", () => guest.pid !== first.pid);
    expect(guest).toMatchObject({ adopted: false, url: first.url });
    expect(await ask(first.url, "select 1 as one")).toEqual({ one: 1 });
    await guest.stop();
    expect(serversBelow(data)).toEqual([]);
  }
});

it("is started again by one of its guests when its owner is killed", async () => {
  const data = await preparedFolder();
  const owner = spawnStarter({ data });
  const first = await owner.ready;
  const guests = [await start({ data }), await start({ data })];
  tryKill(owner.pid, "SIGKILL");
  await until("each guest has the new server", () => guests.every((guest) => guest.pid !== first.pid));
  expect(guests.filter((guest) => guest.adopted)).toHaveLength(1);
  expect(await ask(first.url, "select 1 as one")).toEqual({ one: 1 });
});

it("is started again by its owner when the server is killed, until stop()", async () => {
  const data = await preparedFolder();
  const server = await start({ data });
  const { pid } = server;
  tryKill(pid, "SIGKILL");
  await until("the owner has a new server", () => server.pid !== pid);
  expect(await ask(server.url, "select 1 as one")).toEqual({ one: 1 });
  expect(server.adopted).toBe(false);
  tryKill(server.pid, "SIGKILL");
  await server.stop(); // whatever it is doing
  await until("the orphaned backends have ended", () => serversBelow(data).length === 0);
  expect(await readdir(data)).not.toContain("postgres.lock");
});

it("is not replaced by an empty one when somebody deletes its data while it runs", async () => {
  const data = await preparedFolder();
  const said: string[] = [];
  const server = await start({ data, tell: (_level, message) => said.push(message) });
  await rename(data, `${data}-moved`);
  tryKill(server.pid, "SIGKILL");
  await until("the loss is told", () => said.some((message) => message.includes("is gone")));
  expect(existsSync(data)).toBe(false);
  await server.stop();
  await until("the orphaned backends have ended", () => serversBelow(join(data, "..")).length === 0);
});
