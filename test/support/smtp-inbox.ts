// A real SMTP server that keeps what it receives, and at every step does what it is told: refuse, hang, cut the line.
import { once } from "node:events";
import type { AddressInfo, Socket } from "node:net";
import { SMTPServer, type SMTPServerDataStream, type SMTPServerSession } from "smtp-server";

/**
 * Where a mail has come to. `data`: it was announced, none of it has come. `middle`: the first bytes have come. `end`: all of
 * them have, and the server has not said a word.
 */
export type InboxPlace = "connect" | "auth" | "mail" | "rcpt" | "data" | "middle" | "end";

export interface InboxStep {
  readonly at: InboxPlace;
  /** Counted from 1. */
  readonly connection: number;
  /** The sender or recipient that was named in this step, or the user. */
  readonly who?: string;
}

/** What the server does instead of going on. Keep: the mail is received all the same (only at the `end`). */
export type InboxAct =
  | { readonly code: number; readonly text: string }
  | { readonly hang: true; readonly keep?: true }
  | { readonly drop: true; readonly keep?: true }
  /** Goes on after a while, and says so just before. */
  | { readonly afterMs: number; readonly onAnswer?: () => void };

export interface ReceivedMail {
  readonly from: string;
  readonly to: readonly string[];
  readonly raw: string;
  /** With names in lower case, unfolded. */
  readonly headers: Readonly<Record<string, string>>;
  readonly connection: number;
  readonly secure: boolean;
  readonly at: Date;
}

export interface SmtpInboxOptions {
  /** Decides at every step; undefined goes on. */
  readonly onStep?: (step: InboxStep) => InboxAct | undefined;
  /** Offers STARTTLS, with a certificate that nobody trusts. @default false */
  readonly tls?: boolean;
  /** @default a free one */
  readonly port?: number;
}

export interface SmtpInbox {
  readonly port: number;
  /** `smtp://127.0.0.1:…` */
  readonly url: string;
  readonly mails: readonly ReceivedMail[];
  /** Everything that was asked, in order. */
  readonly steps: readonly InboxStep[];
  /** Resolves as soon as a place has been reached so many times. */
  reached(at: InboxPlace, times?: number): Promise<void>;
  /** The connections that are open now, by their numbers. */
  open(): readonly number[];
  stop(): Promise<void>;
}

type Continue = (error?: Error | null) => void;

/** Starts it on loopback. */
export async function startSmtpInbox({
  onStep = () => undefined,
  tls = false,
  port = 0,
}: SmtpInboxOptions = {}): Promise<SmtpInbox> {
  const mails: ReceivedMail[] = [];
  const steps: InboxStep[] = [];
  const sockets = new Map<number, Socket>();
  const numbers = new Map<string, number>();
  const ports = new Map<number, number>();
  const waiting = new Set<() => void>();

  /** Takes the step: on, or what was told. */
  function take(
    session: SMTPServerSession,
    at: InboxPlace,
    { who, go, keep }: { who?: string; go: Continue; keep?: () => void },
  ): void {
    if (!numbers.has(session.id)) {
      numbers.set(session.id, numbers.size + 1);
      ports.set(session.remotePort, numbers.size);
    }
    const step = { at, connection: numbers.get(session.id)!, ...(who !== undefined && { who }) };
    steps.push(step);
    const act = onStep(step);
    if (act !== undefined && "afterMs" in act) {
      keep?.();
      setTimeout(() => {
        act.onAnswer?.();
        go();
      }, act.afterMs);
    } else if (act === undefined || "code" in act) {
      if (act === undefined) keep?.();
      go(act && Object.assign(new Error(act.text), { responseCode: act.code }));
    } else {
      if (act.keep) keep?.();
      if ("drop" in act) sockets.get(session.remotePort)?.destroy();
    }
    for (const look of waiting) look();
  }

  function receive(stream: SMTPServerDataStream, session: SMTPServerSession, answer: Continue): void {
    const pieces: Buffer[] = [];
    take(session, "data", {
      go: () => {
        let isGoingOn = false;
        stream.once("data", () => take(session, "middle", { go: () => (isGoingOn = true) }));
        stream.on("data", (piece: Buffer) => pieces.push(piece));
        stream.once("end", () => {
          // a short mail comes in one piece: the line was cut in its middle all the same
          if (!isGoingOn) return;
          const keep = () => mails.push(mailOf(session, Buffer.concat(pieces), numbers.get(session.id)!));
          take(session, "end", { go: answer, keep });
        });
        stream.once("error", () => {});
      },
    });
  }

  const server = new SMTPServer({
    authOptional: true,
    allowInsecureAuth: true,
    disableReverseLookup: true,
    hideENHANCEDSTATUSCODES: true,
    disabledCommands: tls ? [] : ["STARTTLS"],
    closeTimeout: 1,
    onConnect: (session, go) => take(session, "connect", { go }),
    onAuth: ({ username }, session, answer) =>
      take(session, "auth", {
        who: username ?? "",
        go: (error) => answer(error, error ? undefined : { user: username }),
      }),
    onMailFrom: ({ address }, session, go) => take(session, "mail", { who: address, go }),
    onRcptTo: ({ address }, session, go) => take(session, "rcpt", { who: address, go }),
    onData: receive,
  });
  server.on("error", () => {}); // of a connection: they are cut on purpose
  server.server.on("connection", (socket) => {
    const { remotePort = 0 } = socket;
    sockets.set(remotePort, socket);
    socket.once("close", () => sockets.delete(remotePort));
  });
  server.listen(port, "127.0.0.1");
  await once(server.server, "listening");
  const bound = (server.server.address() as AddressInfo).port;

  return {
    port: bound,
    url: `smtp://127.0.0.1:${bound}`,
    mails,
    steps,
    open: () => [...ports].flatMap(([port, number]) => (sockets.has(port) ? [number] : [])),
    reached: (place, times = 1) =>
      new Promise((resolve) => {
        const look = () => {
          if (steps.filter(({ at }) => at === place).length < times) return;
          waiting.delete(look);
          resolve();
        };
        waiting.add(look);
        look();
      }),
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets.values()) socket.destroy();
      }),
  };
}

function mailOf({ envelope, secure }: SMTPServerSession, bytes: Buffer, connection: number): ReceivedMail {
  const raw = bytes.toString("utf8");
  const head = raw.slice(0, raw.indexOf("\r\n\r\n")).replaceAll(/\r\n[ \t]+/g, " ");
  const headers = head.split("\r\n").map((line) => {
    const colon = line.indexOf(":");
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
  });
  return {
    from: envelope.mailFrom ? envelope.mailFrom.address : "",
    to: envelope.rcptTo.map(({ address }) => address),
    raw,
    headers: Object.fromEntries(headers),
    connection,
    secure,
    at: new Date(),
  };
}
