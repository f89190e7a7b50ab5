// Tools from Debian's packages that a few tests and the bench need: unpacked into a folder of the project, not installed.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";

/** Where they are unpacked. */
export const DEBIAN_FOLDER = "node_modules/.cache/ukemi-debian";

/** Where Debian keeps this machine's libraries. */
export const DEBIAN_LIBRARIES = `usr/lib/${{ x64: "x86_64", arm64: "aarch64" }[process.arch] ?? process.arch}-linux-gnu`;

/** Which test needs what: the file that shows it is there, and the packages it comes from. */
const TOOLS = [
  {
    file: `${DEBIAN_LIBRARIES}/faketime/libfaketime.so.1`,
    packages: ["libfaketime"],
    test: "the clock of a whole process jumping (libfaketime)",
  },
  {
    file: "usr/lib/fiu/fiu_posix_preload.so",
    packages: ["fiu-utils", "libfiu0"],
    test: "the exporter on a disk that does not flush (libfiu)",
  },
  {
    file: "usr/sbin/pgbouncer",
    packages: ["pgbouncer", "libevent-2.1-7", "libc-ares2"],
    test: "a transaction pooler in front of the store (pgbouncer)",
  },
  { file: "bin/zsh", packages: ["zsh", "zsh-common"], test: "the completion script in zsh" },
  {
    file: "usr/bin/fish",
    packages: ["fish", "fish-common", "libpcre2-32-0"],
    test: "the completion script in fish",
  },
];

/** What the bench's BullMQ speaks to. */
export const REDIS_SERVER = "usr/bin/redis-server";
const REDIS_PACKAGES = ["redis-server", "redis-tools", "libjemalloc2", "liblzf1", "libatomic1"];

const FOLDER = resolve(DEBIAN_FOLDER);

/** Fetches what is missing; returns a line for each test that will not run. */
export function fetchDebianTools() {
  const absent = () => TOOLS.filter((tool) => !existsSync(join(FOLDER, tool.file)));
  if (absent().length > 0 && existsSync("/usr/bin/apt-get")) fetch(absent().flatMap((tool) => tool.packages));
  return absent().map((tool) => tool.test);
}

/** Fetches Redis where it is missing; returns whether it is there. */
export function fetchRedis() {
  const isThere = () => existsSync(join(FOLDER, REDIS_SERVER));
  if (!isThere() && existsSync("/usr/bin/apt-get")) fetch(REDIS_PACKAGES);
  return isThere();
}

function fetch(packages) {
  console.log(`Fetching ${packages.join(", ")} from Debian …`);
  mkdirSync(FOLDER, { recursive: true });
  const download = () =>
    spawnSync("apt-get", ["download", "-q", ...packages], { cwd: FOLDER, stdio: "ignore" }).status === 0;
  if (!download()) {
    spawnSync("apt-get", ["update", "-q"], { stdio: "ignore" });
    download();
  }
  for (const file of readdirSync(FOLDER).filter((name) => name.endsWith(".deb"))) {
    spawnSync("dpkg", ["-x", file, "."], { cwd: FOLDER, stdio: "inherit" });
    rmSync(join(FOLDER, file));
  }
}
