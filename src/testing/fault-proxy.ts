// A TCP proxy that misbehaves on command: between a server and its database it plays the network's faults.
import { createConnection, createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { steadyMs } from "../clock.ts";

/** Where the proxy forwards to: an address, or the path of a unix socket. */
export type FaultTarget = { readonly host: string; readonly port: number } | { readonly path: string };

/**
 * - `pass`: forwards both ways.
 * - `black hole`: sockets stay open and nothing passes, either way, as behind a firewall that drops packets. What was
 *   sent meanwhile arrives after the heal, also from a peer that has given up: as TCP does it.
 * - `lose answers`: what the client says arrives, what the target answers does not: a commit whose outcome is unknown.
 * - `reset`: every connection, open or new, is cut with RST.
 * - `refuse`: open connections are cut with RST, new ones are refused: the peer's process is gone.
 */
export type FaultMode = "pass" | "black hole" | "lose answers" | "reset" | "refuse";

/** A proxy that listens on 127.0.0.1. */
export interface FaultProxy {
  readonly host: string;
  readonly port: number;
  /** Changes what happens from now on, to open connections too. `pass` heals. */
  set(mode: FaultMode): Promise<void>;
  /** Delays everything by so many milliseconds each way; 0 ends it. Holds for what arrives from now on. */
  delay(latencyMs: number): void;
  /** Cuts the connections that are open now with RST, whatever the mode. */
  cut(): void;
  /** Lets the connections that are open now stay silent for ever, also after the heal: half-open, as after a failover. */
  strand(): void;
  /** How many connections are open. */
  connections(): number;
  stop(): Promise<void>;
}

/** Starts a proxy in front of the target, in mode `pass`, on a free port. */
export async function startFaultProxy(target: FaultTarget): Promise<FaultProxy> {
  const host = "127.0.0.1";
  const open = new Map<Socket, readonly Pipe[]>();
  let mode: FaultMode = "pass";
  let latencyMs = 0;
  let listener: Server | undefined;
  let port = 0;

  function accept(client: Socket): void {
    client.on("error", () => {});
    if (mode === "reset") return void client.resetAndDestroy();
    const peer = createConnection({ ...target, allowHalfOpen: true });
    const latency = () => latencyMs;
    open.set(client, [
      forward(client, peer, latency, () => mode === "black hole"),
      forward(peer, client, latency, () => mode === "black hole" || mode === "lose answers"),
    ]);
    client.once("close", () => open.delete(client));
  }

  async function listen(): Promise<void> {
    const server = createServer({ allowHalfOpen: true }, accept);
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(port, host, resolve);
    });
    port = (server.address() as AddressInfo).port;
    listener = server;
  }

  function deafen(): void {
    listener?.close();
    listener = undefined;
  }

  const each = (act: (pipe: Pipe) => void) => [...open.values()].flat().forEach(act);
  const cut = () => each((pipe) => pipe.destroy());

  await listen();
  return {
    host,
    port,
    async set(next) {
      mode = next;
      if (next === "reset" || next === "refuse") cut();
      if (next === "refuse") deafen();
      else if (!listener) await listen();
      each((pipe) => pipe.flush());
    },
    delay: (ms) => void (latencyMs = ms),
    cut,
    strand: () => each((pipe) => pipe.strand()),
    connections: () => open.size,
    async stop() {
      deafen();
      cut();
    },
  };
}

/** One direction of a connection. */
interface Pipe {
  flush(): void;
  destroy(): void;
  strand(): void;
}

/** Forwards one direction: chunks wait in order while they are delayed or held, and a held socket is not read. */
function forward(from: Socket, to: Socket, latencyMs: () => number, heldByMode: () => boolean): Pipe {
  const waiting: { readonly dueAt: number; readonly chunk: Buffer | "end" }[] = [];
  let timer: NodeJS.Timeout | undefined;
  let stranded = false;
  const held = () => stranded || heldByMode();

  function flush(): void {
    clearTimeout(timer);
    if (held()) return void from.pause();
    if (from.isPaused()) from.resume();
    while (waiting[0] && waiting[0].dueAt <= steadyMs()) {
      const { chunk } = waiting.shift()!;
      if (chunk === "end") to.end();
      else to.write(chunk);
    }
    if (waiting[0]) timer = setTimeout(flush, waiting[0].dueAt - steadyMs());
  }
  function take(chunk: Buffer | "end"): void {
    waiting.push({ dueAt: steadyMs() + latencyMs(), chunk });
    flush();
  }

  from.on("data", take);
  from.on("end", () => take("end"));
  // a cut is passed on at once: what still waits is lost, as with a real RST
  from.on("error", () => void (held() || reset(to)));
  if (held()) from.pause();
  return {
    flush,
    destroy() {
      clearTimeout(timer);
      reset(from);
    },
    strand() {
      stranded = true;
      flush();
    },
  };
}

/** RST where the socket knows it; a unix socket is only closed. */
function reset(socket: Socket): void {
  if (socket.remoteFamily === undefined) socket.destroy();
  else socket.resetAndDestroy();
}
