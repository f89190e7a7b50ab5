// Starts the server so that it never outlives us: a watcher holds the other end of a pipe from this process.
// Portable, unlike a parent-death signal, which would also fire when a worker thread ends.
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import type { Installation } from "./identity.ts";

// The shell becomes the server, so its pid is the server's. The watcher is forked twice, since the server would take
// a child it does not know for a crashed one. When the pipe closes (we ended, however), the watcher asks for a fast
// shutdown, but only of the pid that postmaster.pid names, which may not have been written yet: hence the loop.
const script = `
cluster=$1; shift
exec 3<&0
watch() {
  read -r _ <&3
  for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do
    kill -0 $$ || return
    read -r pid <"$cluster/postmaster.pid" && [ "$pid" = $$ ] && { kill -INT $$; return; }
    sleep 0.1
  done
}
( watch >/dev/null 2>&1 & )
exec "$@" </dev/null 3<&-
`;

/** Runs `postgres`, its output going to the open file `log`. */
export function spawnGuarded(
  installation: Installation,
  command: readonly string[],
  log: number,
): ChildProcess {
  const { identity, env, cluster } = installation;
  const child = spawn("sh", ["-c", script, "sh", cluster, ...identity.prefix, ...command], {
    ...identity.drop,
    env,
    cwd: "/",
    detached: true, // Ctrl-C in the terminal must not reach the server while we drain
    stdio: ["pipe", log, log],
  });
  child.stdin?.on("error", () => undefined);
  child.on("exit", () => child.stdin?.destroy()); // lets the watcher go
  // The server alone does not keep this process alive.
  child.unref();
  if (child.stdin && "unref" in child.stdin && typeof child.stdin.unref === "function") child.stdin.unref();
  return child;
}
