// The second line of defence against secrets in the log: fields with a name that could hold one lose their value. The
// first is that no call site logs one.

/**
 * Field names that never reach a log line with their value, at the top level and one level down. Members of a log line
 * are snake_case (log.ts); an object of the program that is logged whole has camelCase.
 */
const SECRET_FIELDS: ReadonlySet<string> = new Set([
  'authorization',
  'password',
  'passwords',
  'token',
  'secret',
  'secret_key',
  'secretKey',
  'private_key',
  'privateKey',
  'master_key',
  'masterKey',
  'root_token',
  'rootToken',
  'mnemonic',
  'keystore',
  'keystores',
]);

/** Runs for every line of the signer's: pino's own redaction by paths costs ten times as much. */
export function redacted(fields: Record<string, unknown>, level = 0): Record<string, unknown> {
  let clean = fields;
  for (const name in fields) {
    const value = fields[name];
    const replacement = SECRET_FIELDS.has(name)
      ? '[redacted]'
      : level === 0 && isRecord(value)
        ? redacted(value, 1)
        : value;
    if (replacement === value) continue;
    if (clean === fields) clean = { ...fields };
    clean[name] = replacement;
  }
  return clean;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}
