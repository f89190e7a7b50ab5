// Runs a server until it is told to stop, and then stops everything in order.
import { startServer } from "../server/server.ts";
import type { Ukemi } from "../ukemi.ts";

/** Starts the server, calls `onReady` with its URL, and waits for SIGTERM or SIGINT. */
export async function runServer(ukemi: Ukemi, onReady: (url: string) => void): Promise<void> {
  const stopped = stopSignal();
  try {
    await ukemi.start();
    const server = await startServer(ukemi);
    onReady(server.url);
    const signal = await stopped;
    ukemi.logger.info({ signal }, "stopping");
    await server.stop();
  } finally {
    await ukemi.stop();
  }
  ukemi.logger.info("stopped");
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
