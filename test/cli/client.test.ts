// The client: what is no answer of Ukemi's is never taken for one, and secrets stay where they are.
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { createClient } from "../../src/client/client.ts";
import { runCli } from "../support/cli.ts";

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await new Promise((resolve) => server.once("listening", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test("a page that is not Ukemi's is an error, whatever its status", async () => {
  const url = await serve((_, response) =>
    response.setHeader("content-type", "text/html").end("<h1>hello</h1>"),
  );
  const client = createClient({ url });
  await expect(client.listEvents()).rejects.toMatchObject({ code: "not_ukemi", status: 200 });
  await expect(client.replayDead({ all: true, dry_run: true })).rejects.toMatchObject({ code: "not_ukemi" });
  for (const args of [["events"], ["dead", "replay", "--all", "--reason", "x", "--yes"]]) {
    const { code, output } = await runCli([...args, "--url", url]);
    expect(output).toContain("not as Ukemi does");
    expect(output).not.toContain("    at ");
    expect(code).toBe(1);
  }
});

test("a redirect is not followed: a change would arrive as a question, and elsewhere", async () => {
  const seen: string[] = [];
  const url = await serve((request, response) => {
    seen.push(`${request.method} ${request.url}`);
    response.writeHead(301, { location: "/elsewhere" }).end();
  });
  await expect(
    createClient({ url, token: "ukemi_x" }).dropDead({ all: true, reason: "x" }),
  ).rejects.toMatchObject({ status: 301, code: "not_ukemi" });
  expect(seen).toEqual(["POST /api/v1/dead/drop"]);
});

test("a password in the URL is refused and never printed", async () => {
  expect(() => createClient({ url: "http://user:hunter2@127.0.0.1:1" })).toThrow(
    "must not carry a name or password",
  );
  const { code, output } = await runCli(["events", "--url", "http://user:hunter2@127.0.0.1:1"]);
  expect(output).not.toContain("hunter2");
  expect(code).toBe(2);
});

test("a token whose secret was lost on the way is no success", async () => {
  const token = {
    id: "0190",
    name: "x",
    hint: "ukemi_",
    scope: "read",
    tenants: null,
    created_at: "2026-01-01T00:00:00Z",
    created_by: "x",
    lifetime_seconds: null,
    expires_at: null,
    last_used_at: null,
    revoked_at: null,
    replaces: null,
    active: true,
    secret: null,
  };
  const url = await serve((_, response) =>
    response.setHeader("content-type", "application/json").end(JSON.stringify(token)),
  );
  const { code, stdout, stderr } = await runCli([
    "token",
    "create",
    "--name",
    "x",
    "--reason",
    "x",
    "--url",
    url,
  ]);
  expect(stdout).toBe("");
  expect(stderr).toContain("ukemi token revoke 0190");
  expect(code).toBe(1);
});
