// The code of a fault of the system or of Node.js, such as ENOENT. The text of an error may hold paths and content.

export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error ? String(error.code) : undefined;
}
