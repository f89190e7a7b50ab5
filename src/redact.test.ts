import { expect, test } from "vitest";
import { redact } from "./redact.ts";

test.each([
  ["Invalid API Key provided: sk_live_51HabcDEF", "Invalid API Key provided: [key]"],
  ["secret whsec_abcDEF123+/=", "secret [secret]"],
  ["pi_3Abc_secret_xyz123 failed", "pi_3Abc_secret_[secret] failed"],
  ["Authorization: Bearer abc.def-ghi", "Authorization: [secret] [token]"],
  ["jwt eyJhbGciOi.eyJzdWIi.sig", "jwt [token]"],
  ["connect postgres://app:hunter2@db/x", "connect postgres://[secret]@db/x"],
  ['{"password":"hunter2","user":"x"}', '{"password":"[secret]","user":"x"}'],
  ["mail to jane.doe+x@example.co.jp bounced", "mail to [address] bounced"],
  ["card 4242 4242 4242 4242 declined", "card [number] declined"],
  ["ECONNREFUSED 10.1.2.3:5432", "ECONNREFUSED [address]:5432"],
  ["no such payment pi_3AbcDefGhi of cus_123", "no such payment pi_3AbcDefGhi of cus_123"],
])("redacts %s", (text, expected) => {
  expect(redact(text)).toBe(expected);
});
