import { ukemi } from "../../../ukemi";

export const runtime = "nodejs";

export const POST = ukemi.receiver("stripe");
