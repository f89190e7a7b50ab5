// What the store has to tell a person who reads the log.

/** One piece of news. The fields carry no secret and no row values. */
export type Tell = (
  level: "info" | "warn" | "error",
  message: string,
  fields?: Record<string, unknown>,
) => void;
