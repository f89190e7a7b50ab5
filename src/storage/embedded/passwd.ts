// Who exists on this machine: the accounts of /etc/passwd.
import { readFile } from "node:fs/promises";

/** A numeric user and its group. */
export interface Account {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
}

async function accounts(): Promise<readonly Account[]> {
  const text = await readFile("/etc/passwd", "utf8").catch(() => "");
  return text
    .split("\n")
    .map((line) => line.split(":"))
    .filter((fields) => fields.length >= 4)
    .map(([name, , uid, gid]) => ({ name: name ?? "", uid: Number(uid), gid: Number(gid) }));
}

/** An account without rights for the server to run as when we are root. */
export async function unprivilegedAccount(): Promise<Account | undefined> {
  const all = await accounts();
  return ["nobody", "postgres", "daemon"]
    .map((name) => all.find((account) => account.name === name))
    .find((account) => account !== undefined && account.uid !== 0);
}

/** Whether the uid has a name; initdb refuses to run without one. On macOS accounts live elsewhere, so there: yes. */
export async function isKnown(uid: number): Promise<boolean> {
  return process.platform !== "linux" || (await accounts()).some((account) => account.uid === uid);
}
