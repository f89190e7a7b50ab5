// A bell: wakes whoever waits. One that rings while nobody waits is heard by the next who comes.

export interface Bell {
  ring(): void;
  /** Waits for the next ring, at most so long. */
  wait(ms: number): Promise<void>;
}

export function createBell(): Bell {
  let rung = false;
  let wake = () => {};
  return {
    ring() {
      rung = true;
      wake();
    },
    async wait(ms) {
      if (!rung) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, ms);
          wake = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
      rung = false;
    },
  };
}
