// What is counted of deliveries and of requests: the figures that every one of them changes.
import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import type { Receipt } from "../inbox/receipt.ts";
import { byName, gatherCount, gatherValues } from "./gathered.ts";

export interface InboxMetrics {
  receipt(receipt: Receipt): void;
  request(route: string, method: string, status: number, seconds: number): void;
}

export const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const BYTES = [256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576];
const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];

/** Makes the metrics of requests. */
export function createRequestMetrics(registers: Registry[]): Pick<InboxMetrics, "request"> {
  const requests = new Counter({
    name: "ukemi_http_requests_total",
    help: "Answered HTTP requests.",
    labelNames: ["route", "method", "code"],
    registers,
    collect: handOver,
  });
  const requestSeconds = new Histogram({
    name: "ukemi_http_request_duration_seconds",
    help: "From the head of a request to its answer.",
    labelNames: ["route", "method"],
    buckets: SECONDS,
    registers,
    collect: handOver,
  });

  const routes = byName((route) =>
    byName((method) => ({
      seconds: gatherValues((value) => requestSeconds.observe({ route, method }, value)),
      codes: byName((code) => gatherCount((by) => requests.inc({ route, method, code }, by))),
    })),
  );

  function handOver(): void {
    for (const methods of routes.all()) {
      for (const { seconds, codes } of methods.all()) {
        seconds.handOver();
        for (const count of codes.all()) count.handOver();
      }
    }
  }

  return {
    request(route, method, status, seconds) {
      const gathered = routes.of(route).of(METHODS.includes(method) ? method : "other");
      gathered.codes.of(String(status)).add(1);
      gathered.seconds.add(seconds);
    },
  };
}

/** Makes the metrics of deliveries. */
export function createReceiptMetrics(registers: Registry[]): Pick<InboxMetrics, "receipt"> {
  const events = new Counter({
    name: "ukemi_inbox_events_total",
    help: "Deliveries by what became of them.",
    labelNames: ["source", "result"],
    registers,
    collect: handOver,
  });
  const commitSeconds = new Histogram({
    name: "ukemi_inbox_commit_duration_seconds",
    help: "From the last byte of a delivery to its durable commit.",
    labelNames: ["source"],
    buckets: SECONDS,
    registers,
    collect: handOver,
  });
  const payloadBytes = new Histogram({
    name: "ukemi_inbox_payload_bytes",
    help: "Size of the bodies that were read.",
    labelNames: ["source"],
    buckets: BYTES,
    registers,
    collect: handOver,
  });
  const lastEvent = new Gauge({
    name: "ukemi_inbox_last_event_timestamp_seconds",
    help: "When an event of a source was last stored, or recognised as a duplicate. A provider gone silent shows here.",
    labelNames: ["source"],
    registers,
    collect: handOver,
  });

  const sources = byName((source) => ({
    results: byName((result) => gatherCount((by) => events.inc({ source, result }, by))),
    bytes: gatherValues((value) => payloadBytes.observe({ source }, value)),
    seconds: gatherValues((value) => commitSeconds.observe({ source }, value)),
    lastAt: 0,
    tellLast() {
      if (this.lastAt > 0) lastEvent.set({ source }, this.lastAt / 1000);
    },
  }));

  function handOver(): void {
    for (const source of sources.all()) {
      for (const count of source.results.all()) count.handOver();
      source.bytes.handOver();
      source.seconds.handOver();
      source.tellLast();
    }
  }

  return {
    receipt({ source, result, bodyBytes, commitMs }) {
      const gathered = sources.of(source);
      gathered.results.of(result).add(1);
      if (bodyBytes !== undefined) gathered.bytes.add(bodyBytes);
      if (commitMs === undefined) return;
      gathered.seconds.add(commitMs / 1000);
      gathered.lastAt = Date.now();
    },
  };
}
