import { expect, test } from "vitest";
import { createNotifier } from "./notifier.ts";

function watch(others: number) {
  const sent: string[][] = [];
  const notifier = createNotifier({
    send: (queues) => Promise.resolve(void sent.push([...queues])),
    others: () => Promise.resolve(others),
    onFault: () => {},
  });
  return { sent, notifier };
}

test("tells of many commits in one notification", async () => {
  const { sent, notifier } = watch(1);
  for (let index = 0; index < 100; index++) notifier.tell(["default"]);
  notifier.tell(["mail"]);
  await notifier.stop();
  const told = sent.flat();
  expect(new Set(told)).toEqual(new Set(["default", "mail"]));
  expect(told.length).toBeLessThanOrEqual(3);
});

test("says nothing where nobody else listens", async () => {
  const { sent, notifier } = watch(0);
  notifier.tell(["default"]);
  await notifier.stop();
  expect(sent).toEqual([]);
});

test("goes on after a fault", async () => {
  const faults: unknown[] = [];
  let broken = true;
  const sent: string[][] = [];
  const notifier = createNotifier({
    async send(queues) {
      if (broken) throw new Error("away");
      sent.push([...queues]);
    },
    others: () => Promise.resolve(1),
    onFault: (error) => faults.push(error),
  });
  notifier.tell(["default"]);
  await notifier.stop();
  broken = false;
  notifier.tell(["default"]);
  await notifier.stop();
  expect(faults).toHaveLength(1);
  expect(sent).toEqual([["default"]]);
});
