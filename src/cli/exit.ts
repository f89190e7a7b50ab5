// Exit codes, the same for every command.

export const EXIT = {
  ok: 0,
  /** The command ran, and what it was asked for failed. */
  failure: 1,
  /** A wrong flag, argument or option. */
  usage: 2,
} as const;
