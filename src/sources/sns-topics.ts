// The topics that may send, and the one host of AWS that speaks for each: nothing in a request can name another.
import { invalidOption } from "./options.ts";

/** A topic that may send. */
export interface Topic {
  readonly arn: string;
  /** Where its certificates lie and its subscriptions are confirmed, such as `sns.eu-west-1.amazonaws.com`. */
  readonly host: string;
}

const ARN = /^arn:(aws|aws-cn|aws-us-gov):sns:([a-z0-9-]{3,32}):[0-9]{12}:[A-Za-z0-9_-]{1,256}(\.fifo)?$/;

/** Reads the list of topics, or throws `invalid_option`. */
export function readTopics(topics: readonly string[]): ReadonlyMap<string, Topic> {
  if (!Array.isArray(topics) || topics.length === 0) {
    throw invalidOption("sns", "topics is empty; pass the ARN of at least one topic");
  }
  return new Map(topics.map((arn: unknown, index) => [String(arn), readTopic(arn, `topics[${index}]`)]));
}

function readTopic(arn: unknown, name: string): Topic {
  if (typeof arn !== "string" || arn === "") {
    throw invalidOption("sns", `${name} is not set; is the environment variable it is read from missing?`);
  }
  const [, partition, region] = ARN.exec(arn) ?? [];
  if (region === undefined) {
    throw invalidOption(
      "sns",
      `${name} is not a topic's ARN, such as arn:aws:sns:eu-west-1:123456789012:mail`,
    );
  }
  return { arn, host: `sns.${region}.amazonaws.com${partition === "aws-cn" ? ".cn" : ""}` };
}

/**
 * Whether the text is the address of a certificate at the topic's own host. It is compared as text, not as a parsed URL:
 * what has a user, a port, a dot at its end or any other second reading is not equal.
 */
export function isCertificateUrl(url: string, { host }: Topic): boolean {
  const origin = `https://${host}/`;
  return url.startsWith(origin) && /^[A-Za-z0-9_-]{1,200}\.pem$/.test(url.slice(origin.length));
}

/** Where the subscription is confirmed. Made from the topic that we were given: the URL in the request is not followed. */
export function confirmationUrl({ arn, host }: Topic, token: string): string {
  const query = new URLSearchParams({ Action: "ConfirmSubscription", TopicArn: arn, Token: token });
  return `https://${host}/?${query.toString()}`;
}
