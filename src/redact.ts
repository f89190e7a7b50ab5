// What must never be kept or shown, taken out of a text: keys, passwords, addresses.

/** What must never be kept, whoever wrote it into an error: the kind of thing goes in its place. */
const SECRETS: readonly (readonly [RegExp, string])[] = [
  [/\b(?:sk|rk|pk)_(?:live|test)_\w+/g, "[key]"],
  [/\bwhsec_[A-Za-z0-9+/=_-]+/g, "[secret]"],
  [/\b((?:pi|seti|cs)_[A-Za-z0-9]+)_secret_[A-Za-z0-9]+/g, "$1_secret_[secret]"],
  [/\beyJ[\w-]+\.[\w-]+\.[\w-]*/g, "[token]"],
  [/\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]+/gi, "$1 [token]"],
  [/\b(AKIA|ASIA)[A-Z0-9]{16}\b/g, "[key]"],
  [/\b(?:ghp|gho|ghs|xox[abpr])[_-][A-Za-z0-9-]{10,}/g, "[token]"],
  [/\b([a-z][a-z0-9+.-]{0,20}:\/\/)[^\s/:@]{0,200}:[^\s/]{0,200}@/gi, "$1[secret]@"],
  [
    /(password|passwd|secret|token|api[_-]?key|authorization|signature)(\\*["']?\s*[:=]\s*\\*["']?)[^\s"'\\,;&)}]+/gi,
    "$1$2[secret]",
  ],
  [
    /(?<![\p{L}\p{N}._%+'-])[\p{L}\p{N}._%+'-]{1,64}@[\p{L}\p{N}-]{1,63}(?:\.[\p{L}\p{N}-]{1,63}){1,8}/gu,
    "[address]",
  ],
  [/\b\d(?:[ -]?\d){12,18}\b/g, "[number]"],
  [/\b(?:\d{1,3}\.){3}\d{1,3}\b/g, "[address]"],
];

/** Takes out secrets and addresses. What PostgreSQL's text cannot hold goes too. */
export function redact(text: string): string {
  let clean = text.replaceAll(/[\0\p{Cs}]/gu, "\uFFFD");
  for (const [pattern, place] of SECRETS) clean = clean.replace(pattern, place);
  return clean;
}
