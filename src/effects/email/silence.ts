// What can be told of a mail that nobody answered for: how far it had come, and why the answer is missing.

/** How far a mail had come: once its last byte has been handed over, only the server knows whether it took it. */
export type Phase = "not handed over" | "handed over";

/** The attempt was ended from here: time was up, or nobody wants it any more. */
export class GivenUp extends Error {
  override readonly name = "GivenUp";
}

/** Codes of Node for a certificate that is not trusted, or TLS that cannot be agreed upon. */
export const CERTIFICATE = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|ERR_TLS|ERR_SSL/;

/** Codes of the machine's own troubles, whatever they were met at: another try would meet the same. */
export const MACHINE = /^(?:ENOMEM|ENOBUFS|EMFILE|ENFILE|ENOSPC|EDQUOT|EIO|EROFS|EACCES|EPERM)$/;
