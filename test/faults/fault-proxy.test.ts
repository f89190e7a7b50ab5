// The fault proxy itself: a fault test is worth what its fault is worth.
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createConnection, createServer, type AddressInfo, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { startFaultProxy, type FaultProxy } from "../../src/testing/index.ts";
import { until } from "../support/until.ts";

/** Answers every chunk with itself, and remembers what it heard. */
async function startEcho(path?: string) {
  const heard: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("data", (chunk) => {
      heard.push(chunk.toString());
      socket.write(chunk);
    });
  });
  server.listen(path === undefined ? { port: 0, host: "127.0.0.1" } : { path });
  await once(server, "listening");
  onTestFinished(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  const proxy = await startFaultProxy(
    path === undefined ? { host: "127.0.0.1", port: (server.address() as AddressInfo).port } : { path },
  );
  onTestFinished(() => proxy.stop());
  return { proxy, heard };
}

/** A client that has been answered once, so that both legs stand. */
async function openClient(proxy: FaultProxy) {
  const client = createConnection({ host: proxy.host, port: proxy.port });
  onTestFinished(() => void client.destroy());
  let answered = "";
  let fault = "";
  client.on("data", (chunk: Buffer) => (answered += chunk.toString()));
  client.on("error", (error: NodeJS.ErrnoException) => (fault = error.code ?? ""));
  const closed = once(client, "close").catch(() => {});
  client.write("hello ");
  await until(() => answered === "hello " || fault !== "", "an answer, or a fault");
  return { client, closed, answered: () => answered, fault: () => fault };
}

/** Long enough for anything on loopback to have arrived that is going to. */
const moment = () => new Promise((resolve) => setTimeout(resolve, 50));

test("passes both ways, also to a unix socket", async () => {
  const folder = await mkdtemp(join(tmpdir(), "ukemi-proxy-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const { proxy, heard } = await startEcho(join(folder, "echo"));
  const { client, closed } = await openClient(proxy);
  expect(heard).toEqual(["hello "]);
  expect(proxy.connections()).toBe(1);
  client.destroy();
  await closed;
  await until(() => proxy.connections() === 0, "the proxy lets go");
});

test("a black hole keeps sockets open, passes nothing, and delivers after the heal", async () => {
  const { proxy, heard } = await startEcho();
  const { client, answered, fault } = await openClient(proxy);
  await proxy.set("black hole");
  client.write("are you there?");
  await moment();
  expect(heard).toEqual(["hello "]);
  expect(fault()).toBe("");
  await proxy.set("pass");
  await until(() => answered() === "hello are you there?", "what was held arrives");
});

test("lost answers: the target hears, the client does not", async () => {
  const { proxy, heard } = await startEcho();
  const { client, answered } = await openClient(proxy);
  await proxy.set("lose answers");
  client.write("commit");
  await until(() => heard.includes("commit"), "the target hears");
  await moment();
  expect(answered()).toBe("hello ");
});

test("a cut reaches the client as a reset, and the next connection passes", async () => {
  const { proxy } = await startEcho();
  const { closed, fault } = await openClient(proxy);
  proxy.cut();
  await closed;
  expect(fault()).toBe("ECONNRESET");
  expect((await openClient(proxy)).fault()).toBe("");
});

test("resets, and refuses, until it is healed, on the same port", async () => {
  const { proxy } = await startEcho();
  await proxy.set("reset");
  expect((await openClient(proxy)).fault()).toBe("ECONNRESET");
  await proxy.set("refuse");
  expect((await openClient(proxy)).fault()).toBe("ECONNREFUSED");
  await proxy.set("pass");
  expect((await openClient(proxy)).answered()).toBe("hello ");
});

test("a stranded connection stays silent after the heal, a new one does not", async () => {
  const { proxy } = await startEcho();
  const { client, answered, fault } = await openClient(proxy);
  proxy.strand();
  await proxy.set("pass");
  client.write("anybody?");
  expect((await openClient(proxy)).answered()).toBe("hello ");
  await moment();
  expect([answered(), fault()]).toEqual(["hello ", ""]);
});

test("delays each way", async () => {
  const { proxy } = await startEcho();
  proxy.delay(100);
  const startedAt = performance.now();
  await openClient(proxy);
  expect(performance.now() - startedAt).toBeGreaterThan(199);
});
