// Work on many things, two at a time: the machine has no more to give.

export async function inTwos<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const rest = [...items];
  const next = async (): Promise<void> => {
    const item = rest.shift();
    if (item === undefined) return;
    await work(item);
    await next();
  };
  await Promise.all([next(), next()]);
}
