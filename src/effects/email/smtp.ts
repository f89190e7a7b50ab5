// Mail over SMTP: a few connections that are kept for the next mail, and one try on the wire for each call.
//
// nodemailer speaks the protocol, but its pool is not used. One mail cannot be taken back from it: what was given up here would
// still go out there. And where a connection dies before a mail's first byte, the pool tries again by itself.
import type { ConnectionOptions } from "node:tls";
import { UkemiError } from "../../errors.ts";
import type { AttemptResult, CallLimits } from "../attempt.ts";
import { boundBy } from "./bound.ts";
import { classifySent, classifySmtp } from "./classify-smtp.ts";
import { compose } from "./compose.ts";
import { wordsOf } from "./fault.ts";
import type { Phase } from "./silence.ts";
import { openSession } from "./smtp-session.ts";
import { createSessions } from "./smtp-sessions.ts";
import { readServerUrl, secretsOf } from "./smtp-url.ts";
import type { Mail, MailTransport } from "./transport.ts";

/** Which server carries mail, and how. */
export interface SmtpOptions {
  /** `smtp://user:password@host:587` (STARTTLS), or `smtps://user:password@host:465`. */
  readonly url: string;
  /** How many mails are on their way at once. @default 5 */
  readonly connections?: number;
  /** Sends nothing before the connection is encrypted. @default true, but not for a server on this machine */
  readonly requireTls?: boolean;
  /** For a server whose certificate is signed by nobody known: its `ca`, for instance. */
  readonly tls?: ConnectionOptions;
}

/** Nothing is connected until the first mail. Throws where an option cannot be used. */
export function smtp({ url, connections = 5, requireTls, tls }: SmtpOptions): MailTransport {
  const server = readServerUrl(url, requireTls);
  if (!Number.isInteger(connections) || connections < 1) {
    throw new UkemiError("invalid_option", "connections must be a whole number, at least 1.");
  }
  const sessions = createSessions(connections, (signal) => openSession(server, tls, signal));
  const secrets = secretsOf(server);

  async function send(mail: Mail, limits: CallLimits): Promise<AttemptResult> {
    const { signal, release } = boundBy(limits);
    const hidden = [...wordsOf(mail), ...secrets];
    let phase: Phase = "not handed over";
    try {
      const letter = await compose(mail);
      const sent = await sessions.use(signal, async (session) => {
        await limits.turn?.();
        return session.send(letter, signal, () => {
          phase = "handed over";
        });
      });
      return classifySent(sent, hidden);
    } catch (error) {
      return classifySmtp(error, phase, hidden);
    } finally {
      release();
    }
  }

  return { name: "smtp", takesTurn: true, send, close: () => sessions.close() };
}
