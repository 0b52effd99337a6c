// The Authorization header (specification/authorization.md#credentials). What is present but not understood is
// malformed, never absent, so it cannot fall through to anonymous access.

export const MAX_AUTHORIZATION_CHARACTERS = 8192;

export type Credential =
  | { readonly kind: 'none' }
  /** A static token may be any string. Wiped by the authenticator that takes it. */
  | { readonly kind: 'token'; readonly token: Buffer }
  | { readonly kind: 'malformed' };

/** @param values every Authorization header of the request as node:http gives it (latin1) */
export function parseAuthorization(values: readonly string[] | undefined): Credential {
  if (values === undefined || values.length === 0) return { kind: 'none' };
  const [header] = values;
  if (header === undefined || values.length > 1 || header.length > MAX_AUTHORIZATION_CHARACTERS) return MALFORMED;
  const [, scheme, credentials] = /^([A-Za-z]+) +(\S.*)$/.exec(header) ?? [];
  if (scheme === undefined || credentials === undefined) return MALFORMED;
  switch (scheme.toLowerCase()) {
    case 'bearer':
      return { kind: 'token', token: Buffer.from(credentials, 'latin1') };
    case 'basic':
      return parseBasic(credentials);
    default:
      return MALFORMED;
  }
}

const MALFORMED: Credential = Object.freeze({ kind: 'malformed' });
const COLON = 0x3a;

/** RFC 7617 §2: the first colon ends the user name, the password may hold more. */
function parseBasic(base64: string): Credential {
  const decoded = Buffer.from(base64, 'base64');
  const colon = decoded.indexOf(COLON);
  const isStrict = decoded.toString('base64') === base64;
  if (!isStrict || colon === -1 || colon === decoded.length - 1) return MALFORMED;
  return { kind: 'token', token: decoded.subarray(colon + 1) };
}
