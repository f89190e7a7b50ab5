// What `ukemi init` writes into a Next.js project: built by `next build`, run by `next start`, worked on by `ukemi work`.
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { sampleEvent } from "../../src/testing/sample-events.ts";
import { runCli } from "../support/cli.ts";
import { createDatabase } from "../support/database.ts";
import { startServerProcess } from "../support/server.ts";
import { until } from "../support/until.ts";
import { NEXT, readExample, runIn, startExample, unpackExample } from "./example.ts";
import { post } from "./receives.ts";

test.each([
  { router: "app", route: "app/api/webhooks/stripe/route.ts" },
  { router: "src/pages", route: "src/pages/api/webhooks/stripe.ts" },
])("the route of $router receives, and the handler does its work", async ({ router, route }) => {
  const { folder, remove } = await unpackExample();
  onTestFinished(remove);
  const manifest = { type: "module", dependencies: { next: "16" }, devDependencies: { typescript: "7" } };
  await writeFile(join(folder, "package.json"), JSON.stringify(manifest));
  await writeFile(join(folder, "tsconfig.json"), await readExample("nextjs/tsconfig.json"));
  await mkdir(join(folder, router), { recursive: true });

  const { stdout } = await runCli(["init", "--json"], {}, { cwd: folder });
  const { files, mount } = JSON.parse(stdout) as { files: { path: string }[]; mount: { code: string } };
  expect(files.map(({ path }) => path)).toContain(route);
  const example = await readExample("nextjs/next.config.ts");
  expect(example).toContain(mount.code);
  await writeFile(join(folder, "next.config.ts"), example);
  await runIn(folder, [NEXT, "build"]); // without any secret

  const { url, pool } = await createDatabase();
  const worker = await startServerProcess(
    { DATABASE_URL: url },
    ["--config", join(folder, "ukemi.config.ts")],
    "work",
  );
  onTestFinished(async () => void (await worker.kill("SIGKILL")));
  const app = await startExample(folder, [NEXT, "start", "-H", "127.0.0.1", "-p", "0"], url);
  const event = sampleEvent("payment_intent.succeeded", { ids: { paymentIntent: "pi_1" } });
  expect((await post(`${app.url}/api`, event)).status, app.output()).toBe(204);
  const noted = () =>
    pool.query("select from ukemi.audit_log where action = 'payment.paid' and target = 'pi_1'");
  await until(async () => (await noted()).rowCount === 1, "the handler's line in the audit");
  expect(await readFile(join(folder, route), "utf8")).toContain("createUkemi");
});
