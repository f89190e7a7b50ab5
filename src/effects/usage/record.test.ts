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

  test.each([
    ["{", /not JSON/],
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
