// Conditions of a list, with their parameters numbered as they are added.

/** Clauses that all must hold. */
export interface Conditions {
  readonly values: unknown[];
  /** Adds a clause in which `?` stands for the value; nothing where the value is undefined. */
  add(clause: string, value: unknown): void;
  /** Adds a clause without a value. */
  require(clause: string): void;
  /** Adds a value that is no condition; returns its placeholder. */
  value(value: unknown): string;
  /** `where …`, or nothing. */
  where(): string;
}

/** Makes conditions; those that go into the same statement share its values. */
export function createConditions(values: unknown[] = []): Conditions {
  const clauses: string[] = [];
  const place = (value: unknown) => `$${values.push(value)}`;
  return {
    values,
    add(clause, value) {
      if (value !== undefined) clauses.push(clause.replaceAll("?", place(value)));
    },
    require: (clause) => void clauses.push(clause),
    value: place,
    where: () => (clauses.length === 0 ? "" : `where ${clauses.join(" and ")}`),
  };
}

/** What a page of a list is, and where the next begins. */
export interface Page<T> {
  readonly items: readonly T[];
  /** Absent on the last page. A page may hold fewer items than were asked for, and yet not be the last. */
  readonly cursor?: string;
}

/** Makes a page of rows, of which one more was asked for than the page holds. */
export function pageOf<T>(rows: readonly T[], limit: number, cursorOf: (row: T) => string): Page<T> {
  const items = rows.slice(0, limit);
  return rows.length > limit ? { items, cursor: cursorOf(items.at(-1)!) } : { items };
}

/** A time that came as JSON text: the text of a plain timestamp depends on the session's DateStyle. */
export const timeOf = (text: unknown): Date | null => (text === null ? null : new Date(text as string));
