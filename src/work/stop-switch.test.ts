import { expect, test } from "vitest";
import { StopSwitch } from "./stop-switch.ts";

test("the listener hears of the stop before the signal fires, and of every later reason; only the first counts", () => {
  const stop = new StopSwitch();
  const heard: string[] = [];
  stop.signal().addEventListener("abort", () => heard.push("signal"));
  stop.listen(({ message }) => heard.push(message));
  expect(stop.reason()).toBeUndefined();
  stop.stop(new Error("first"));
  stop.stop(new Error("second"));
  expect(heard).toEqual(["first", "signal", "second"]);
  expect(stop.reason()?.message).toBe("first");
  expect(stop.signal().reason).toBe(stop.reason());
});

test("a signal that is asked for after the stop has fired already", () => {
  const stop = new StopSwitch();
  stop.stop(new Error("too late"));
  expect(stop.signal().aborted).toBe(true);
  expect(stop.signal().reason).toEqual(new Error("too late"));
});

test("who no longer listens hears nothing", () => {
  const stop = new StopSwitch();
  stop.listen(() => {
    throw new Error("nobody is here");
  });
  stop.listen(undefined);
  stop.stop(new Error("stop"));
  expect(stop.signal().aborted).toBe(true);
});
