// The master keys that bodies are sealed under, as they are written in the option bodyKeys: `name:base64 of 32 bytes`.

/** A master key. It seals the data keys, which seal the bodies. */
export interface MasterKey {
  readonly name: string;
  readonly key: Buffer;
}

/** In the first place of the list: new bodies are stored as they come, and the keys behind it open the old ones. */
export const PLAIN = "plain";

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const BASE64 = /^[A-Za-z0-9+/_-]+={0,2}$/;
const KEY_BYTES = 32;

/** Every fault of the list, each completing a sentence that begins with the option's name. Never quotes a key. */
export function faultsOfBodyKeys(value: unknown): string[] {
  if (!Array.isArray(value)) return ["must be a list of texts of the form name:key"];
  const faults = value.flatMap((item: unknown, index) => {
    const fault = item === PLAIN && index === 0 ? undefined : faultOf(item);
    return fault === undefined ? [] : [`${placeOf(index)} ${fault}`];
  });
  if (faults.length > 0) return faults;
  const names = readBodyKeys(value as string[]).map(({ name }) => name);
  const twice = new Set(names.filter((name, index) => names.indexOf(name) !== index));
  if (value.length === 1 && value[0] === PLAIN) faults.push(`must name a key behind ${PLAIN}`);
  return [...faults, ...[...twice].map((name) => `must not name two keys ${JSON.stringify(name)}`)];
}

/** The keys of a list without faults, in order. */
export function readBodyKeys(list: readonly string[]): MasterKey[] {
  return list.flatMap((item) => {
    const [name, key] = halvesOf(item);
    return key === undefined ? [] : { name, key: Buffer.from(key, "base64") };
  });
}

function faultOf(item: unknown): string | undefined {
  const [name, key] = typeof item === "string" ? halvesOf(item) : [""];
  if (key === undefined) return "must have the form name:key";
  if (!NAME.test(name) || name === PLAIN) {
    return `must have a name of 1 to 64 letters, digits, ".", "_" or "-", other than ${PLAIN}`;
  }
  if (!BASE64.test(key) || Buffer.from(key, "base64").length !== KEY_BYTES) {
    return `must have a key of ${KEY_BYTES} bytes in base64 (openssl rand -base64 ${KEY_BYTES})`;
  }
  return undefined;
}

function halvesOf(item: string): [string, string?] {
  const at = item.indexOf(":");
  return at < 0 ? [item] : [item.slice(0, at), item.slice(at + 1)];
}

function placeOf(index: number): string {
  return `(key ${index + 1} of the list)`;
}
