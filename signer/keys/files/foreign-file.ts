// Files that tools leave in folders of keystores and that hold no key of a validator: no fault of the keys. Only what
// is known is ignored: anything else may be a keystore that was damaged. What has a `crypto` is judged as a keystore,
// whatever its name is.

import { basename } from 'node:path';

/** As a member of a log line. */
export type ForeignKind =
  | 'deposit_data'
  | 'signed_exits'
  | 'withdrawal_changes'
  | 'slashing_records'
  | 'secp256k1_keys'
  | 'lists';

type Members = Readonly<Record<string, unknown>>;

/** By the name that its tool gives it, or by its first entry. */
const KINDS: readonly (readonly [ForeignKind, RegExp, (entry: Members) => boolean])[] = [
  ['deposit_data', /^deposit[_-]data/i, (entry) => 'deposit_data_root' in entry],
  ['withdrawal_changes', /^bls_to_execution_change/i, (entry) => 'to_execution_address' in members(entry['message'])],
  ['signed_exits', /^(signed_)?exit/i, (entry) => 'validator_index' in members(entry['message'])],
  [
    'slashing_records',
    /slashing[_-]protection/i,
    (entry) => 'interchange_format_version' in members(entry['metadata']),
  ],
];

/** @param value the JSON of the file */
export function foreignKind(file: string, value: unknown): ForeignKind | undefined {
  const entry = members(Array.isArray(value) ? value[0] : value);
  if (typeof value !== 'object' || value === null || 'crypto' in entry || 'Crypto' in entry) return undefined;
  const name = basename(file);
  const known = KINDS.find(([, ofName, isOne]) => ofName.test(name) || isOne(entry));
  return known?.[0] ?? (Array.isArray(value) ? 'lists' : undefined);
}

export function hasForeignName(file: string): boolean {
  return KINDS.some(([, ofName]) => ofName.test(file));
}

function members(value: unknown): Members {
  return typeof value === 'object' && value !== null ? (value as Members) : {};
}
