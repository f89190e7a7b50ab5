// The lock against two exporters on one spool: a socket in its folder, on which the holder listens. A holder that dies lets go
// of it, however it dies.
import { randomUUID } from "node:crypto";
import { link, rename, rm } from "node:fs/promises";
import { connect, createServer, type Server } from "node:net";
import { join, relative } from "node:path";
import { UkemiError } from "../../errors.ts";
import { orTell } from "./disk.ts";

const NAME = "lock";
/** A path of a socket may not be longer, on any system. */
const PATH_MAX = 100;

/** A folder that is held. */
interface Held {
  release(): Promise<void>;
}

/** Holds the folder until it is released; throws where somebody else does. */
export function lockFolder(folder: string): Promise<Held> {
  return orTell(folder, () => hold(folder));
}

async function hold(folder: string): Promise<Held> {
  const lock = join(folder, NAME);
  const own = join(folder, `${NAME}.${randomUUID().slice(0, 8)}`);
  const server = await listen(own);
  const held = {
    async release() {
      // a lock that cannot be removed is one that nobody holds, as after a crash: no reason to hide why the run ended
      await rm(lock, { force: true }).catch(() => {});
      server.close();
    },
  };
  try {
    if (await take(own, lock)) return held;
    if (!(await isHeld(lock))) {
      // its holder died. Whoever else sees that may have put its own in place already: what was moved away is asked again
      const away = `${own}.old`;
      await rename(lock, away).catch(ignoreMissing);
      if (await isHeld(away)) await link(away, lock).catch(() => {});
      await rm(away, { force: true });
      if (await take(own, lock)) return held;
    }
  } catch (error) {
    await letGo();
    throw error;
  }
  await letGo();
  throw new UkemiError("spool_locked", `Another exporter works on the spool ${folder}.`);

  async function letGo(): Promise<void> {
    server.close();
    await rm(own, { force: true });
  }
}

/** False where there is one already. */
async function take(own: string, lock: string): Promise<boolean> {
  try {
    await link(own, lock);
    await rm(own, { force: true }); // a holder that is killed leaves nothing but the lock
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

function listen(path: string): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.unref();
    server.once("error", reject);
    server.listen(shorter(path), () => resolve(server));
  });
}

/** Whether somebody listens. */
function isHeld(path: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const socket = connect(shorter(path));
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", (error: NodeJS.ErrnoException) => {
      if (["ECONNREFUSED", "ENOENT", "ENOTSOCK"].includes(error.code ?? "")) resolve(false);
      else reject(error);
    });
  });
}

/** From here, where that is shorter. */
function shorter(path: string): string {
  const near = relative(process.cwd(), path);
  const shown = near.length < path.length ? near : path;
  if (Buffer.byteLength(shown) <= PATH_MAX) return shown;
  throw new UkemiError("spool_failed", `The path of the spool is too long for a lock: ${path}.`, {
    remedy: "Choose a data folder with a shorter path (--data).",
  });
}

function ignoreMissing(error: unknown): void {
  if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
}
