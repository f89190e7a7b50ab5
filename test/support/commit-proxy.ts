// A proxy in front of PostgreSQL that knows a COMMIT when it sees one, and does to it what a network can do.
import { createConnection, createServer, type AddressInfo, type Socket } from "node:net";
import { onTestFinished } from "vitest";

/**
 * - `lost`: the connection is cut before the server got it.
 * - `unanswered`: the server has committed; the connection is cut before the answer.
 * - `stranded`: as `lost`, but the server does not notice: for it the transaction is still open.
 * - `late`: nothing passes until the client has given up; then the server gets it after all, when the test says so.
 */
export type CommitFault = "lost" | "unanswered" | "stranded" | "late";

export interface CommitProxy {
  readonly url: string;
  /** How many commits were treated so. */
  faults(): number;
  /** Lets commits through that are late. */
  deliver(): void;
}

export interface CommitProxyOptions {
  /** Only commits of connections that have sent this text since their last commit. */
  readonly after: string;
  /** True where the transaction is one trip: it is committed by Sync. @default false */
  readonly oneTrip?: boolean;
  readonly fault: CommitFault;
  /** Which of those commits, counted from 0. */
  readonly which: (index: number) => boolean;
}

/** Starts a proxy in front of the database; the end of the test stops it. */
export async function startCommitProxy(url: string, options: CommitProxyOptions): Promise<CommitProxy> {
  const sockets = new Set<Socket>();
  const late: (() => void)[] = [];
  let commits = 0;
  let faults = 0;

  function accept(client: Socket): void {
    const server = createConnection(targetOf(url));
    for (const socket of [client, server]) {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.once("close", () => sockets.delete(socket));
    }
    const read = createReader();
    let marked = false;
    let fault: CommitFault | undefined;
    const cut = () => [client, server].forEach((socket) => socket.destroy());

    client.on("data", (chunk: Buffer) => {
      for (const message of read(chunk)) {
        if (message.includes(options.after)) marked = true;
        if (fault === undefined && marked && (options.oneTrip ? isSync(message) : isCommit(message))) {
          marked = false;
          if (options.which(commits++)) {
            fault = options.fault;
            faults += 1;
          }
        }
        if (fault === undefined || fault === "unanswered") server.write(message);
        else if (fault === "late") late.push(() => void server.write(message));
        else if (fault === "lost") cut();
        else client.destroy();
      }
    });
    server.on("data", (chunk: Buffer) => {
      if (fault === undefined) client.write(chunk);
      else if (fault === "unanswered" && chunk.includes(options.oneTrip ? READY : "COMMIT\0")) cut();
    });
    client.on("close", () => void (fault === "late" || fault === "stranded" || server.destroy()));
    server.on("close", () => client.destroy());
  }

  const listener = createServer(accept);
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    listener.close();
    for (const socket of sockets) socket.destroy();
  });
  const through = new URL(url);
  through.hostname = "127.0.0.1";
  through.port = String((listener.address() as AddressInfo).port);
  through.searchParams.delete("host");
  through.searchParams.delete("port");
  return {
    url: through.href,
    faults: () => faults,
    deliver: () => late.splice(0).forEach((send) => send()),
  };
}

/** Cuts the client's stream into messages: the first has a length only, the others a letter before it. */
function createReader(): (chunk: Buffer) => Buffer[] {
  let rest: Buffer = Buffer.alloc(0);
  let isFirst = true;
  return (chunk) => {
    rest = Buffer.concat([rest, chunk]);
    const messages: Buffer[] = [];
    for (;;) {
      const head = isFirst ? 0 : 1;
      if (rest.length < head + 4) return messages;
      const length = head + rest.readInt32BE(head);
      if (rest.length < length) return messages;
      messages.push(rest.subarray(0, length));
      rest = rest.subarray(length);
      isFirst = false;
    }
  };
}

/** What the server says when it has committed, and waits for more. */
const READY = Buffer.from("Z\0\0\0\u0005I");

const isSync = (message: Buffer) => message[0] === "S".codePointAt(0);

/** A simple query, or one that is parsed: both hold the statement's text, ended by a zero. */
function isCommit(message: Buffer): boolean {
  const letter = String.fromCodePoint(message[0] ?? 0);
  return (letter === "Q" || letter === "P") && /(?:^|\0)commit;?\0/i.test(message.toString("latin1", 5));
}

function targetOf(url: string): { path: string } | { host: string; port: number } {
  const { hostname, port, searchParams } = new URL(url);
  const host = searchParams.get("host") ?? hostname;
  const number = Number(searchParams.get("port") ?? (port || 5432));
  return host.startsWith("/") ? { path: `${host}/.s.PGSQL.${number}` } : { host, port: number };
}
