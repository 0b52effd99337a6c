// Reads the authorization state out of a table that others may have written. What comes out is what the head named at
// one revision, or an error: never a mixture. Rows that the head does not name are never read.

import { SignerError } from '../../api/errors.ts';
import { kindOf, openHead, type RowKind } from './rows.ts';
import { type AuthSnapshot, snapshotOf, type VerifiedAuthRow, verifyRow } from './snapshot.ts';
import {
  type AuthHead,
  type AuthRow,
  type AuthState,
  type AuthView,
  MAX_POLICIES_TOGETHER,
  MAX_ROWS_APART,
  MAX_TOKENS_TOGETHER,
} from './state.ts';

/** `replayed`: authentic, and not the row that counts. `missing`: named by the manifest, not there. */
export interface RejectedRow {
  readonly pk: string;
  readonly kind: RowKind;
  readonly why: 'altered' | 'replayed' | 'missing';
}

export type HeadProblem = 'missing' | 'altered' | 'rolled_back';

interface LoadedAuthorization {
  readonly snapshot: AuthSnapshot;
  readonly rejected: readonly RejectedRow[];
}

export class AuthHeadRejected extends SignerError {
  readonly problem: HeadProblem;

  constructor(problem: HeadProblem, revision: number | undefined) {
    super('state_stale', { detail: { problem: `the row AUTH_REVISION is ${problem}`, revision } });
    this.name = 'AuthHeadRejected';
    this.problem = problem;
  }
}

/** A round is lost only to a commit in its few milliseconds that moves a row no earlier round asked for. */
const MAX_ROUNDS = 20;

/**
 * @param trustsHeld whether rows that this replica has in the version that counts are left as they are
 * @returns undefined when `current` is what the head says still, and the rows are trusted
 * @throws AuthHeadRejected, or SignerError `state_stale`
 */
export async function loadAuth(
  rowKey: Uint8Array,
  state: AuthState,
  current: AuthSnapshot | undefined,
  trustsHeld: boolean,
): Promise<LoadedAuthorization | undefined> {
  let start = trusted(rowKey, await state.readTogether([]), current);
  if (start === current && trustsHeld) return undefined;
  let read = await readNamed(rowKey, state, start, trustsHeld ? current?.rows : undefined);
  let asked: readonly string[] = [];
  for (let round = 1; round <= MAX_ROUNDS; round++) {
    const view = await state.readTogether(asked);
    const end = trusted(rowKey, view, start);
    take(read, rowKey, view.rows);
    const moved = [...end.manifest.rows.keys()].filter((pk) => hasMoved(pk, start, end, read) && !asked.includes(pk));
    if (moved.length === 0) {
      return { snapshot: snapshotOf(end, end.manifest, read.verified), rejected: rejectedRows(read, start, end) };
    }
    asked = [...asked, ...moved];
    if (!fitsOneTransaction(asked)) {
      start = end;
      read = await readNamed(rowKey, state, start, read.verified);
      asked = [];
    }
  }
  throw new SignerError('state_stale', { detail: { problem: 'the auth rows change faster than they can be read' } });
}

type TrustedHead = Pick<AuthSnapshot, 'revision' | 'mac' | 'manifest'>;

interface ReadRows {
  readonly verified: Map<string, VerifiedAuthRow>;
  readonly altered: Set<string>;
}

function trusted<Head extends TrustedHead>(
  rowKey: Uint8Array,
  { head }: AuthView,
  earlier: Head | undefined,
): Head | TrustedHead {
  if (head === undefined) throw new AuthHeadRejected('missing', undefined);
  if (earlier !== undefined && isSameHead(head, earlier)) return earlier;
  const manifest = openHead(rowKey, head);
  if (manifest === undefined) throw new AuthHeadRejected('altered', head.revision);
  // Also another head of the same revision: the table went back and took another way.
  if (earlier !== undefined && head.revision <= earlier.revision)
    throw new AuthHeadRejected('rolled_back', head.revision);
  return { revision: head.revision, mac: head.mac, manifest };
}

function isSameHead(head: AuthHead, earlier: TrustedHead): boolean {
  return head.revision === earlier.revision && Buffer.compare(head.mac, earlier.mac) === 0;
}

async function readNamed(
  rowKey: Uint8Array,
  state: AuthState,
  { manifest }: TrustedHead,
  known: ReadonlyMap<string, VerifiedAuthRow> | undefined,
): Promise<ReadRows> {
  const read: ReadRows = { verified: new Map(), altered: new Set() };
  const wanted: string[] = [];
  for (const [pk, code] of manifest.rows) {
    const row = known?.get(pk);
    if (row?.code === code) read.verified.set(pk, row);
    else wanted.push(pk);
  }
  for (let first = 0; first < wanted.length; first += MAX_ROWS_APART) {
    take(read, rowKey, await state.readRows(wanted.slice(first, first + MAX_ROWS_APART)));
  }
  return read;
}

function take({ verified, altered }: ReadRows, rowKey: Uint8Array, rows: readonly AuthRow[]): void {
  for (const row of rows) {
    const understood = verifyRow(rowKey, row);
    if (understood === undefined) {
      verified.delete(row.pk);
      altered.add(row.pk);
    } else {
      verified.set(row.pk, understood);
      altered.delete(row.pk);
    }
  }
}

function hasMoved(pk: string, start: TrustedHead, end: TrustedHead, { verified }: ReadRows): boolean {
  const code = end.manifest.rows.get(pk);
  return code !== start.manifest.rows.get(pk) && code !== verified.get(pk)?.code;
}

function fitsOneTransaction(pks: readonly string[]): boolean {
  const policies = pks.filter((pk) => kindOf(pk) === 'policy').length;
  return policies <= MAX_POLICIES_TOGETHER && pks.length - policies <= MAX_TOKENS_TOGETHER;
}

function rejectedRows({ verified, altered }: ReadRows, start: TrustedHead, end: TrustedHead): RejectedRow[] {
  const rejected = new Map<string, RejectedRow['why']>();
  for (const pk of altered) rejected.set(pk, 'altered');
  for (const row of verified.values()) {
    const named = [start.manifest, end.manifest].some((manifest) => manifest.rows.get(row.pk) === row.code);
    if (!named && row.revision <= start.revision) rejected.set(row.pk, 'replayed');
  }
  for (const [pk, code] of end.manifest.rows) {
    if (verified.get(pk)?.code !== code && !rejected.has(pk)) rejected.set(pk, 'missing');
  }
  return [...rejected].map(([pk, why]) => ({ pk, kind: kindOf(pk) ?? 'token', why }));
}
