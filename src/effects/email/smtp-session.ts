// One connection to an SMTP server, made of nodemailer's: each step is a promise that also ends where the connection does.
import { Readable } from "node:stream";
import type { ConnectionOptions } from "node:tls";
import SMTPConnection, { type SentMessageInfo } from "nodemailer/lib/smtp-connection";
import type { Letter } from "./compose.ts";
import { GivenUp } from "./silence.ts";
import type { SmtpServer } from "./smtp-url.ts";

/** How long each part may take: nodemailer's own patience is counted in minutes. */
const PATIENCE = {
  connectionTimeout: 10_000,
  greetingTimeout: 10_000,
  socketTimeout: 30_000,
  dnsTimeout: 5000,
};

/** So much of a mail is handed over at a time: where the last piece was never asked for, nothing was sent. */
const PIECE_BYTES = 16 * 1024;

/** A connection that is encrypted and signed in, for one mail at a time. */
export interface SmtpSession {
  /** Sends one mail. `onHandedOver` is called as its last bytes go: from then on only the server knows. */
  send(letter: Letter, signal: AbortSignal, onHandedOver: () => void): Promise<SentMessageInfo>;
  /** Says good-bye, and does not wait for an answer. */
  quit(): void;
  /** Calls back where the connection comes to its end. */
  onEnd(then: () => void): void;
}

/** Connects, encrypts and signs in. Where a step fails or the signal fires, the connection is cut. */
export async function openSession(
  { host, port, secure, requireTls, auth }: SmtpServer,
  tls: ConnectionOptions | undefined,
  signal: AbortSignal,
): Promise<SmtpSession> {
  const connection = new SMTPConnection({
    host,
    port,
    secure,
    requireTLS: requireTls,
    ...(tls && { tls }),
    ...PATIENCE,
  });
  // one that comes while nothing is asked: the end that follows is what counts
  connection.on("error", () => {});
  await step<void>(connection, signal, (done) => connection.connect((error) => done(error ?? null)));
  if (auth) {
    await step<unknown>(connection, signal, (done) => connection.login({ credentials: { ...auth } }, done));
  }
  return {
    send: ({ raw, from, to }, signal, onHandedOver) =>
      step<SentMessageInfo>(connection, signal, (done) =>
        connection.send({ from, to, size: raw.length }, inPieces(raw, onHandedOver), done),
      ),
    quit() {
      connection.quit();
      connection.close();
    },
    onEnd: (then) => connection.once("end", then),
  };
}

/** Asks one thing of the connection. Where that fails, cuts it: it is in no state for another. */
function step<T>(
  connection: SMTPConnection,
  signal: AbortSignal,
  ask: (done: (error: Error | null, answer?: T) => void) => void,
): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const fail = (error: Error) => {
      reject(error);
      tidy();
      connection.close();
    };
    const giveUp = () => fail(new GivenUp("The attempt was given up before the server answered."));
    // the server's last words are told just after the end
    const onEnd = () => setImmediate(() => fail(closed()));
    const tidy = () => {
      signal.removeEventListener("abort", giveUp);
      connection.off("error", fail);
      connection.off("end", onEnd);
    };
    signal.addEventListener("abort", giveUp, { once: true });
    connection.once("error", fail);
    connection.once("end", onEnd);
    if (signal.aborted) return giveUp();
    ask((error, answer) => {
      if (error) return fail(error);
      tidy();
      resolve(answer as T);
    });
  });
}

/** The bytes of a mail, and word as the last of them are taken: nodemailer takes them only once the server asks for them. */
function inPieces(raw: Buffer, onLast: () => void): Readable {
  function* pieces() {
    for (let from = 0; from < raw.length; from += PIECE_BYTES) {
      if (from + PIECE_BYTES >= raw.length) onLast();
      yield raw.subarray(from, from + PIECE_BYTES);
    }
  }
  return Readable.from(pieces(), { objectMode: false, highWaterMark: PIECE_BYTES });
}

function closed(): Error {
  return Object.assign(new Error("The connection was closed."), { code: "ECONNECTION" });
}
