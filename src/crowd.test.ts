import { expect, test } from "vitest";
import * as fc from "fast-check";
import { createCrowd, type Place } from "./crowd.ts";

test("shows who is here in the order they came, whoever leaves when", () => {
  const act = fc.oneof(fc.constant("enter" as const), fc.nat({ max: 50 }));
  fc.assert(
    fc.property(fc.array(act, { maxLength: 200 }), (acts) => {
      const crowd = createCrowd<number>();
      const places: Place<number>[] = [];
      const model = new Set<number>();
      for (const one of acts) {
        if (one === "enter") {
          places.push(crowd.enter(places.length));
          model.add(places.length - 1);
        } else if (places[one]) {
          expect(crowd.leave(places[one])).toBe(model.delete(one));
        }
        expect(crowd.first()).toBe([...model][0]);
        expect(crowd.size()).toBe(model.size);
      }
      for (const left of model) {
        expect(crowd.first()).toBe(left);
        crowd.leave(places[left]!);
      }
      expect(crowd.first()).toBeUndefined();
    }),
  );
});

test("one who has left holds on to nobody", () => {
  const crowd = createCrowd<string>();
  const [first] = [crowd.enter("a"), crowd.enter("b"), crowd.enter("c")];
  crowd.leave(first);
  expect(first).toMatchObject({ isHere: false, before: undefined, after: undefined });
});
