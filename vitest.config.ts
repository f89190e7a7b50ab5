// Four projects: unit tests beside the source and the bench, tests on a real PostgreSQL, the command line, and tests that start whole processes.
import { defineConfig } from "vitest/config";

const onPostgres = {
  globalSetup: ["test/support/global-setup.ts"],
  testTimeout: 120_000,
  hookTimeout: 120_000,
};

export default defineConfig({
  test: {
    projects: [
      {
        // a limit for what hangs: a busy machine must not make a test fail
        test: {
          name: "unit",
          include: ["src/**/*.test.ts", "bench/**/*.test.ts", "test/docs/**/*.test.ts"],
          testTimeout: 60_000,
        },
      },
      {
        test: {
          name: "store",
          include: ["test/{store,promises,server,work,adapters,effects}/**/*.test.ts"],
          ...onPostgres,
        },
      },
      { test: { name: "cli", include: ["test/cli/**/*.test.ts"], ...onPostgres } },
      {
        test: {
          name: "faults",
          include: ["test/{faults,embedded,frameworks}/**/*.test.ts"],
          ...onPostgres,
          testTimeout: 300_000,
          hookTimeout: 120_000,
          fileParallelism: false,
        },
      },
    ],
  },
});
