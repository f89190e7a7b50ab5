// The filters of mail templates: money and dates as the reader of that locale writes them. No message repeats a value.

/** A filter was given something it cannot show. The message says what it takes, never what it was given. */
export class FilterFault extends Error {
  override readonly name = "FilterFault";
}

const STYLES = ["full", "long", "medium", "short"] as const;
type Style = (typeof STYLES)[number];

/** The filters for one locale. */
export function filtersFor(locale: string, timeZone: string) {
  return {
    /** `{{ amount | money: "jpy" }}`: whole minor units, as payment services count them. */
    money(amount: unknown, currency: unknown): string {
      if (typeof amount !== "number" || !Number.isSafeInteger(amount)) {
        throw new FilterFault("money takes a whole number of the currency's smallest unit");
      }
      const format = attempt(
        () => new Intl.NumberFormat(locale, { style: "currency", currency: asText(currency) }),
        "money needs a currency of three letters, such as jpy",
      );
      return format.format(decimal(amount, format.resolvedOptions().maximumFractionDigits ?? 0));
    },
    /** `{{ at | date: "long", "Asia/Tokyo" }}` */
    date: (moment: unknown, style: unknown = "long", zone?: unknown): string =>
      show(moment, "dateStyle", style, zone),
    /** `{{ at | time: "short", "Asia/Tokyo" }}` */
    time: (moment: unknown, style: unknown = "short", zone?: unknown): string =>
      show(moment, "timeStyle", style, zone),
  };

  function show(value: unknown, part: "dateStyle" | "timeStyle", style: unknown, zone: unknown): string {
    const moment = momentOf(value);
    if (!isStyle(style)) throw new FilterFault(`a date is shown in one of ${STYLES.join(", ")}`);
    // a day alone is the same day everywhere
    const shownIn = isDay(value) ? "UTC" : zone === undefined ? timeZone : asText(zone);
    const format = attempt(
      () => new Intl.DateTimeFormat(locale, { [part]: style, timeZone: shownIn }),
      "a time zone is named like Asia/Tokyo",
    );
    return format.format(moment);
  }
}

/** Exact where a division would not be: `123456` with two digits is `1234.56`. */
function decimal(amount: number, digits: number): Intl.StringNumericLiteral {
  const text = `${Math.abs(amount)}`.padStart(digits + 1, "0");
  const whole = text.slice(0, text.length - digits);
  const rest = digits === 0 ? "" : `.${text.slice(-digits)}`;
  return `${amount < 0 ? "-" : ""}${whole}${rest}` as Intl.StringNumericLiteral;
}

/** No numbers: nobody can tell seconds from milliseconds. */
function momentOf(value: unknown): Date {
  const moment =
    value instanceof Date
      ? value
      : typeof value === "string" && /^\d{4}-\d\d-\d\d(?:$|T.*(?:Z|[+-]\d\d:?\d\d)$)/.test(value)
        ? new Date(value)
        : undefined;
  if (!moment || Number.isNaN(moment.getTime())) {
    throw new FilterFault(
      "a date is a Date, or an ISO 8601 text with its offset, or a day such as 2026-11-16",
    );
  }
  return moment;
}

const isDay = (value: unknown) => typeof value === "string" && !value.includes("T");

const isStyle = (style: unknown): style is Style => STYLES.some((one) => one === style);

const asText = (value: unknown) => (typeof value === "string" ? value : "");

function attempt<T>(make: () => T, or: string): T {
  try {
    return make();
  } catch {
    throw new FilterFault(or); // without the cause: it repeats the value
  }
}
