// The connections of a transport: so many at once, each for one mail at a time, and kept a while for the next.
import { GivenUp } from "./silence.ts";
import type { SmtpSession } from "./smtp-session.ts";

/** Shorter than a server's patience: one that hangs up just as its connection is used again costs a try. */
const IDLE_MS = 5000;
/** A server may tell a connection that lasts for ever to go. */
const MAILS_MAX = 100;

export interface Sessions {
  /** Waits for a turn, and gives a connection to the work. It is kept only where the work succeeds. */
  use<T>(signal: AbortSignal, work: (session: SmtpSession) => Promise<T>): Promise<T>;
  /** Resolves when the last work is over. */
  close(): Promise<void>;
}

/** A connection and its use. */
interface Line {
  readonly session: SmtpSession;
  mails: number;
  /** Ends it, where nobody uses it before. */
  idling?: NodeJS.Timeout;
}

/** No connection is made until one is needed. */
export function createSessions(max: number, open: (signal: AbortSignal) => Promise<SmtpSession>): Sessions {
  /** Connections that nobody uses now, the last one used at the end. */
  const kept: Line[] = [];
  const waiting = new Set<() => void>();
  const closing: (() => void)[] = [];
  let busy = 0;
  let isClosed = false;

  function turn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (isClosed) return reject(new GivenUp("The transport was closed."));
      if (signal.aborted) return reject(new GivenUp("The attempt was given up before it began."));
      if (busy < max) {
        busy += 1;
        return resolve();
      }
      const go = () => {
        signal.removeEventListener("abort", giveUp);
        resolve();
      };
      const giveUp = () => {
        waiting.delete(go);
        reject(new GivenUp("No connection to the server was free in time."));
      };
      waiting.add(go);
      signal.addEventListener("abort", giveUp, { once: true });
    });
  }

  /** The turn goes to whoever waits longest. */
  function endTurn(): void {
    const [next] = waiting;
    if (next) {
      waiting.delete(next);
      return next();
    }
    busy -= 1;
    if (isClosed && busy === 0) for (const done of closing.splice(0)) done();
  }

  async function take(signal: AbortSignal): Promise<Line> {
    const last = kept.pop();
    if (last) {
      clearTimeout(last.idling);
      return last;
    }
    const line: Line = { session: await open(signal), mails: 0 };
    line.session.onEnd(() => forget(line));
    return line;
  }

  function keep(line: Line): void {
    line.mails += 1;
    if (isClosed || line.mails >= MAILS_MAX) return line.session.quit();
    line.idling = setTimeout(() => line.session.quit(), IDLE_MS);
    kept.push(line);
  }

  /** It has come to its end, maybe while nobody used it. */
  function forget(line: Line): void {
    clearTimeout(line.idling);
    const index = kept.indexOf(line);
    if (index !== -1) kept.splice(index, 1);
  }

  return {
    async use(signal, work) {
      await turn(signal);
      try {
        const line = await take(signal);
        const result = await work(line.session);
        keep(line);
        return result;
      } finally {
        endTurn();
      }
    },
    async close() {
      isClosed = true;
      for (const { session, idling } of kept.splice(0)) {
        clearTimeout(idling);
        session.quit();
      }
      if (busy > 0) await new Promise<void>((resolve) => closing.push(resolve));
    },
  };
}
