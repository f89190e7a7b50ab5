// A client that can do what a well-behaved one cannot: half a head, a body that never ends, two requests in one write.
import { connect, type Socket } from "node:net";

/** What came back on a connection until it was closed. */
export interface RawAnswer {
  /** Status codes of the answers, in order. */
  readonly statuses: number[];
  readonly text: string;
}

/** Opens a connection to the server behind the URL. */
export function open(url: string): Socket {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.on("error", () => {}); // a reset is an outcome, not a failure of the test
  return socket;
}

/** Reads until the server closes the connection, or the time is up. */
export function readToEnd(socket: Socket, timeoutMs = 10_000): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    let text = "";
    const timer = setTimeout(() => {
      socket.destroy();
      reject(
        new Error(
          `the server did not close the connection within ${timeoutMs} ms; it said: ${text.slice(0, 200)}`,
        ),
      );
    }, timeoutMs);
    socket.on("data", (chunk) => (text += chunk.toString("latin1")));
    socket.on("close", () => {
      clearTimeout(timer);
      resolve({
        statuses: [...text.matchAll(/^HTTP\/1\.1 (\d{3})/gm)].map((match) => Number(match[1])),
        text,
      });
    });
  });
}

/** Sends the text and reads to the end. */
export function exchange(url: string, request: string | Buffer, timeoutMs?: number): Promise<RawAnswer> {
  const socket = open(url);
  socket.write(request);
  return readToEnd(socket, timeoutMs);
}
