// The mail server of the contest: takes every mail, keeps none, and knows when each came.
import type { AddressInfo } from "node:net";
import { SMTPServer } from "smtp-server";
import { answerBench } from "../program.ts";

let began: number[] = [];

const server = new SMTPServer({
  authOptional: true,
  disabledCommands: ["STARTTLS"],
  disableReverseLookup: true,
  onMailFrom(_, __, next) {
    began.push(performance.now());
    next();
  },
  onData(stream, _, next) {
    stream.resume();
    stream.once("end", () => next());
  },
});
await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));

/** What came since the last time: how many a second, and how many in the busiest second. */
function seen() {
  const times = began;
  began = [];
  const perSecond = ((times.length - 1) * 1000) / (times.at(-1)! - times[0]!);
  const busiest = Math.max(
    ...times.map((from) => times.filter((at) => at >= from && at < from + 1000).length),
  );
  return { mails: times.length, perSecond, busiest };
}

answerBench({ port: () => (server.server.address() as AddressInfo).port, seen }, () => server.close());
