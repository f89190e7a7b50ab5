// A disk of its own for a test: small enough to be filled, and mounted read-only when asked.
import { execFileSync } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { onTestFinished } from "vitest";

/** Whether a file system can be mounted here. Where it cannot, says that no disk can be filled. */
export function canMount(): boolean {
  try {
    if (process.getuid?.() !== 0) throw new Error("not root");
    execFileSync("unshare", ["--mount", "sh", "-c", "mount -t tmpfs -o size=1m tmpfs /mnt"], {
      stdio: "ignore",
    });
    return true;
  } catch {
    console.info("skipped: a small file system cannot be mounted here, so no disk can be filled");
    return false;
  }
}

/** Mounts one at this path, which is made; it goes with the test. */
export async function mountSmallDisk(path: string, size: string): Promise<void> {
  await mkdir(path);
  execFileSync("mount", ["-t", "tmpfs", "-o", `size=${size},mode=755`, "tmpfs", path]);
  onTestFinished(() => void execFileSync("umount", ["--lazy", path]));
}

/** Mounts it anew, such as with "ro" or "size=200m". */
export function remount(path: string, options: string): void {
  execFileSync("mount", ["-o", `remount,${options}`, path]);
}

/** Writes a file until nothing more fits. */
export function fill(file: string): void {
  execFileSync("sh", ["-c", `cat /dev/zero >"$1" 2>/dev/null || true`, "sh", file]);
}
