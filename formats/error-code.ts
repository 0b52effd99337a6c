// The code of a fault of the system or of Node.js, such as ENOENT: what a message may repeat of an error. The text of
// an error may hold paths and content, and stays where it is.

/** Undefined for an error without a code, and for what is no error. */
export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error ? String(error.code) : undefined;
}

/** The code, or words for an error without one: for a message to a person. */
export function shownErrorCode(error: unknown): string {
  return errorCode(error) ?? 'unknown fault';
}
