// What SES tells about a mail, in both of its forms.
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { sesBounce } from "../../test/support/sns.ts";
import { readSesNotice } from "./ses-notice.ts";

const EFFECT = "0192f0c1-2b3c-7d4e-8f5a-6b7c8d9e0f1a";
const seed = Number(process.env.FC_SEED ?? Date.now() % 2 ** 31);

const mail = { timestamp: "2026-11-01T09:00:00.000Z", messageId: "m1", destination: ["a@example.com"] };
const read = (message: unknown) => readSesNotice({ Type: "Notification", Message: JSON.stringify(message) });

test("reads a bounce of event publishing", () => {
  expect(read(sesBounce(EFFECT.toUpperCase()))).toEqual({
    kind: "bounce",
    permanent: true,
    effect: EFFECT,
    messageId: "EXAMPLE7c191be45",
    recipients: ["gone@example.com"],
    at: new Date("2026-11-01T10:00:00.123Z"),
    detail: "Permanent/General: smtp; 550 5.1.1 user unknown",
  });
});

test("reads the same of the older form, which has no tags", () => {
  const { eventType, mail: _, ...rest } = sesBounce(EFFECT);
  expect(read({ ...rest, notificationType: eventType, mail })).toMatchObject({
    kind: "bounce",
    permanent: true,
    effect: undefined,
    messageId: "m1",
    recipients: ["gone@example.com"],
  });
});

test.each([
  [
    "Bounce",
    { bounce: { bounceType: "Transient", bounceSubType: "MailboxFull" } },
    "bounce",
    false,
    "Transient/MailboxFull",
  ],
  ["Bounce", { bounce: { bounceType: "Undetermined" } }, "bounce", false, "Undetermined"],
  [
    "Complaint",
    {
      complaint: {
        complainedRecipients: [{ emailAddress: "b@example.com" }],
        complaintFeedbackType: "abuse",
      },
    },
    "complaint",
    false,
    "abuse",
  ],
  [
    "Delivery",
    { delivery: { recipients: ["b@example.com"], smtpResponse: "250 ok" } },
    "delivery",
    false,
    "250 ok",
  ],
  ["Send", { send: {} }, "send", false, ""],
  ["Reject", { reject: { reason: "Bad content" } }, "reject", true, "Bad content"],
  ["Open", { open: { ipAddress: "192.0.2.1" } }, "open", false, ""],
  ["Click", { click: { link: "https://example.com" } }, "click", false, ""],
  [
    "Rendering Failure",
    { failure: { errorMessage: "Attribute 'name' is missing", templateName: "t" } },
    "rendering_failure",
    true,
    "Attribute 'name' is missing",
  ],
  [
    "DeliveryDelay",
    { deliveryDelay: { delayType: "MailboxFull", delayedRecipients: [{ emailAddress: "b@example.com" }] } },
    "delivery_delay",
    false,
    "MailboxFull",
  ],
  ["Subscription", { subscription: { contactList: "news" } }, "subscription", false, ""],
] as const)("reads %s %j", (eventType, facts, ...[kind, permanent, detail]) => {
  expect(read({ eventType, mail, ...facts })).toMatchObject({
    kind,
    permanent,
    detail,
    recipients: [JSON.stringify(facts).includes("b@") ? "b@example.com" : "a@example.com"],
    at: new Date(mail.timestamp),
  });
});

test.each([
  ["nothing", undefined],
  ["text", "Bounce"],
  ["another event", { id: "evt_1", type: "payment_intent.succeeded" }],
  ["a message that is not JSON", { Type: "Notification", Message: "{" }],
  ["a message that is no object", { Type: "Notification", Message: "[]" }],
  ["a message that is not text", { Type: "Notification", Message: sesBounce(EFFECT) }],
  ["a confirmation", { Type: "SubscriptionConfirmation", Message: JSON.stringify(sesBounce(EFFECT)) }],
  [
    "a kind that SES does not have",
    { Type: "Notification", Message: JSON.stringify({ eventType: "constructor", mail }) },
  ],
  ["a notice without its mail", { Type: "Notification", Message: '{"eventType":"Bounce","bounce":{}}' }],
])("finds no notice in %s", (_, event) => {
  expect(readSesNotice(event)).toBeUndefined();
});

test(`never throws, whatever is published (seed ${seed})`, () => {
  const names = fc.constantFrom(
    "Bounce",
    "Complaint",
    "Delivery",
    "Rendering Failure",
    "DeliveryDelay",
    "__proto__",
    7,
  );
  const facts = fc.oneof(
    fc.jsonValue(),
    fc.record({
      bouncedRecipients: fc.jsonValue(),
      recipients: fc.jsonValue(),
      timestamp: fc.jsonValue(),
      reason: fc.jsonValue(),
    }),
  );
  const message = fc.record({
    eventType: names,
    bounce: facts,
    complaint: facts,
    delivery: facts,
    mail: fc.oneof(
      fc.jsonValue(),
      fc.record({ messageId: fc.string(), tags: fc.jsonValue(), destination: fc.jsonValue() }),
    ),
  });
  fc.assert(
    fc.property(message, (any) => {
      const notice = read(any);
      if (!notice) return;
      for (const address of notice.recipients) expect(address).toBeTypeOf("string");
      expect(notice.detail.length).toBeLessThanOrEqual(1000);
      expect(notice.effect).toBeUndefined();
    }),
    { seed, numRuns: 400 },
  );
});
