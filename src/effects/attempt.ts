// One call to the outside world, and what became of it: the contract between the ledger and those who make the calls.

/** What went wrong, in words that may be kept and shown: no secret, no address. */
export interface Fault {
  /** By which failures are grouped, such as `SMTP 550` or `HTTP 503`. */
  readonly class: string;
  readonly message: string;
  /** What the peer said, where that can be read by a program: a problem document, a code. */
  readonly answer?: Readonly<Record<string, unknown>>;
}

/** What became of one call. */
export type AttemptResult =
  /** The peer has taken it. */
  | {
      readonly is: "done";
      readonly receipt: Readonly<Record<string, unknown>>;
      /** What is odd about it, for a person: it is kept on the effect, and logged. */
      readonly remark?: string;
    }
  /** It did not happen, and may later. */
  | {
      readonly is: "again";
      readonly fault: Fault;
      /** The peer asks for a pause: a floor for everything that goes to this destination. */
      readonly pauseMs?: number;
    }
  /** It did not happen, and never will. */
  | { readonly is: "failed"; readonly fault: Fault }
  /** Nobody can tell whether it happened: the call was made, and its answer was lost. */
  | { readonly is: "uncertain"; readonly fault: Fault }
  /**
   * It did not happen, and nothing will there until a person has done something: a wrong password, an account that was
   * suspended. Says nothing against this effect.
   */
  | { readonly is: "blocked"; readonly fault: Fault };

/** What every call is bound by. */
export interface CallLimits {
  /** How long it may take in all, in milliseconds. */
  readonly timeoutMs: number;
  /** Fires where the call is to be given up: what is not known then is uncertain. */
  readonly signal: AbortSignal;
  /**
   * Waits for the call's turn. Whoever needs a connection first asks when it is there, right before the first byte that
   * counts; rejects where the call must not be made any more. Undefined where the turn has come.
   */
  readonly turn?: () => Promise<void>;
  /**
   * Whether the call may be made still: by the steady clock, whatever timers have or have not fired. To be asked right before
   * the first byte, by whoever has waited for a connection since its turn. @default it may
   */
  readonly mayBegin?: () => boolean;
}
