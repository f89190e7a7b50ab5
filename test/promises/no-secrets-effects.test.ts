// Promise 9, for effects: no address, password or token reaches logs, metrics, alerts, errors or the audit, whatever peers say.
import { expect, onTestFinished, test } from "vitest";
import { tablesWith } from "../support/canary.ts";
import { startPeer } from "../support/http-peer.ts";
import { RECEIPT, startMailWorld } from "../support/mail-world.ts";
import { untilDrained } from "../support/work.ts";

const CANARIES = {
  address: "canary.jane@secret-canary.example",
  password: "canarypassword77",
  token: "Bearer canarytoken88",
  query: "canaryquery99",
  name: "Canaryname Jane",
};

const textOf = (error: unknown) => (error instanceof Error ? `${error.name}: ${error.message}` : "no error");

test("peers repeat every secret they were given, and none of it is told", async () => {
  const alerts: unknown[] = [];
  const peer = await startPeer((response, request, call) => {
    const { authorization } = request.headers;
    const said = JSON.stringify({
      title: `no ${authorization} for ${CANARIES.address}`,
      detail: `${request.url}`,
    });
    response.writeHead(call % 2 === 0 ? 422 : 503, { "content-type": "application/problem+json" });
    response.end(said);
  });
  onTestFinished(() => peer.stop());
  const world = await startMailWorld(
    {
      onStep: ({ at, who }) => {
        if (at === "rcpt")
          return { code: 550, text: `5.1.1 <${who}> unknown, said with ${CANARIES.password}` };
        return undefined;
      },
    },
    {
      onAlert: (alert) => void alerts.push(alert),
      http: {
        allow: [peer.url],
        tries: 2,
        destinations: { [peer.url]: { headers: { authorization: CANARIES.token } } },
      },
    },
    `shop:${CANARIES.password}@`,
  );
  const { ukemi, pool, lines, inbox } = world;
  await ukemi.work();
  await ukemi.effects.email(null, "receipt", {
    to: CANARIES.address,
    data: { ...RECEIPT, name: CANARIES.name },
    dedupe: "1",
  });
  for (const dedupe of ["a", "b"]) {
    await ukemi.effects.http(null, { url: `${peer.url}/x?key=${CANARIES.query}`, body: { a: 1 }, dedupe });
  }
  const wrong = await ukemi.effects
    .email(null, "receipt", { to: CANARIES.address, data: { name: CANARIES.name }, dedupe: "2" })
    .catch(textOf);
  const conflict = await ukemi.effects
    .email(null, "receipt", { to: `other.${CANARIES.address}`, data: RECEIPT, dedupe: "1" })
    .catch(textOf);
  await untilDrained(pool);
  // the peers did see them: otherwise nothing would be shown here
  expect(peer.seen.some(({ headers }) => headers.authorization === CANARIES.token)).toBe(true);
  expect(inbox.steps.some(({ who }) => who === CANARIES.address)).toBe(true);

  const told = [...lines(), ...alerts].map((line) => JSON.stringify(line));
  const everything = [
    ...told,
    JSON.stringify(wrong),
    JSON.stringify(conflict),
    await ukemi.metrics.registry.metrics(),
  ].join("\n");
  for (const canary of Object.values(CANARIES)) {
    expect(everything).not.toContain(canary);
    expect(everything).not.toContain(canary.split(" ").at(-1));
  }
  // the ledger must know to whom; nobody else does, and a token of the settings lies nowhere
  expect(await tablesWith(pool, CANARIES.address)).toEqual(["effects", "mail_suppressions"]);
  expect(await tablesWith(pool, "canarytoken88")).toEqual([]);
  expect(await tablesWith(pool, CANARIES.query)).toEqual(["effects"]);
});
