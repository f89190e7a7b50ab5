// Nothing is stored: what HTTP and the signature cost alone.
import { serve } from "./verify.ts";

await serve(() => {});
