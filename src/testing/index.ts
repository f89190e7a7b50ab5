// The public subpath `ukemi/testing`: signed requests and sample events for users' tests.
export { signHmac, signStandardWebhooks, signStripe } from "./sign.ts";
export type { SignHmacOptions, SignOptions, SignStandardWebhooksOptions } from "./sign.ts";
export { sampleEvent, sampleEventTypes } from "./sample-events.ts";
export type { SampleEventOptions } from "./sample-events.ts";
export { sampleIds, stripeId } from "./sale.ts";
export type { SampleIds } from "./sale.ts";
export { startFaultProxy } from "./fault-proxy.ts";
export type { FaultMode, FaultProxy, FaultTarget } from "./fault-proxy.ts";
export { startTrial } from "./trial.ts";
export type { Trial, TrialAnswer, TrialOptions } from "./trial.ts";
export { startApiMeter } from "./api-meter.ts";
export type { ApiMeter, ApiMeterOptions, MeterCall, MeterFault } from "./api-meter.ts";
