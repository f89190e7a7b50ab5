import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { idOf, readRecord } from "./record.ts";

describe("a record of use", () => {
  test("keeps its own text, numbers beyond 2^53 included", () => {
    const line = '{ "source_event_id":"u1", "units": 9007199254740993 }';
    expect(readRecord(line)).toEqual({ text: line });
  });

  test("without an id gets one that is made of its line", () => {
    const { text } = readRecord('{"meter":"calls","units":3}') as { text: string };
    expect(JSON.parse(text)).toEqual({
      source_event_id: idOf('{"meter":"calls","units":3}'),
      meter: "calls",
      units: 3,
    });
    expect(readRecord('  {"meter":"calls","units":3}\r')).toEqual({ text });
    expect(readRecord('{"meter":"calls","units":4}')).not.toEqual({ text });
    expect(JSON.parse((readRecord("{}") as { text: string }).text)).toEqual({ source_event_id: idOf("{}") });
  });

  test("is known by its pattern only where JSON.parse would agree, whatever is broken in it", () => {
    fc.assert(
      fc.property(lines, (line) => {
        const read = readRecord(line);
        expect("text" in read && read.text === line, line).toBe(hasGoodId(line));
      }),
      { numRuns: 20_000 },
    );
  });

  test("may be as long as a line may, in every way", () => {
    const long = "x".repeat(1_000_000);
    for (const line of [
      `{"source_event_id":"a","note":"${long}"}`,
      `{"source_event_id":"a"${',"n":1'.repeat(150_000)}}`,
      `{"source_event_id":"a","n":${"1".repeat(1_000_000)}}`,
    ]) {
      expect(readRecord(line)).toEqual({ text: line });
      expect(readRecord(line.slice(0, -1))).toEqual({ fault: "it is not JSON" });
    }
  });

  test.each([
    ["{", /not JSON/],
    ['{"source_event_id":"a","units":01}', /not JSON/],
    ['{"source_event_id":"a","units":1.}', /not JSON/],
    ['{"source_event_id":"a","units":1},{"source_event_id":"b"}', /not JSON/],
    ['{"source_event_id":"a","source_event_id":7}', /source_event_id/],
    ["[1]", /not an object/],
    ["null", /not an object/],
    ["7", /not an object/],
    ['{"source_event_id":7}', /source_event_id/],
    ['{"source_event_id":" "}', /source_event_id/],
    [`{"source_event_id":"${"x".repeat(256)}"}`, /source_event_id/],
  ])("%s is none", (line, fault) => {
    expect(readRecord(line)).toEqual({ fault: expect.stringMatching(fault) });
  });
});

/** What the pattern must agree with. */
function hasGoodId(line: string): boolean {
  try {
    const value = JSON.parse(line) as { source_event_id?: unknown } | null;
    const id = Array.isArray(value) ? undefined : value?.source_event_id;
    return typeof id === "string" && id.trim() !== "" && id.length <= 255;
  } catch {
    return false;
  }
}

/** Records, most of them plain, some with a few characters of JSON put in the place of others. */
const lines = fc
  .record({
    id: fc.oneof(fc.string(), fc.constantFrom("", " ", "\u3000", "x".repeat(255), "x".repeat(256), 7, null)),
    others: fc.dictionary(
      fc.oneof(fc.constantFrom("source_event_id", "units", "a b"), fc.string()),
      fc.oneof({ weight: 4, arbitrary: fc.constantFrom(0, -1.5e-7, 1e21, "x", true, null) }, fc.jsonValue()),
      { maxKeys: 4 },
    ),
    isFirst: fc.boolean(),
    gap: fc.constantFrom("", "", " ", "  ", "\t"),
    cuts: fc.array(
      fc.tuple(
        fc.nat(),
        fc.nat(2),
        fc.constantFrom(
          ...Array.from('{}[]":,\\0-.eE u\u0001\u00A0'),
          "null",
          '"source_event_id":"x"',
          ',"a":1',
        ),
      ),
      { maxLength: 2 },
    ),
  })
  .map(({ id, others, isFirst, gap, cuts }) => {
    const members = Object.entries(others).map(([key, value]) => memberOf(key, value, gap));
    const own = memberOf("source_event_id", id, gap);
    const whole = `{${(isFirst ? [own, ...members] : [...members, own]).join(`,${gap}`)}}`;
    return cuts
      .reduce((text, [at, length, put]) => {
        const from = at % (text.length + 1);
        return text.slice(0, from) + put + text.slice(from + length);
      }, whole)
      .trim();
  });

const memberOf = (key: string, value: unknown, gap: string) =>
  `${JSON.stringify(key)}:${gap}${JSON.stringify(value)}`;
