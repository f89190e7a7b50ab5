// Notes which process a server will end with, so that nobody adopts a server that is about to go.
import { readFile, rm, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import type { DataFolder } from "./folder.ts";
import { ifMissing } from "./folder.ts";
import { startedAt } from "./processes.ts";

/** Notes that the server ends with this process. */
export async function noteOwner(folder: DataFolder, server: number): Promise<void> {
  const text = `${server} ${process.pid} ${await startedAt(process.pid)} ${hostname()}\n`;
  await writeFile(folder.owner, text, { mode: 0o600 });
}

/** Forgets the note when the server has ended. */
export async function forgetOwner(folder: DataFolder, server: number): Promise<void> {
  const text = await readFile(folder.owner, "utf8").catch(ifMissing(""));
  if (text.startsWith(`${server} `)) await rm(folder.owner, { force: true });
}

/** True where we started the server and the process that did has ended. One started by other means is nobody's orphan. */
export async function isOrphan(folder: DataFolder, server: number): Promise<boolean> {
  const text = await readFile(folder.owner, "utf8").catch(ifMissing(""));
  const [noted, pid, started, host] = text.trim().split(" ");
  if (Number(noted) !== server || host !== hostname()) return false;
  return (await startedAt(Number(pid))) !== started;
}
