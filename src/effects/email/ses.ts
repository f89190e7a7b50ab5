// Mail by the API of Amazon SES (version 2). The SDK is an optional peer: it is loaded with the first mail.
import { createRequire } from "node:module";
import type { SESv2Client } from "@aws-sdk/client-sesv2";
import { UkemiError } from "../../errors.ts";
import type { AttemptResult, CallLimits } from "../attempt.ts";
import { boundBy } from "./bound.ts";
import { classifySes } from "./classify-ses.ts";
import { compose, type Letter } from "./compose.ts";
import { wordsOf } from "./fault.ts";
import { GivenUp, type Phase } from "./silence.ts";
import type { Mail, MailTransport } from "./transport.ts";

const PACKAGE = "@aws-sdk/client-sesv2";
/** By which the events of SES (bounces, complaints) name the effect: the Message-ID is replaced by one of its own. */
export const EFFECT_TAG = "ukemi_effect";
const CONNECTION_MS = 10_000;

/** What is used of an `SESv2Client`, so that nobody needs its types who does not use it. */
export interface SesClient {
  send(command: never, options?: { abortSignal?: AbortSignal }): Promise<unknown>;
  destroy(): void;
}

/** Which account carries mail. */
export interface SesOptions {
  /** Such as `ap-northeast-1`. @default what the SDK finds in its environment */
  readonly region?: string;
  /** An `SESv2Client` of your own; it stays yours to destroy. @default one that signs in as the SDK finds it */
  readonly client?: SesClient;
  /** The configuration set whose events come back. @default none */
  readonly configurationSet?: string;
}

/** Nothing is connected until the first mail. Throws where the SDK is not installed. */
export function ses({ region, client: given, configurationSet }: SesOptions = {}): MailTransport {
  requireInstalled(PACKAGE);
  let made: SESv2Client | undefined;
  const underWay = new Set<Promise<unknown>>();
  let isClosed = false;

  async function call(mail: Mail, letter: Letter, once: Once): Promise<string | undefined> {
    const sdk = await import("@aws-sdk/client-sesv2");
    const client = given
      ? (given as SESv2Client)
      : (made ??= new sdk.SESv2Client({
          ...(region !== undefined && { region }),
          maxAttempts: 1,
          requestHandler: { connectionTimeout: CONNECTION_MS },
        }));
    const command = new sdk.SendEmailCommand({
      FromEmailAddress: letter.from,
      Destination: { ToAddresses: [letter.to] },
      Content: { Raw: { Data: letter.raw } },
      EmailTags: [{ Name: EFFECT_TAG, Value: mail.effect }],
      ...(configurationSet !== undefined && { ConfigurationSetName: configurationSet }),
    });
    // next to the wire: what comes by a second time is a client that tries again by itself
    command.middlewareStack.add((next) => async (request) => once.pass(() => next(request)), {
      step: "deserialize",
      priority: "low",
      name: "ukemiOnce",
    });
    const { MessageId } = await client.send(command, { abortSignal: once.signal });
    return MessageId;
  }

  async function send(mail: Mail, limits: CallLimits): Promise<AttemptResult> {
    const { signal, release } = boundBy(limits);
    const once = onlyOnce(signal, limits.mayBegin);
    try {
      if (isClosed) throw new GivenUp("The transport was closed.");
      const messageId = await unlessAborted(signal, async () => call(mail, await compose(mail), once));
      return { is: "done", receipt: { ...(messageId !== undefined && { messageId }) } };
    } catch (error) {
      return classifySes(error, once.phase(), wordsOf(mail));
    } finally {
      release();
    }
  }

  return {
    name: "ses",
    send(mail, limits) {
      const sending = send(mail, limits);
      underWay.add(sending);
      return sending.finally(() => underWay.delete(sending));
    },
    async close() {
      isClosed = true;
      await Promise.all(underWay);
      made?.destroy();
    },
  };
}

interface Once {
  readonly signal: AbortSignal;
  /** Lets the first one through; to the others says what became of it. */
  pass<T>(go: () => Promise<T>): Promise<T>;
  phase(): Phase;
}

function onlyOnce(signal: AbortSignal, mayBegin: () => boolean = () => true): Once {
  let first: Promise<unknown> | undefined;
  return {
    signal,
    pass<T>(go: () => Promise<T>) {
      // composing it and signing in may have taken a while
      if (signal.aborted || (!first && !mayBegin()))
        throw new GivenUp("The attempt was given up before SES was asked.");
      first ??= go();
      return first as Promise<T>;
    },
    phase: () => (first ? "handed over" : "not handed over"),
  };
}

/** The SDK may take its time to notice. */
function unlessAborted<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const giveUp = () => reject(new GivenUp("The attempt was given up before SES answered."));
    if (signal.aborted) return giveUp();
    signal.addEventListener("abort", giveUp, { once: true });
    work().then(resolve, reject);
  });
}

/** Throws where the package cannot be found from here. */
export function requireInstalled(name: string): void {
  try {
    createRequire(import.meta.url).resolve(name);
  } catch (cause) {
    throw new UkemiError("invalid_option", `Mail by SES needs the package ${name}, which is not installed.`, {
      cause,
      remedy: `npm install ${name}`,
    });
  }
}
