import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { lockFolder } from "./lock.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "ukemi-lock-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** A process that listens on the lock's socket, and is killed. */
async function leaveLock(): Promise<void> {
  const code = `require("node:net").createServer().listen(${JSON.stringify(join(folder, "lock"))}, () => console.log("up"))`;
  const child = spawn(process.execPath, ["-e", code], { stdio: ["ignore", "pipe", "inherit"] });
  await once(child.stdout, "data");
  child.kill("SIGKILL");
  await once(child, "exit");
  expect(await readdir(folder)).toEqual(["lock"]);
}

describe("the lock of a spool", () => {
  test("has one holder at a time", async () => {
    const first = await lockFolder(folder);
    await expect(lockFolder(folder)).rejects.toMatchObject({ code: "spool_locked" });
    await first.release();
    expect(await readdir(folder)).toEqual([]);
    const second = await lockFolder(folder);
    await second.release();
  });

  test("of a holder that was killed is free", async () => {
    await leaveLock();
    const lock = await lockFolder(folder);
    await expect(lockFolder(folder)).rejects.toMatchObject({ code: "spool_locked" });
    await lock.release();
  });

  test("of a holder that was killed goes to one of those who want it", async () => {
    for (let round = 0; round < 10; round += 1) {
      await leaveLock();
      const asked = await Promise.allSettled(Array.from({ length: 5 }, () => lockFolder(folder)));
      const held = asked.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
      expect(held).toHaveLength(1);
      await held[0]!.release();
      expect(await readdir(folder)).toEqual([]);
    }
  });
});
