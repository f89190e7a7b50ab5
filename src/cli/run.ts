// Runs a server or a worker until it is told to stop, and then stops everything in order.
import { inTime } from "../clock.ts";
import { startMetricsServer } from "../server/metrics-server.ts";
import { startServer } from "../server/server.ts";
import type { Ukemi } from "../ukemi.ts";

/** Starts the server, calls `onReady` with its URL, and waits for SIGTERM or SIGINT. */
export async function runServer(
  ukemi: Ukemi,
  options: { readonly works: boolean; readonly onReady: (url: string) => void },
): Promise<void> {
  await runUntilStopped(ukemi, async (stopped) => {
    // first the handlers: an event that arrives before they are registered would be wanted by nobody
    const worker = options.works ? await ukemi.work() : undefined;
    const server = await startServer(ukemi);
    options.onReady(server.url);
    ukemi.logger.info({ signal: await stopped }, "stopping");
    await Promise.all([server.stop(), worker?.stop()]);
  });
}

/** Works without a server, but for its metrics where a port for them is set, until SIGTERM or SIGINT. */
export async function runWorker(ukemi: Ukemi, onReady: (url: string | undefined) => void): Promise<void> {
  const { metricsPort } = ukemi.settings;
  await runUntilStopped(ukemi, async (stopped) => {
    const worker = await ukemi.work();
    const metrics = metricsPort === undefined ? undefined : await startMetricsServer(ukemi, metricsPort);
    onReady(metrics?.url);
    ukemi.logger.info({ signal: await stopped }, "stopping");
    await worker.stop();
    await metrics?.stop();
  });
}

async function runUntilStopped(
  ukemi: Ukemi,
  run: (stopped: Promise<string>) => Promise<void>,
): Promise<void> {
  const stopped = stopSignal();
  const starting = ukemi.start();
  try {
    const stoppedEarly = await Promise.race([starting, stopped]);
    if (stoppedEarly === undefined) await run(stopped);
    // a start that is still under way may wait for others for minutes; what it has started ends with this process
    else await inTime(starting, ukemi.settings.drainTimeoutMs, () => process.exit(1));
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
