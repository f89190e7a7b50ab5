// Tokens for tests.
import type { TokenRequest } from "../../src/operate/tokens.ts";
import type { Ukemi } from "../../src/ukemi.ts";

/** Makes a token; returns its secret. */
export async function makeToken({ operate }: Pick<Ukemi, "operate">, request: Omit<TokenRequest, "name">) {
  const made = await operate.tokens.make(
    { name: `${request.scope} for tests`, ...request },
    { actor: "test:jane", reason: "a test" },
  );
  return made.secret;
}
