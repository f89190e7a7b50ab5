// The spool: batches that could not be sent, one file each, in a folder of the exporter's own.
//
// A batch is saved when its file has its last name, and not before: it is written under another one, flushed, and renamed, and
// the folder is flushed. What a crash leaves of the first name was never said to be saved.
import { mkdir, open, readdir, readFile, rename, rm, stat, type FileHandle } from "node:fs/promises";
import { dirname, join } from "node:path";
import { crashPoint } from "../../crash-point.ts";
import { uuidv7 } from "../../storage/ids.ts";
import { orTell } from "./disk.ts";
import { frameOf, readFrame } from "./frame.ts";

/**
 * Why a batch is here. `due`: the meter was away, it is sent with the next run. `refused`: the meter does not want it as it is.
 * `blocked`: the meter does not want anything from us (token, tenant, URL). The last two are sent when somebody says so.
 */
export const SPOOL_STATES = ["due", "refused", "blocked"] as const;
export type SpoolState = (typeof SPOOL_STATES)[number];

/** What is kept of a batch. */
export interface KeptBatch {
  readonly tenant: string;
  /** Texts of JSON. */
  readonly records: readonly string[];
  /** Where it came from, for a person. */
  readonly from: string;
  /** Why it is here, for a person. */
  readonly why: string;
}

/** A batch of the spool, by its file. */
export interface Spooled {
  readonly id: string;
  readonly state: SpoolState;
  readonly savedAt: Date;
  readonly bytes: number;
}

/** What is in the folder, oldest first. */
export interface SpoolContent {
  readonly batches: readonly Spooled[];
  /** Names of files that were never finished. */
  readonly unfinished: readonly string[];
}

export interface Spool {
  readonly folder: string;
  save(state: SpoolState, batch: KeptBatch): Promise<string>;
  list(): Promise<SpoolContent>;
  /** The batch; undefined where its file is not what was written. */
  read(spooled: Spooled): Promise<KeptBatch | undefined>;
  /** It was sent. */
  remove(spooled: Spooled): Promise<void>;
  /** It is here for another reason now. */
  move(spooled: Spooled, state: SpoolState): Promise<void>;
  /** Takes away what was never finished; returns how many there were. */
  sweep(): Promise<number>;
}

const UNFINISHED = ".part";
const NAME = /^([0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12})\.(due|refused|blocked)$/;

/** Opens the spool of a folder, which is made where it is missing. */
export async function openSpool(folder: string): Promise<Spool> {
  const using = <T>(work: () => Promise<T>) => orTell(folder, work);
  await using(() => makeFolder(folder));
  let savedMs = 0;
  const pathOf = (name: string) => join(folder, name);
  const nameOf = ({ id, state }: Pick<Spooled, "id" | "state">) => `${id}.${state}`;

  return {
    folder,
    save: (state, batch) =>
      using(async () => {
        savedMs = Math.max(Date.now(), savedMs + 1); // names sort as they were saved
        const id = uuidv7(savedMs);
        const part = pathOf(`${id}${UNFINISHED}`);
        try {
          await writeDurably(part, frameOf(Buffer.from(JSON.stringify(batch))));
          crashPoint("spool.before_rename");
          await rename(part, pathOf(nameOf({ id, state })));
          crashPoint("spool.before_folder_flush");
          await flushFolder(folder);
        } catch (error) {
          await rm(part, { force: true }).catch(() => {}); // room for others; what is left is swept
          throw error;
        }
        crashPoint("spool.saved");
        return id;
      }),
    list: () =>
      using(async () => {
        const names = (await readdir(folder)).toSorted();
        const batches = await Promise.all(
          names.flatMap((name) => (NAME.test(name) ? spooledIn(folder, name) : [])),
        );
        return {
          batches: batches.filter((one) => one !== undefined),
          unfinished: names.filter((name) => name.endsWith(UNFINISHED)),
        };
      }),
    read: (spooled) =>
      using(async () => {
        const content = readFrame(await readFile(pathOf(nameOf(spooled))));
        return content && (JSON.parse(content.toString()) as KeptBatch);
      }),
    remove: (spooled) =>
      using(async () => {
        crashPoint("spool.before_remove");
        await rm(pathOf(nameOf(spooled)));
        await flushFolder(folder);
      }),
    move: (spooled, state) =>
      using(async () => {
        await rename(pathOf(nameOf(spooled)), pathOf(nameOf({ ...spooled, state })));
        await flushFolder(folder);
      }),
    sweep: () =>
      using(async () => {
        const unfinished = (await readdir(folder)).filter((name) => name.endsWith(UNFINISHED));
        for (const name of unfinished) await rm(pathOf(name), { force: true });
        return unfinished.length;
      }),
  };
}

/** What mkdir does recursively, which says of a folder on a read-only disk that it is missing. */
async function makeFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder, { mode: 0o700 });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST") return;
    if (code !== "ENOENT" || dirname(folder) === folder) throw error;
    await makeFolder(dirname(folder));
    await makeFolder(folder);
  }
}

async function spooledIn(folder: string, name: string): Promise<Spooled | undefined> {
  const [, id, state] = NAME.exec(name)!;
  const { size, mtime } = await stat(join(folder, name)).catch(() => ({ size: -1, mtime: new Date(0) }));
  if (size < 0) return undefined; // it was sent meanwhile
  return { id: id!, state: state as SpoolState, savedAt: mtime, bytes: size };
}

async function writeDurably(path: string, bytes: Buffer): Promise<void> {
  const file = await open(path, "wx", 0o600);
  try {
    crashPoint("spool.before_write");
    await writeAll(file, bytes);
    crashPoint("spool.before_flush");
    await file.sync();
  } finally {
    await file.close();
  }
}

/** A disk that fills up takes a part without a word, and refuses the next. */
async function writeAll(file: FileHandle, bytes: Buffer): Promise<void> {
  for (let at = 0; at < bytes.length;) {
    const { bytesWritten } = await file.write(bytes, at);
    at += bytesWritten;
  }
}

async function flushFolder(folder: string): Promise<void> {
  const handle = await open(folder);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
