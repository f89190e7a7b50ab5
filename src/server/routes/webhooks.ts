// The fast path for webhooks: node:http to receive() with nothing in between.
import { createNodeReceiver, type NodeReceiver } from "../../inbox/node.ts";
import type { Receive } from "../../inbox/receive.ts";
import type { AddressOf } from "../../inbox/address.ts";

/** The path below which every source has its endpoint. */
export const WEBHOOK_PATH = "/webhooks/";

export interface WebhookOptions {
  readonly receive: Receive;
  readonly addressOf: AddressOf;
  readonly onFault: (error: unknown) => void;
}

/** Makes the listener for requests below WEBHOOK_PATH. */
export function createWebhookListener(options: WebhookOptions): NodeReceiver {
  return createNodeReceiver({
    receive: options.receive,
    source: (request) => sourceOf(request.url!),
    address: (request) => options.addressOf(request.socket.remoteAddress, request.headers),
    onFault: options.onFault,
  });
}

function sourceOf(url: string): string {
  const end = url.indexOf("?");
  return url.slice(WEBHOOK_PATH.length, end === -1 ? undefined : end);
}
