// The JSON line of a record of plain values, byte for byte as pino writes it, for a fraction of its price: audit lines are most of what is
// logged. Whatever is not plain, may be a secret by its name, or would stand twice in the line is left to pino and to the redaction.

/** Members that every line has. */
const RESERVED_FIELDS: ReadonlySet<string> = new Set(['level', 'time', 'module', 'msg']);

/**
 * The line without its line feed, or undefined when the record is not plain.
 * @param head the members before those of the record: `{"level":"info",…`
 */
export function plainLine(
  head: string,
  fields: object,
  message: string,
  secretFields: ReadonlySet<string>,
): string | undefined {
  const record = fields as Readonly<Record<string, unknown>>;
  let members = 0;
  for (const name in record) {
    const value = record[name];
    if (value === undefined) continue;
    if (!isPlain(value) || secretFields.has(name) || RESERVED_FIELDS.has(name)) return undefined;
    members += 1;
  }
  const own = members === 0 ? '' : `,${JSON.stringify(record).slice(1, -1)}`;
  return `${head}${own},"msg":${JSON.stringify(message)}}`;
}

function isPlain(value: unknown): boolean {
  return (
    typeof value === 'string' || typeof value === 'boolean' || (typeof value === 'number' && Number.isFinite(value))
  );
}
