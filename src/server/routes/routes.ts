// Every route of the admin API, in the order of the document.
import type { Route } from "../route.ts";
import { auditRoutes } from "./audit.ts";
import { bodyRoutes } from "./bodies.ts";
import { deadRoutes } from "./dead.ts";
import { destinationRoutes } from "./destinations.ts";
import { effectRoutes } from "./effects.ts";
import { eventRoutes } from "./events.ts";
import { jobRoutes } from "./jobs.ts";
import { operationRoutes } from "./operations.ts";
import { queueRoutes } from "./queues.ts";
import { rejectionRoutes } from "./rejections.ts";
import { retentionRoutes } from "./retention.ts";
import { statisticsRoutes } from "./statistics.ts";
import { suppressionRoutes } from "./suppressions.ts";
import { tokenRoutes } from "./tokens.ts";
import { workerRoutes } from "./workers.ts";

export const ROUTES: readonly Route[] = [
  ...eventRoutes,
  ...jobRoutes,
  ...deadRoutes,
  ...operationRoutes,
  ...effectRoutes,
  ...suppressionRoutes,
  ...destinationRoutes,
  ...queueRoutes,
  ...workerRoutes,
  ...rejectionRoutes,
  ...auditRoutes,
  ...statisticsRoutes,
  ...retentionRoutes,
  ...bodyRoutes,
  ...tokenRoutes,
];
