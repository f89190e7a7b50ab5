// The meter of the contest: reads every batch, counts its records, and keeps none, so that the senders are what is measured.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { answerBench } from "../program.ts";

let taken = 0;

const server = createServer((request, response) => {
  const pieces: Buffer[] = [];
  request.on("data", (piece: Buffer) => pieces.push(piece));
  request.on("end", () => {
    const { records } = JSON.parse(Buffer.concat(pieces).toString()) as { records: readonly unknown[] };
    taken += records.length;
    const body = JSON.stringify({ inserted: records.length, updated: 0 });
    response.writeHead(200, { "content-type": "application/json", "content-length": body.length }).end(body);
  });
});
await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));

answerBench(
  { port: () => (server.address() as AddressInfo).port, taken: () => taken },
  () => void server.close(),
);
