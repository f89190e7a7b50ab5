// Formats generated code as the formatter would.
import { readFile } from "node:fs/promises";
import { format as oxfmt } from "oxfmt";

/** The formatted source; throws where it is no TypeScript. */
export async function format(source: string, name: string): Promise<string> {
  const options = JSON.parse(
    await readFile(new URL("../../.oxfmtrc.json", import.meta.url), "utf8"),
  ) as Record<string, unknown>;
  const { code, errors } = await oxfmt(name, source, options);
  if (errors.length > 0) throw new Error(errors.map((error) => error.message).join("\n"));
  return code;
}
