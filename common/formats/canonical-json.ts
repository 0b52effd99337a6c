// Values to the one text that JSON has for them (RFC 8785), so that a digest of the text is a digest of the value. It
// refuses what two programs could write differently: fractions, unsafe integers, lone surrogates.

export type CanonicalValue =
  | string
  | number
  | boolean
  | null
  | readonly CanonicalValue[]
  | { readonly [member: string]: CanonicalValue };

export function canonicalJson(value: CanonicalValue): string {
  if (typeof value === 'string') return canonicalString(value);
  if (typeof value === 'number') {
    if (!Number.isSafeInteger(value)) throw new RangeError('a number that is no safe integer has no canonical text');
    return JSON.stringify(value);
  }
  if (value === null || typeof value === 'boolean') return JSON.stringify(value);
  if (isList(value)) return `[${value.map(canonicalJson).join(',')}]`;
  // RFC 8785 §3.2.3: by code units, which is how sort() compares.
  const members = Object.keys(value).sort();
  return `{${members.map((name) => `${canonicalString(name)}:${canonicalJson(value[name] ?? null)}`).join(',')}}`;
}

/** RFC 8785 §3.2.2.2: as JSON.stringify, and a lone surrogate is an error. */
function canonicalString(text: string): string {
  if (!text.isWellFormed()) throw new RangeError('text with a lone surrogate has no canonical text');
  return JSON.stringify(text);
}

function isList(value: object): value is readonly CanonicalValue[] {
  return Array.isArray(value);
}
