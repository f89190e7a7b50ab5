import { expect, test } from "vitest";
import { UkemiError } from "../errors.ts";
import { createAddressList } from "./addresses.ts";

const list = createAddressList(["3.18.12.63", "10.0.0.0/8", "2001:db8::/32", "::ffff:c000:200/120"]);

test.each([
  "3.18.12.63",
  "::ffff:3.18.12.63",
  "::FFFF:0312:0c3f",
  "10.255.0.1",
  "::ffff:10.1.2.3",
  "2001:db8:1::5",
  "2001:db8::5%eth0",
  "192.0.2.77",
  "::ffff:192.0.2.77",
])("allows %s", (address) => expect(list.allows(address)).toBe(true));

test.each([
  "3.18.12.64",
  "11.0.0.1",
  "::ffff:11.0.0.1",
  "2001:db9::1",
  "::3.18.12.63",
  "192.0.3.1",
  "",
  "localhost",
  "3.18.12.63:443",
  "03.18.12.63",
  " 3.18.12.63",
  "0x3.18.12.63",
])("does not allow %j", (address) => expect(list.allows(address)).toBe(false));

test("allows everything where the list is empty, and all of a family by /0", () => {
  expect(createAddressList([]).allows("203.0.113.7")).toBe(true);
  expect(createAddressList(["0.0.0.0/0"]).allows("203.0.113.7")).toBe(true);
  expect(createAddressList(["::/0"]).allows("2001:db8::1")).toBe(true);
});

test.each([
  "",
  "stripe.com",
  "10.0.0.0/33",
  "10.0.0.0/",
  "10.0.0.0/-1",
  "10.0.0.0/8/8",
  "::/129",
  "10.0.0",
  "fe80::1%eth0",
])("refuses the range %j", (range) => {
  expect(() => createAddressList([range])).toThrow(UkemiError);
  expect(() => createAddressList([range])).toThrow(/allowedAddresses/);
});
