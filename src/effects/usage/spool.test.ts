import { appendFile, mkdtemp, readdir, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { frameOf, readFrame } from "./frame.ts";
import { openSpool, type KeptBatch, type Spool } from "./spool.ts";

const BATCH: KeptBatch = {
  tenant: "t",
  records: ['{"source_event_id":"a"}'],
  from: "use.ndjson",
  why: "503",
};

let folder: string;
let spool: Spool;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "ukemi-spool-"));
  spool = await openSpool(join(folder, "usage"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const files = () => readdir(spool.folder);
const only = async () => (await spool.list()).batches[0]!;
const pathOf = async () => join(spool.folder, (await files())[0]!);

describe("a frame", () => {
  test("gives back what was put in", () => {
    for (const text of ["", "a", "\n\n", "あ".repeat(1000)]) {
      expect(readFrame(frameOf(Buffer.from(text)))?.toString()).toBe(text);
    }
  });

  test("is not whole when any byte is missing, added or changed", () => {
    const whole = frameOf(Buffer.from("records"));
    for (let at = 0; at < whole.length; at += 1) {
      const changed = Buffer.from(whole);
      changed[at]! ^= 1;
      expect(readFrame(changed), `byte ${at} changed`).toBeUndefined();
      expect(readFrame(whole.subarray(0, at)), `cut at ${at}`).toBeUndefined();
    }
    expect(readFrame(Buffer.concat([whole, Buffer.from("x")]))).toBeUndefined();
    expect(readFrame(Buffer.alloc(whole.length))).toBeUndefined();
  });
});

describe("the spool", () => {
  test("gives batches back in the order they were saved, whatever the clock's steps", async () => {
    const saved: string[] = [];
    for (let number = 0; number < 30; number += 1) {
      saved.push(await spool.save("due", { ...BATCH, records: [String(number)] }));
    }
    const { batches } = await spool.list();
    expect(batches.map(({ id }) => id)).toEqual(saved);
    expect(await spool.read(batches[7]!)).toEqual({ ...BATCH, records: ["7"] });
  });

  test("keeps states apart, moves a batch from one to another, and removes what was sent", async () => {
    await spool.save("refused", BATCH);
    expect(await only()).toMatchObject({ state: "refused" });
    await spool.move(await only(), "blocked");
    expect(await only()).toMatchObject({ state: "blocked" });
    expect(await spool.read(await only())).toEqual(BATCH);
    await spool.remove(await only());
    expect(await files()).toEqual([]);
  });

  test("does not give back what is torn, and leaves it where it is", async () => {
    await spool.save("due", BATCH);
    const path = await pathOf();
    const bytes = (await readFile(path)).length;
    await truncate(path, bytes - 3);
    expect(await spool.read(await only())).toBeUndefined();
    await appendFile(path, "xxx");
    expect(await spool.read(await only())).toBeUndefined();
    expect(await files()).toHaveLength(1);
  });

  test("counts what was never finished as nothing, and sweeps it", async () => {
    await writeFile(join(spool.folder, "0190-half.part"), "half a batch");
    await writeFile(join(spool.folder, "notes.txt"), "somebody else's");
    expect(await spool.list()).toEqual({ batches: [], unfinished: ["0190-half.part"] });
    expect(await spool.sweep()).toBe(1);
    expect(await files()).toEqual(["notes.txt"]);
  });

  test("is readable by its owner only", async () => {
    await spool.save("due", BATCH);
    const { mode } = await import("node:fs/promises").then(async ({ stat }) => stat(await pathOf()));
    expect(mode & 0o777).toBe(0o600);
  });
});
