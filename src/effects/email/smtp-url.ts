// The URL of an SMTP server, and whether what goes there is encrypted.
import { UkemiError } from "../../errors.ts";

/** Whom to speak to, and how. */
export interface SmtpServer {
  readonly host: string;
  readonly port: number;
  /** Encrypted from the first byte (`smtps://`). */
  readonly secure: boolean;
  /** Nothing goes there before STARTTLS. */
  readonly requireTls: boolean;
  readonly auth: { readonly user: string; readonly pass: string } | undefined;
}

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|::1)$/i;
const SUBMISSION = 587;
const SUBMISSIONS = 465;

/** Reads `smtp://user:password@host:587` or `smtps://…:465`. No message repeats it: there is a password in it. */
export function readServerUrl(url: string, requireTls: boolean | undefined): SmtpServer {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (!parsed || !/^smtps?:$/.test(parsed.protocol) || parsed.hostname === "") throw unreadable();
  // what nodemailer would take from there is an option here
  if (parsed.search !== "" || !["", "/"].includes(parsed.pathname)) throw unreadable();
  const secure = parsed.protocol === "smtps:" || parsed.port === `${SUBMISSIONS}`;
  const host = parsed.hostname.replaceAll(/^\[|\]$/g, "");
  return {
    host,
    port: parsed.port === "" ? (secure ? SUBMISSIONS : SUBMISSION) : Number(parsed.port),
    secure,
    requireTls: !secure && (requireTls ?? !LOOPBACK.test(host)),
    auth: parsed.username === "" ? undefined : { user: plain(parsed.username), pass: plain(parsed.password) },
  };
}

/** What nothing that is kept may repeat: who signs in and by what, also as it goes over the wire. */
export function secretsOf({ auth }: SmtpServer): string[] {
  if (!auth) return [];
  const { user, pass } = auth;
  const encoded = [user, pass, `\0${user}\0${pass}`].map((text) => Buffer.from(text).toString("base64"));
  return [user, pass, ...encoded];
}

function plain(encoded: string): string {
  try {
    return decodeURIComponent(encoded);
  } catch {
    throw unreadable();
  }
}

function unreadable(): UkemiError {
  return new UkemiError(
    "invalid_option",
    "The URL of the SMTP server must be smtp://user:password@host:port, or smtps:// for TLS from the start.",
    { remedy: "Correct the URL. Signs such as @, / and % in the password are written %40, %2F and %25." },
  );
}
