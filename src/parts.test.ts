import { expect, test } from "vitest";
import { stripe } from "./sources/stripe.ts";
import { createUkemi, type UkemiOptions } from "./ukemi.ts";

const sources = { stripe: stripe({ secrets: ["whsec_x"] }) };

const faultsOf = (options: object): string[] => {
  try {
    createUkemi(options as UkemiOptions);
    return [];
  } catch (error) {
    return (error as Error).message.split("\n");
  }
};

test("names every fault of what code passes to createUkemi", () => {
  expect(
    faultsOf({
      sources: { ...sources, "My Bank": sources.stripe, other: stripe, none: null },
      concurency: 5,
      queues: { mail: { concurrency: 0, rate: 1 } },
      onAlert: {},
      logger: { info() {} },
    }),
  ).toEqual([
    "There is no option named concurency: did you mean concurrency?",
    'The source name "My Bank" must be 1 to 64 lower-case letters, digits, "-" or "_".',
    "sources.other is a function: call it, as in stripe({ secrets: […] }).",
    "sources.none is not a source: make it with stripe({ secrets: […] }), standardWebhooks({ … }), hmac({ … }) or sns({ … }).",
    "queues.mail.concurrency must be a whole number from 1 to 1000, not 0.",
    "queues.mail has no option named rate.",
    "onAlert must be a function, not an object.",
    "logger must be one of pino's, or have its methods: it lacks trace, debug, warn, error, fatal, isLevelEnabled.",
  ]);
});

test("takes what is undefined as not said, and a configuration with its handlers", () => {
  const given = { sources, queues: undefined, onAlert: undefined, logger: undefined, database: undefined };
  expect(faultsOf({ ...given, handlers: () => {}, logLevel: "silent" })).toEqual([]);
  expect(createUkemi({ sources, logLevel: "silent" }).settings).not.toHaveProperty("handlers");
});
