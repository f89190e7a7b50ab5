// An operator's hands that count what they do, for the metrics of the process they are in.
import type { Act } from "../observe/metrics.ts";
import type { Operate } from "./operate.ts";
import { afterCommit } from "./transaction.ts";

/** The same hands, counting what was committed. */
export function countActs(operate: Operate, counted: (act: Act, jobs: number) => void): Operate {
  const { dead, events } = operate;
  const count = (act: Act, jobs: number) => afterCommit(() => Promise.resolve(counted(act, jobs)));
  return {
    ...operate,
    dead: {
      ...dead,
      async replay(...given) {
        const result = await dead.replay(...given);
        await count("replayed", result.changed);
        return result;
      },
      async drop(...given) {
        const result = await dead.drop(...given);
        await count("dropped", result.changed);
        return result;
      },
    },
    events: {
      ...events,
      async route(...given) {
        const result = await events.route(...given);
        await count("routed", result.jobs);
        return result;
      },
      async routeBatch(...given) {
        const result = await events.routeBatch(...given);
        await count("routed", result.jobs);
        return result;
      },
    },
  };
}
