// Looks at the package as its users get it: packs it, lints it, installs it elsewhere and runs it.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const scratch = mkdtempSync(join(tmpdir(), "ukemi-package-"));
const run = (command, args, cwd = process.cwd()) =>
  execFileSync(command, args, { cwd, stdio: ["ignore", "pipe", "inherit"], encoding: "utf8" });

try {
  const [{ filename, files }] = JSON.parse(
    run("npm", ["pack", "--json", "--loglevel=error", "--pack-destination", scratch]),
  );
  const tarball = join(scratch, filename);
  const stray = files.map((file) => file.path).filter((path) => /\.test\.|^src\/|^test\/|\.ukemi/.test(path));
  if (stray.length > 0) throw new Error(`the package carries what it should not: ${stray.join(", ")}`);
  console.log(
    `${files.length} files, ${Math.round(files.reduce((sum, file) => sum + file.size, 0) / 1024)} KiB unpacked`,
  );

  const tool = (name, path, ...args) =>
    console.log(run(process.execPath, [resolve("node_modules", name, path), ...args]).trim());
  tool("publint", "src/cli.js", "run", tarball, "--strict");
  tool("@arethetypeswrong/cli", "dist/index.js", tarball, "--profile", "esm-only", "--no-color");

  const user = join(scratch, "user");
  execFileSync("mkdir", ["-p", user]);
  writeFileSync(join(user, "package.json"), '{"name":"user","private":true,"type":"module"}\n');
  writeFileSync(join(user, "use.mjs"), userProgram());
  run(
    "npm",
    [
      "install",
      "--no-audit",
      "--no-fund",
      "--omit=optional",
      "--ignore-scripts",
      "--loglevel=error",
      tarball,
    ],
    user,
  );
  const said = run(process.execPath, ["use.mjs"], user).trim();
  if (said !== "function function function function") throw new Error(`an installed package says: ${said}`);
  console.log(run(process.execPath, ["node_modules/ukemi/dist/cli/bin.js", "--version"], user).trim());
} finally {
  rmSync(scratch, { recursive: true, force: true });
}

function userProgram() {
  return `import { createUkemi, stripe } from "ukemi";
import { prismaTransaction } from "ukemi/prisma";
import { signStripe } from "ukemi/testing";
console.log(typeof createUkemi, typeof stripe, typeof prismaTransaction, typeof signStripe);
`;
}
