// The exporter's disk fills up, turns read-only, vanishes, or does not flush: the run ends and says so, nothing is called saved
// that is not, and when the fault is healed, the meter's sums are those of the file.
import { rmSync } from "node:fs";
import { mkdir, readdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { canMount, fill, mountSmallDisk, remount } from "../support/small-disk.ts";
import { debianFile } from "../support/tools.ts";
import { BATCH, createUsageWorld, expectWhole, type UsageWorld } from "../support/usage-world.ts";

const mounts = canMount();
const away = () => ({ status: 503 });

async function onDisk(size: string): Promise<UsageWorld> {
  const world = await createUsageWorld();
  await mountSmallDisk(world.disk, size);
  return world;
}

const push = (world: UsageWorld, env?: Readonly<Record<string, string>>) =>
  world.usage(["push", world.file], env);
/** What a run said that ended with an error: nothing of a report. */
const endedWith = (...words: string[]) => ({
  code: 1,
  stdout: "",
  stderr: expect.stringMatching(new RegExp(words.join("[^]*"))),
});

describe.skipIf(!mounts)("a disk that is full", () => {
  test("ends the run; what was saved is sent by the next one, the rest when the file is pushed again", async () => {
    const world = await onDisk("96k");
    world.fault = away;
    const run = await push(world);
    expect(run, run.output).toMatchObject(
      endedWith(`The spool ${world.spool} cannot be written: the disk is full`, "push the file again"),
    );
    const saved = await readdir(world.spool);
    expect(saved.length).toBeGreaterThan(1);
    expect(saved.length).toBeLessThan(10);
    expect(saved.filter((name) => !name.endsWith(".due"))).toEqual([]);
    expect(await push(world)).toMatchObject(endedWith("disk is full")); // still full, and still away
    expect(await readdir(world.spool)).toEqual(saved);

    world.fault = undefined;
    const resent = await world.usage(["resend", "--json"]); // sending needs no space
    expect(resent, resent.output).toMatchObject({ code: 0 });
    expect(JSON.parse(resent.stdout)).toMatchObject({ resent: saved.length, damaged: [] });
    expect(world.meter.records.size).toBe(saved.length * BATCH);
    await expectWhole(world);
  });

  test("does not matter while the meter answers", async () => {
    const world = await onDisk("96k");
    fill(join(world.disk, "filler"));
    await expectWhole(world);
  });

  test("keeps what a halved batch was saved as until its parts are", async () => {
    const world = await onDisk("400k");
    world.fault = () => ({ status: 400 });
    expect((await push(world)).code).toBe(1);
    const saved = await readdir(world.spool);
    expect(saved).toHaveLength(10);
    fill(join(world.disk, "filler"));
    // too large as a whole; its halves are refused, and there is no room for them
    world.fault = (call) => ({ status: call === 11 ? 413 : 400 });
    expect(await world.usage(["resend", "--refused"])).toMatchObject(endedWith("disk is full"));
    expect(await readdir(world.spool)).toEqual(saved);
    await rm(join(world.disk, "filler"));
    world.fault = undefined;
    expect(await world.usage(["resend", "--refused"])).toMatchObject({ code: 0 });
    await expectWhole(world);
  });
});

describe.skipIf(!mounts)("a disk that is read-only", () => {
  test.each(["is missing", "is there"])(
    "is told before anything is sent, where the folder %s",
    async (how) => {
      const world = await onDisk("1m");
      if (how === "is there") await mkdir(world.spool, { recursive: true });
      remount(world.disk, "ro");
      expect(await push(world)).toMatchObject(endedWith("cannot be used \\(EROFS\\)", "mounted read-only"));
      expect(world.meter.calls).toEqual([]);
      remount(world.disk, "rw");
      await expectWhole(world);
    },
  );

  test("from one moment to the next ends the run", async () => {
    const world = await onDisk("1m");
    world.fault = (call) => {
      if (call < 3) return undefined;
      remount(world.disk, "ro");
      return away();
    };
    expect(await push(world)).toMatchObject(endedWith("cannot be used \\(EROFS\\)", "mounted read-only"));
    expect(world.meter.records.size).toBe(2 * BATCH);
    remount(world.disk, "rw");
    world.fault = undefined;
    await expectWhole(world);
  });
});

test("a folder that is removed meanwhile ends the run", async () => {
  const world = await createUsageWorld();
  world.fault = (call) => {
    if (call < 3) return undefined;
    rmSync(world.spool, { recursive: true });
    return away();
  };
  expect(await push(world)).toMatchObject(
    endedWith("cannot be used \\(ENOENT\\)", "was removed while the exporter ran"),
  );
  world.fault = undefined;
  await expectWhole(world);
});

const libfiu = debianFile("usr/lib/fiu/fiu_posix_preload.so");
if (!libfiu) console.info("not run: a disk that does not flush, which needs libfiu (npm test fetches it)");

/** The environment of a process whose fsync fails: every one, or only the first. */
function unflushed(which: "every" | "first"): Readonly<Record<string, string>> {
  const folder = dirname(libfiu!);
  const EIO = 5;
  return {
    FIU_ENABLE: `enable name=posix/io/sync/fsync,failinfo=${EIO}${which === "first" ? ",onetime" : ""}`,
    LD_LIBRARY_PATH: dirname(folder),
    LD_PRELOAD: `${join(folder, "fiu_run_preload.so")} ${libfiu}`,
  };
}

describe.skipIf(!libfiu)("a disk that does not flush", () => {
  // after one that failed, the kernel may call the next a success though the data are gone: one is enough to end the run
  test.each(["every", "first"] as const)(
    "keeps nothing where %s fsync fails: the run ends, and no batch is called saved",
    async (which) => {
      const world = await createUsageWorld();
      world.fault = away;
      const run = await push(world, unflushed(which));
      expect(run, run.output).toMatchObject(
        endedWith(`The spool ${world.spool} cannot be used \\(EIO\\)`, "look at the system's log"),
      );
      expect(await readdir(world.spool)).toEqual([]);
      world.fault = undefined;
      await expectWhole(world);
    },
  );

  test("ends a resend too, whose folder cannot be flushed; the next one goes on", async () => {
    const world = await createUsageWorld();
    world.fault = () => ({ status: 400 });
    expect((await push(world)).code).toBe(1);
    world.fault = undefined;
    const run = await world.usage(["resend", "--refused"], unflushed("every"));
    expect(run, run.output).toMatchObject(endedWith("cannot be used \\(EIO\\)"));
    expect(world.meter.records.size).toBe(BATCH);
    const resent = await world.usage(["resend", "--refused"]);
    expect(resent, resent.output).toMatchObject({ code: 0 });
    expect(world.meter.records.size).toBe(10 * BATCH);
    await expectWhole(world);
  });
});
