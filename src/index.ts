// The public surface, in the order a reader meets it.
export { createUkemi } from "./ukemi.ts";
export type { QueueOptions, Sources, Ukemi, UkemiOptions, Working } from "./ukemi.ts";
export { defineConfig } from "./config.ts";
export type { Config } from "./config.ts";
export type { Settings } from "./options.ts";
export type { FetchReceiverOptions } from "./inbox/fetch.ts";
export type { NodeReceiver, NodeReceiverOptions } from "./inbox/node.ts";
export type { Answer } from "./inbox/answer.ts";
export type { Delivery, ReadBody } from "./inbox/delivery.ts";
export type { Receipt, ReceiptResult } from "./inbox/receipt.ts";

export { notYet, retryAfter, terminal } from "./work/outcome.ts";
export type {
  Audit,
  EventContext,
  EventHandler,
  EventTools,
  JobFacts,
  Links,
  Received,
  TaskContext,
  TaskHandler,
} from "./work/context.ts";
export type { EventHandlerOptions, HandlerOptions } from "./work/handler.ts";
export type { CustomRetry, Retry } from "./work/policy.ts";
export type { Enqueued, EnqueueOptions } from "./work/task.ts";
export type { TransactionOwner, Within } from "./work/transaction-owner.ts";
export type { SqlClient } from "./storage/enqueue.ts";
export type { HandlerTransaction } from "./storage/handler-statements.ts";
export type {
  Alert,
  DeadLetterAlert,
  DestinationAlert,
  EffectHeldAlert,
  OperationAlert,
} from "./observe/alerts.ts";

export type { Effects } from "./effects/effects.ts";
export type { CallerEffects, ForTenant } from "./effects/caller.ts";
export type { CallNow, CallNowOptions, CallTools } from "./effects/call-now.ts";
export type { EffectOptions } from "./effects/draft.ts";
export type { EmailGiven } from "./effects/email/performer.ts";
export type { EmailOptions } from "./effects/kinds.ts";
export { smtp } from "./effects/email/smtp.ts";
export type { SmtpOptions } from "./effects/email/smtp.ts";
export { ses } from "./effects/email/ses.ts";
export type { SesClient, SesOptions } from "./effects/email/ses.ts";
export type { Mail, MailTransport } from "./effects/email/transport.ts";
export type { AttemptResult, CallLimits, Fault } from "./effects/attempt.ts";
export type { DestinationOptions } from "./effects/http/destination-options.ts";
export type { HttpGiven, HttpOptions } from "./effects/http/performer.ts";
export type { UsageRecordGiven } from "./effects/usage/performer.ts";
export type { Planned } from "./storage/effects-plan.ts";
export type { DestinationLimits } from "./storage/destinations.ts";

export type { Operate } from "./operate/operate.ts";
export type { DeadLetters, DeadResult } from "./operate/dead.ts";
export type { Retention } from "./operate/retention.ts";
export type { PrunedMonth, PruneOptions, PruneProgress, PruneResult } from "./operate/prune.ts";

export { stripe } from "./sources/stripe.ts";
export type { StripeOptions } from "./sources/stripe.ts";
export { standardWebhooks } from "./sources/standard-webhooks.ts";
export type { StandardWebhooksOptions } from "./sources/standard-webhooks.ts";
export { hmac } from "./sources/hmac.ts";
export type { HmacOptions } from "./sources/hmac.ts";
export { sns } from "./sources/sns.ts";
export type { SnsOptions } from "./sources/sns.ts";
export type { SnsEnvelope } from "./sources/sns-envelope.ts";
export type { SnsFetch } from "./sources/sns-fetch.ts";
export { readSesNotice } from "./sources/ses-notice.ts";
export type { SesKind, SesNotice } from "./sources/ses-notice.ts";
export type {
  EventOf,
  Identity,
  Ref,
  Refusal,
  RefusalReason,
  SignedRequest,
  Source,
  UnknownEvent,
  Verified,
} from "./sources/source.ts";

export { startServer } from "./server/server.ts";
export type { RunningServer } from "./server/server.ts";

export { UkemiError } from "./errors.ts";
export type { ErrorCode } from "./errors.ts";
export { VERSION } from "./version.ts";
