// PostgreSQL refuses root and unnamed users, and installs come in odd shapes: it starts all the same.
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, chown, mkdir, readFile, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { spawnStarter } from "./starter.ts";
import {
  ask,
  copyBinaries,
  isRoot,
  preparedFolder,
  endServersBelow,
  start,
  temporaryFolder,
  tryKill,
  until,
} from "./support.ts";

if (!isRoot) console.info("skipped: giving up root's rights can only be tested as root");
const unshares = works(["unshare", "--map-user=65534", "--map-group=65534", "true"]);
if (!unshares) console.info("skipped: user namespaces are forbidden here");

/** A uid that no machine's passwd names. */
const unnamed = 54_321;

describe.skipIf(!isRoot)("as root", () => {
  it("runs as an unprivileged user, in a folder that root owns", async () => {
    const data = join(await temporaryFolder(), "data");
    const server = await start({ data });
    expect(await uidOf(server.pid)).not.toBe(0);
    expect((await stat(data)).uid).toBe(0);
    expect((await stat(join(data, "postgres"))).uid).toBe(await uidOf(server.pid));
  });

  it.skipIf(!unshares)("enters a folder that only root can enter by a user namespace, unasked", async () => {
    const home = await temporaryFolder({ mode: 0o700 });
    const binaries = copyBinaries(join(home, "package"));
    const data = join(home, "data");
    const first = await start({ data, binaries });
    expect((await stat(join(data, "postgres"))).uid).toBe(0); // no chown: root is the user of the namespace
    expect(await readdir(data)).not.toContain("postgres.location");
    await ask(first.url, "create table kept as select 1 as one");
    await first.stop();
    await chmod(home, 0o755); // the folder opens: the plain way is taken, and the files change hands
    const second = await start({ data, binaries });
    expect((await stat(join(data, "postgres/PG_VERSION"))).uid).not.toBe(0);
    expect(await ask(second.url, "select one from kept")).toEqual({ one: 1 });
    await second.stop();
    await chmod(home, 0o700); // and back
    const third = await start({ data, binaries });
    expect(await ask(third.url, "select one from kept")).toEqual({ one: 1 });
  });

  it("moves cluster and programs to a folder that can be entered where namespaces are forbidden", async () => {
    const home = await closedHome(tmpdir());
    const binaries = copyBinaries(join(home, "package"));
    const data = join(home, "data");
    const first = await start({ data, binaries, way: "relocate" });
    const place = await pointedPlace(data);
    expect(await uidOf(first.pid)).not.toBe(0);
    expect((await readdir(place)).toSorted()).toEqual(["postgres", "postgres-native"]);
    const [original, copy] = [await stat(binaries), await stat(join(place, "postgres-native/bin/postgres"))];
    if (original.dev === copy.dev) expect(copy.nlink).toBeGreaterThan(1); // a hard link, where one can be made
    await ask(first.url, "create table kept as select 1 as one");
    const guest = await start({ data, binaries });
    expect(guest).toMatchObject({ adopted: true, url: first.url });
    await first.stop();
    const second = await start({ data, binaries, way: "relocate" });
    expect(await pointedPlace(data)).toBe(place);
    expect(await ask(second.url, "select one from kept")).toEqual({ one: 1 });
  });

  it.skipIf(!unshares)(
    "takes the data along when a cluster moves, also after a crash on the way",
    async () => {
      const home = await closedHome();
      const data = join(home, "data");
      execFileSync("cp", ["-a", await preparedFolder(), data]);
      const first = await start({ data, way: "unshare" });
      await ask(first.url, "create table kept as select 1 as one");
      await first.stop();
      const second = await start({ data, way: "relocate" });
      const place = await pointedPlace(data);
      expect(await ask(second.url, "select one from kept")).toEqual({ one: 1 });
      await second.stop();
      // As if killed between writing the pointer and moving: the next start finishes the move, whichever way it goes.
      execFileSync("mv", [join(place, "postgres"), join(data, "postgres")]);
      const third = await start({ data });
      expect(existsSync(join(data, "postgres"))).toBe(false);
      expect(await ask(third.url, "select one from kept")).toEqual({ one: 1 });
    },
  );

  it("leaves a server that ends with its owner also in a namespace", async () => {
    const data = await preparedFolder();
    const starter = spawnStarter({ data, way: unshares ? "unshare" : "drop" });
    const { pid } = await starter.ready;
    tryKill(starter.pid, "SIGKILL");
    await until("the server is gone", () => !existsSync(`/proc/${pid}`) || isZombie(pid));
  });
});

describe.skipIf(!isRoot)("as a user that passwd does not know", () => {
  it.skipIf(!unshares)("starts, is adopted, and stops", async () => {
    const data = join(await ownFolder(), "data");
    const owner = spawnStarter({ data, uid: unnamed });
    const first = await owner.ready;
    expect(await uidOf(first.pid)).toBe(unnamed);
    expect(await ask(first.url, "select 1 as one")).toEqual({ one: 1 });
    const guest = spawnStarter({ data, uid: unnamed });
    expect(await guest.ready).toMatchObject({ adopted: true, pid: first.pid });
    await guest.stop();
    tryKill(owner.pid, "SIGKILL");
    const next = spawnStarter({ data, uid: unnamed });
    expect(await next.ready).toMatchObject({ adopted: false });
    await next.stop();
  });

  it("is told whose folder it is when it belongs to somebody else", async () => {
    const data = await preparedFolder();
    await chmod(data, 0o777);
    const starter = spawnStarter({ data, uid: unnamed });
    await expect(starter.ready).rejects.toMatchObject({
      code: "embedded_failed",
      message: expect.stringMatching(/uid|EACCES/),
    });
  });
});

describe("an install without scripts", () => {
  it("gets its library links at the start", async () => {
    const folder = await temporaryFolder();
    const binaries = await withoutLinks(join(folder, "package"));
    const server = await start({ data: join(folder, "data"), binaries });
    expect(await ask(server.url, "select 1 as one")).toEqual({ one: 1 });
    expect(await readdir(join(dirname(binaries), "lib"))).toContain("libicui18n.so.60");
  });

  it.skipIf(!isRoot || !unshares)(
    "gets them in the data folder where node_modules cannot be written",
    async () => {
      const folder = await ownFolder();
      const binaries = await withoutLinks(join(await temporaryFolder(), "package"));
      const data = join(folder, "da ta");
      const starter = spawnStarter({ data, binaries, uid: unnamed });
      const { url } = await starter.ready;
      expect(await ask(url, "select 1 as one")).toEqual({ one: 1 });
      expect(await readdir(join(data, "postgres-lib"))).toContain("libicui18n.so.60");
      expect(await readdir(join(dirname(binaries), "lib"))).not.toContain("libicui18n.so.60");
      await starter.stop();
    },
  );

  it.skipIf(!isRoot || !works(["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]))(
    "gets them in the data folder where node_modules is mounted read-only",
    async () => {
      const folder = await temporaryFolder();
      const mounted = join(folder, "mounted");
      await withoutLinks(join(folder, "package"));
      await mkdir(mounted);
      execFileSync("mount", ["--bind", join(folder, "package"), mounted]);
      onTestFinished(() => void execFileSync("umount", ["--lazy", mounted]));
      execFileSync("mount", ["-o", "remount,bind,ro", mounted]);
      const server = await start({ data: join(folder, "data"), binaries: join(mounted, "native/bin") });
      expect(await ask(server.url, "select 1 as one")).toEqual({ one: 1 });
      await server.stop();
    },
  );
});

async function uidOf(pid: number): Promise<number> {
  return (await stat(`/proc/${pid}`)).uid;
}

/** A folder that only root can enter; what a pointer in its `data` names is removed after the test too. */
async function closedHome(parent?: string): Promise<string> {
  const home = await temporaryFolder({ mode: 0o700, ...(parent === undefined ? {} : { parent }) });
  onTestFinished(async () => {
    const place = await pointedPlace(join(home, "data"));
    await endServersBelow(place);
    await rm(place, { recursive: true, force: true });
  });
  return home;
}

/** Where the pointer file says the cluster is. */
async function pointedPlace(data: string): Promise<string> {
  return (await readFile(join(data, "postgres.location"), "utf8")).trim();
}

async function ownFolder(): Promise<string> {
  const folder = await temporaryFolder();
  await chown(folder, unnamed, unnamed);
  return folder;
}

async function withoutLinks(to: string): Promise<string> {
  const binaries = copyBinaries(to);
  const lib = join(dirname(binaries), "lib");
  for (const entry of await readdir(lib, { withFileTypes: true })) {
    if (entry.isSymbolicLink()) await rm(join(lib, entry.name));
  }
  return binaries;
}

async function isZombie(pid: number): Promise<boolean> {
  return /\) Z/.test(await readFile(`/proc/${pid}/stat`, "utf8").catch(() => ""));
}

function works([program = "", ...args]: readonly string[]): boolean {
  try {
    execFileSync(program, args, { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}
