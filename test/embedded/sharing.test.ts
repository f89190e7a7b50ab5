// Several processes on one data folder use one server.
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { ask, preparedFolder, serversBelow, spawnStarter, start, temporaryFolder } from "./support.ts";

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
  expect((await readdir(data)).sort()).toEqual(["postgres", "postgres.log", "postgres.owner"]);
});

it("shares the server between two calls in one process", async () => {
  const data = await preparedFolder();
  const [one, other] = await Promise.all([start({ data }), start({ data })]);
  expect(one.pid).toBe(other.pid);
  expect([one.adopted, other.adopted].sort()).toEqual([false, true]);
});

it("ends with its owner, and whoever still needs it starts it again at the same address", async () => {
  const data = await preparedFolder();
  const owner = spawnStarter({ data });
  await owner.ready;
  const guest = await start({ data });
  await owner.stop();
  await expect(ask(guest.url, "select 1")).rejects.toThrow();
  const again = await start({ data });
  expect(again).toMatchObject({ adopted: false, url: guest.url });
  expect(await ask(guest.url, "select 1 as one")).toEqual({ one: 1 });
});
