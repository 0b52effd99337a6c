// The second line of defence against secrets in the log. The first is that no call site logs one.

/** At the top level and one level down. An object of the program that is logged whole has camelCase. */
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

/** pino's own redaction by paths costs ten times as much. */
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
