// What is told of tries and rescues: a log line, the metrics, and an alert for each dead letter and each missing key.
import type { Alert } from "../observe/alerts.ts";
import { logTry, type Logger } from "../observe/log.ts";
import type { Metrics } from "../observe/metrics.ts";
import type { Rescued } from "../storage/rescue.ts";
import type { EffectNews } from "./effect-run.ts";
import type { Report } from "./execute.ts";
import { SEALED } from "./unread-effect.ts";

export interface ReportOptions {
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly alert: (alert: Alert) => void;
}

export interface Reports {
  onReport(report: Report): void;
  onRescue(rescued: Rescued): void;
  onEffectNews(news: EffectNews): void;
}

export function createReports({ logger, metrics, alert }: ReportOptions): Reports {
  const told = new Set<string>(); // of keys that are missing: their jobs come again and again
  return {
    onReport(report) {
      metrics.tried(report);
      logTry(logger, report);
      const { job, death, error } = report;
      const message = error?.message ?? "";
      const facts = {
        job: job.id,
        handler: job.handler,
        queue: job.queue,
        eventId: job.event?.eventId ?? null,
        tenant: job.tenant,
        message,
      };
      if (death !== undefined) {
        alert({ kind: "dead_letter", ...facts, death, errorClass: error?.class ?? "unknown" });
      } else if ((job.event?.unreadable || error?.class === SEALED) && !told.has(message)) {
        told.add(message);
        alert({ kind: "body_sealed", ...facts });
      }
    },
    onEffectNews(news) {
      if (news.is === "called") return metrics.called(news.kind, news.outcome);
      if (news.is === "held") {
        const { id, kind, tenant } = news.effect;
        const { message } = news.fault;
        return alert({ kind: "effect_held", effect: id, effectKind: kind, tenant, message });
      }
      if (news.is === "odd") {
        const { id, kind, destination } = news.effect;
        return logger.warn(
          { effect: id, effect_kind: kind, destination, remark: news.remark },
          "an effect is done, but oddly",
        );
      }
      const { destination, reason } = news;
      if (news.is === "closed") return logger.info({ destination }, "the destination takes effects again");
      alert({
        kind: news.is === "paused" ? "destination_paused" : "destination_closed",
        destination,
        message: reason,
      });
    },
    onRescue({ id, handler, queue, event_id, tenant, worker, recoveries, death }) {
      metrics.rescued({ queue, handler, death });
      const facts = { job: id, handler, queue, lost_worker: worker, recoveries };
      if (death === null) return logger.warn(facts, "a job was taken over from a worker that is gone");
      const message = `the process that ran it died ${recoveries} times (killed, out of memory, or silent past its lease)`;
      alert({
        kind: "dead_letter",
        job: id,
        handler,
        queue,
        eventId: event_id,
        tenant,
        death,
        errorClass: "WorkerLost",
        message,
      });
    },
  };
}
