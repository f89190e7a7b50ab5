// Runs a server until it is told to stop, and then stops everything in order.
import { inTime } from "../clock.ts";
import { startServer } from "../server/server.ts";
import type { Ukemi } from "../ukemi.ts";

/** Starts the server, calls `onReady` with its URL, and waits for SIGTERM or SIGINT. */
export async function runServer(ukemi: Ukemi, onReady: (url: string) => void): Promise<void> {
  const stopped = stopSignal();
  const starting = ukemi.start();
  try {
    const stoppedEarly = await Promise.race([starting, stopped]);
    if (stoppedEarly === undefined) await serve(ukemi, stopped, onReady);
    // a start that is still under way may wait for others for minutes; what it has started ends with this process
    else await inTime(starting, ukemi.settings.drainTimeoutMs, () => process.exit(1));
  } finally {
    await ukemi.stop();
  }
  ukemi.logger.info("stopped");
}

async function serve(ukemi: Ukemi, stopped: Promise<string>, onReady: (url: string) => void): Promise<void> {
  const server = await startServer(ukemi);
  onReady(server.url);
  ukemi.logger.info({ signal: await stopped }, "stopping");
  await server.stop();
}

/** The first signal asks for an orderly stop; a second one means now. */
function stopSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM"] as const) {
      process.once(signal, () => {
        resolve(signal);
        process.once(signal, () => process.exit(130));
      });
    }
  });
}
