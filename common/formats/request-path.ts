// The path of a request, as every listener reads it (specification/signing.md#paths): duplicate slashes are one, and a
// last one does not count. Nothing is decoded, and `.` and `..` are names like any other.

/** @param target of the request line, in origin form (RFC 9112 §3.2.1) */
export function requestPath(target = ''): string {
  const [path = ''] = target.split('?');
  return path.replace(/\/{2,}/g, '/').replace(/(?<=.)\/$/, '');
}
