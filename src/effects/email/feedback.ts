// What Amazon SES says of mails that it took: it lands on the effect, and on the list of those not to write to.
import { readSesNotice, type SesKind } from "../../sources/ses-notice.ts";
import type { SqlClient } from "../../storage/enqueue.ts";
import { noteFeedback, type Feedback } from "../../storage/mail-feedback.ts";

/** The types of events that a source of notices has for mail. */
export const FEEDBACK_PATTERN = "ses.*";

const MEANINGS: Partial<Record<SesKind, Pick<Feedback, "feedback" | "suppress">>> = {
  delivery: { feedback: "delivered", suppress: null },
  delivery_delay: { feedback: "delayed", suppress: null },
  reject: { feedback: "rejected", suppress: null },
  rendering_failure: { feedback: "rejected", suppress: null },
  complaint: { feedback: "complained", suppress: "complaint" },
};

/** Handles one notice; what is not about a mail of ours is left alone. */
export async function handleFeedback({
  event,
  tx,
}: {
  readonly event: unknown;
  readonly tx: SqlClient;
}): Promise<void> {
  const notice = readSesNotice(event);
  if (notice?.effect === undefined) return;
  const { kind, permanent, effect, at } = notice;
  // a bounce that may pass is no reason never to write again
  const meaning =
    kind === "bounce"
      ? ({ feedback: permanent ? "bounced" : "delayed", suppress: permanent ? "bounce" : null } as const)
      : MEANINGS[kind];
  if (meaning) await noteFeedback(tx, { effect, at, ...meaning });
}
