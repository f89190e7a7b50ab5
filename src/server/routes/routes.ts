// Every route of the admin API, in the order of the document.
import type { Route } from "../route.ts";
import { deadRoutes } from "./dead.ts";
import { eventRoutes } from "./events.ts";
import { jobRoutes } from "./jobs.ts";
import { queueRoutes } from "./queues.ts";
import { tokenRoutes } from "./tokens.ts";
import { watchRoutes } from "./watch.ts";

export const ROUTES: readonly Route[] = [
  ...eventRoutes,
  ...jobRoutes,
  ...deadRoutes,
  ...queueRoutes,
  ...watchRoutes,
  ...tokenRoutes,
];
