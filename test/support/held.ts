// A promise that is kept from outside: Node 20 has no Promise.withResolvers.

export interface Held<Value> {
  readonly promise: Promise<Value>;
  resolve(value: Value): void;
}

/** A promise, and what keeps it. */
export function held<Value>(): Held<Value> {
  let resolve: (value: Value) => void = () => {};
  const promise = new Promise<Value>((keep) => (resolve = keep));
  return { promise, resolve };
}
