// Whether there is room for millions of rows, asked before they are made.
import { statfs } from "node:fs/promises";
import { grouped, size } from "../tables.ts";

/** Throws where there is too little, with what can be done about it. */
export async function demandRoom(
  folder: string,
  { rows, bytes }: { readonly rows: number; readonly bytes: number },
): Promise<void> {
  const { bavail, bsize } = await statfs(folder);
  const free = bavail * bsize;
  if (free > bytes) return;
  throw new Error(
    `${grouped(rows)} rows need about ${size(bytes)} of disk, and ${size(free)} are free in ${folder}: ` +
      "set TMPDIR to another disk, or choose fewer with --rows",
  );
}
