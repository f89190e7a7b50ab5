// What must not be left behind, however the bench ends: processes, servers and their folders.

const endings = new Set<() => Promise<void>>();
let isEnding = false;

/** Remembers how something ends. The answer ends it, and does so once, however often and by whom it is called. */
export function ending(end: () => Promise<void>): () => Promise<void> {
  let ended: Promise<void> | undefined;
  const once = () => (ended ??= end().finally(() => endings.delete(once)));
  endings.add(once);
  return once;
}

/** True once somebody has asked the whole bench to end: what fails from then on says nothing. */
export function isOver(): boolean {
  return isEnding;
}

/** Lets Ctrl-C, and whoever asks politely, end everything before this process ends. */
export function endOnSignals(): void {
  for (const [signal, status] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
    ["SIGHUP", 129],
  ] as const) {
    process.on(signal, () => {
      if (isEnding) return;
      isEnding = true;
      process.stderr.write(`\n${signal}: everything is being stopped …\n`);
      void endEverything().then(() => process.exit(status));
    });
  }
}

/** Runs something, and ends whatever it has begun and left: one that fails half-way does not clear up after itself. */
export async function leavingNothing<T>(work: () => Promise<T>): Promise<T> {
  const before = new Set(endings);
  try {
    return await work();
  } finally {
    await endEverything(before);
  }
}

/** The youngest first: what it stands on ends after it. */
async function endEverything(but: ReadonlySet<() => Promise<void>> = new Set()): Promise<void> {
  for (const end of [...endings].filter((one) => !but.has(one)).toReversed()) {
    await end().catch((error: unknown) => console.error(error));
  }
}
