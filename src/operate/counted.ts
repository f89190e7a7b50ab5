// An operator's hands that count what they do, for the metrics of the process they are in.
import type { Act } from "../observe/metrics.ts";
import type { Operate } from "./operate.ts";

/** The same hands, counting. */
export function countActs(operate: Operate, count: (act: Act, jobs: number) => void): Operate {
  const { dead, events } = operate;
  return {
    ...operate,
    dead: {
      ...dead,
      async replay(...given) {
        const result = await dead.replay(...given);
        count("replayed", result.changed);
        return result;
      },
      async drop(...given) {
        const result = await dead.drop(...given);
        count("dropped", result.changed);
        return result;
      },
    },
    events: {
      ...events,
      async route(...given) {
        const result = await events.route(...given);
        count("routed", result.jobs);
        return result;
      },
      async routeBatch(...given) {
        const result = await events.routeBatch(...given);
        count("routed", result.jobs);
        return result;
      },
    },
  };
}
