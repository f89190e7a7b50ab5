// The limit: group commit by hand behind the same server.
import { keepByHand } from "./by-hand.ts";
import { serve } from "./verify.ts";

const { keep, end } = await keepByHand();
await serve(keep, end);
