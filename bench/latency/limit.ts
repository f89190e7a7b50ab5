// The limit: a signed delivery is checked, its rows are written in one statement and committed, and the handler is called.
import { keepByHand } from "../ingest/by-hand.ts";
import { isGenuine, type Verified } from "../ingest/verify.ts";
import { deliveryOf } from "./delivery.ts";
import { answerLatency, createStarts } from "./samples.ts";

const starts = createStarts();
const { keep, end } = await keepByHand();

answerLatency({
  prepare(number) {
    const { headers, body } = deliveryOf(number);
    const bytes = Buffer.from(body);
    return async () => {
      if (!isGenuine(headers["stripe-signature"], bytes)) throw new Error("the signature is wrong");
      const event = JSON.parse(bytes.toString()) as Verified["event"];
      await keep({ body: bytes, headers, event });
      starts.note();
    };
  },
  started: starts.next,
  end,
});
