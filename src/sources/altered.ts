// Finding out that a body was changed on its way: a JSON parser in front of us is the commonest cause of a bad signature.
import { isUtf8 } from "node:buffer";

/** Larger ones are not tried: a refused request must stay cheap, and indented text grows with the square of its depth. */
const limits = Object.freeze({ bodyBytes: 64 * 1024, indentedBytes: 256 * 1024 });

/** Undoes the usual changes one by one until the signature matches; says which change it was, or undefined. */
export function bodyAsSent(body: Buffer, matches: (candidate: Buffer) => boolean): string | undefined {
  if (body.length === 0 || body.length > limits.bodyBytes || !isUtf8(body)) return undefined;
  const text = body.toString();
  for (const [change, candidate] of originals(text, indentedBytes(body) <= limits.indentedBytes)) {
    if (candidate !== text && matches(Buffer.from(candidate))) return change;
  }
  return undefined;
}

function* originals(text: string, indent: boolean): Generator<readonly [change: string, original: string]> {
  yield ["white space was added around it", text.trim()];
  yield ["its final newline was removed", `${text}\n`];
  yield ["its line ends were changed", text.replaceAll("\r\n", "\n")];
  const json = indent ? parse(text) : undefined;
  if (json === undefined) return;
  const indented = JSON.stringify(json, null, 2);
  yield ["its JSON was parsed and written again without the indentation", indented];
  yield ["its JSON was parsed and written again without indentation and final newline", `${indented}\n`];
  yield ["its JSON was parsed and written again with other white space", JSON.stringify(json)];
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** How large the JSON could become when indented; brackets and commas inside strings only make it seem larger. */
function indentedBytes(body: Buffer): number {
  let depth = 0;
  let bytes = body.length;
  for (const byte of body) {
    const opens = byte === 0x5b || byte === 0x7b;
    const closes = byte === 0x5d || byte === 0x7d;
    if (opens) depth++;
    if (closes) depth = Math.max(0, depth - 1);
    if (opens || closes || byte === 0x2c) bytes += 2 * depth + 1;
  }
  return bytes;
}
