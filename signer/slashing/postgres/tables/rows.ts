// The rows of a key: read as values, where a head or an entry that fails its code is `undefined`, and written with
// their codes. The caller of what writes holds the locks and commits.

import { timingSafeEqual } from 'node:crypto';
import type { Turns } from '../../../parallel.ts';
import {
  BLOCKS,
  type Coded,
  type EntryCodes,
  type EntryKind,
  entrySum,
  type HistoryCodes,
  headNumbers,
  isPossible,
  VOTES,
} from '../../history/codes.ts';
import type { KeyState } from '../../history/head.ts';
import { isForgotten } from '../../history/prune.ts';
import type { Head } from '../../operations/store.ts';
import type { BlockEntry, VoteEntry } from '../../types.ts';
import { type Connection, prepared } from '../connection/connections.ts';

/** In the order of `headNumbers`. */
const HEAD_NUMBERS = [
  'highest_slot',
  'highest_source_epoch',
  'highest_target_epoch',
  'low_water_slot',
  'low_water_source_epoch',
  'low_water_target_epoch',
  'pruned_below_slot',
  'pruned_below_target_epoch',
  'tenure',
  'blocks',
  'attestations',
] as const;
type HeadNumber = (typeof HEAD_NUMBERS)[number];

export interface HeadRow extends Readonly<Record<HeadNumber, number | null>> {
  readonly id: number;
  readonly public_key: Buffer;
  readonly digests: Buffer;
  readonly code: Buffer;
}

/** With the columns of the place. */
export type EntryRow = Readonly<Record<string, unknown>> & {
  readonly signing_root: Buffer | null;
  readonly code: Buffer;
};

export const SELECT_HEADS = `
  SELECT id, public_key, ${HEAD_NUMBERS.join(', ')}, digests, code
  FROM strongroom.validators WHERE public_key = ANY ($1::bytea[]) ORDER BY public_key`;

export function openHeadRow(codes: HistoryCodes, row: HeadRow): KeyState | undefined {
  const numbers = HEAD_NUMBERS.map((name) => row[name]);
  return codes.openHead(row.public_key, numbers, row);
}

/** Verifying so many rows takes a few milliseconds. */
const PAGE_ROWS = 1_000;

export const blockTable = entryTable(BLOCKS);
export const voteTable = entryTable(VOTES);

export interface NewEntry<Entry> {
  readonly id: HeadRow['id'];
  readonly entry: Entry & Pick<EntryCodes, 'code'>;
}

/** What reads is undefined when any entry fails its code, or is one that was forgotten. */
function entryTable<Entry extends BlockEntry | VoteEntry>(kind: EntryKind<Entry>) {
  const { name, columns, placeOf } = kind;
  const place = columns.join(', ');
  const cells = `${place}, signing_root, code`;
  const lists = [...columns.map(() => 'bigint[]'), 'bytea[]', 'bytea[]'].map((type, at) => `$${at + 2}::${type}`);
  const isThere = ['t.validator_id = $1', ...columns.map((column) => `t.${column} = new.${column}`)].join(' AND ');
  const select = `SELECT ${cells} FROM strongroom.${name} WHERE validator_id = $1`;
  const isAfter = `(${place}) > (${columns.map((_, at) => `$${at + 2}`).join(', ')})`;
  const texts = {
    page: `${select} AND ${isAfter} ORDER BY ${place} LIMIT ${PAGE_ROWS}`,
    at: `${select} AND ${columns[0]} = $2`,
    oldest: `${select} AND ${columns[0]} < $2 ORDER BY ${place} LIMIT $3`,
    // The lowest target and the lowest source need not be of one vote.
    lowest: columns
      .map((_, at) => `(${select} AND ${isAfter} ORDER BY ${columns.slice(at).join(', ')} LIMIT 1)`)
      .join(' UNION ALL '),
    insert: `
      INSERT INTO strongroom.${name} (validator_id, ${cells})
      SELECT * FROM unnest($1::bigint[], ${lists.join(', ')})`,
    replace: `
      UPDATE strongroom.${name} t SET signing_root = new.signing_root, code = new.code
      FROM unnest(${lists.join(', ')}) AS new (${cells}) WHERE ${isThere}`,
    remove: `
      DELETE FROM strongroom.${name} t
      USING unnest(${lists.slice(0, columns.length).join(', ')}) AS new (${place}) WHERE ${isThere}`,
  };
  const placesOf = (entries: readonly Entry[]): string[] =>
    columns.map((_, at) => plainArray(entries.map((entry) => placeOf(entry)[at] ?? null)));
  const placeAfter = (last: Entry | undefined): readonly number[] =>
    last === undefined ? columns.map(() => -1) : placeOf(last);
  const cellsOf = (entries: readonly NewEntry<Entry>['entry'][]): unknown[] => [
    ...placesOf(entries),
    entries.map(({ signingRoot }) => signingRoot),
    entries.map(({ code }) => code),
  ];

  function read(
    codes: HistoryCodes,
    { publicKey, state }: Pick<Head, 'publicKey' | 'state'>,
    rows: readonly EntryRow[],
  ): Coded<Entry>[] | undefined {
    const entries = rows.map((row) =>
      kind.entryOf(row.signing_root, ...columns.map((column) => row[column] as number)),
    );
    if (!entries.every((entry) => placeOf(entry).every(isPossible))) return undefined;
    const read = entries.map((entry) => ({ ...entry, ...codes.entry(kind, publicKey, entry) }));
    const haveCodes = read.every(({ code }, index) => {
      const stored = rows[index]?.code;
      return stored?.length === code.length && timingSafeEqual(stored, code);
    });
    return haveCodes && !entries.some((entry) => isForgotten(kind, state, entry)) ? read : undefined;
  }

  const asked =
    (statement: 'page' | 'at' | 'oldest' | 'lowest') =>
    async (connection: Connection, codes: HistoryCodes, head: Head, ...values: readonly number[]) => {
      const { rows } = await prepared<EntryRow>(connection, texts[statement], [head.id, ...values]);
      return read(codes, head, rows);
    };
  const page = asked('page');
  const lowest = asked('lowest');

  return {
    read,
    at: asked('at'),
    oldest: asked('oldest'),
    lowestAfter: (connection: Connection, codes: HistoryCodes, head: Head, last: Entry | undefined) =>
      lowest(connection, codes, head, ...placeAfter(last)),

    /**
     * All of them, shown to be all: together they have the digest of the head. What came before it is known that they
     * are not must not be used otherwise.
     */
    async readAll(
      connection: Connection,
      codes: HistoryCodes,
      head: Head,
      onEntry: (entry: Entry) => void,
      turn: Turns['turn'],
    ): Promise<boolean> {
      const set = head.state[name];
      const sum = entrySum();
      let last: Entry | undefined;
      for (let read = 0; ; ) {
        const found = await page(connection, codes, head, ...placeAfter(last));
        read += found?.length ?? 0;
        if (found === undefined || read > set.count) return false;
        for (const { element } of found) sum.add(element);
        for (const entry of found) onEntry(kind.entryOf(entry.signingRoot, ...placeOf(entry)));
        await turn(found.length);
        last = found.at(-1);
        if (found.length < PAGE_ROWS) return sum.isWhole(set);
      }
    },

    insert(entries: readonly NewEntry<Entry>[]): SqlStatement {
      const values = [plainArray(entries.map(({ id }) => id)), ...cellsOf(entries.map(({ entry }) => entry))];
      return { text: texts.insert, values, rowCount: entries.length };
    },
    replace(id: HeadRow['id'], entries: readonly Coded<Entry>[]): SqlStatement {
      const values = [id, ...cellsOf(entries)];
      return { text: texts.replace, values, rowCount: entries.length };
    },
    remove(id: HeadRow['id'], entries: readonly Entry[]): SqlStatement {
      const values = [id, ...placesOf(entries)];
      return { text: texts.remove, values, rowCount: entries.length };
    },
  };
}

const OTHER_NUMBERS: readonly HeadNumber[] = ['pruned_below_slot', 'pruned_below_target_epoch', 'tenure'];
const SIGNED_NUMBERS = HEAD_NUMBERS.filter((name) => !OTHER_NUMBERS.includes(name));

/** What is wrong with its values is thrown before anything is sent. */
export interface SqlStatement {
  readonly text: string;
  readonly values: readonly unknown[];
  readonly rowCount: number;
}

export async function execute(connection: Connection, { text, values, rowCount }: SqlStatement): Promise<void> {
  if ((await prepared(connection, text, values)).rowCount !== rowCount) throw unchanged(text);
}

export async function executeAndLocate(
  connection: Connection,
  { text, values, rowCount }: SqlStatement,
  walPosition: string,
): Promise<number | null> {
  const located = `
    WITH changed AS (${text} RETURNING 1)
    SELECT count(*) AS changed, (${walPosition})::bigint AS position FROM changed`;
  const { rows } = await prepared<{ changed: number; position: number | null }>(connection, located, values);
  if (rows[0]?.changed !== rowCount) throw unchanged(text);
  return rows[0].position;
}

function unchanged(text: string): Error {
  return new Error(`a statement did not change the rows that it should: ${text}`);
}

interface ChangedHead {
  readonly head: Pick<Head, 'id' | 'publicKey'>;
  readonly state: KeyState;
}

export const updateHeads = headStatement(HEAD_NUMBERS);
export const signHeads = headStatement(SIGNED_NUMBERS);

/** $1 are the numbers of the heads, $2 and $3 their digests and codes, then come the columns. */
function headStatement(names: readonly HeadNumber[]) {
  const text = `
    UPDATE strongroom.validators AS v
    SET digests = new.digests, code = new.code, ${names.map((name) => `${name} = new.${name}`).join(', ')}
    FROM unnest($1::bigint[], $2::bytea[], $3::bytea[],
                ${names.map((_, index) => `$${index + 4}::bigint[]`).join(', ')})
      AS new (id, digests, code, ${names.join(', ')})
    WHERE v.id = new.id`;
  const places = names.map((number) => HEAD_NUMBERS.indexOf(number));
  return (codes: HistoryCodes, changes: readonly ChangedHead[]): SqlStatement => {
    const rows = changes.map(({ state }) => headNumbers(state));
    const headCodes = changes.map(({ head, state }) => codes.headCode(head.publicKey, state));
    const values = [
      plainArray(changes.map(({ head }) => head.id)),
      headCodes.map(({ digests }) => digests),
      headCodes.map(({ code }) => code),
      ...places.map((place) => plainArray(rows.map((numbers) => numbers[place] ?? null))),
    ];
    return { text, values, rowCount: changes.length };
  };
}

/** `pg` would quote and escape each, at a price that batches feel. */
export function plainArray(values: readonly (number | null)[]): string {
  let text = '';
  for (const value of values) text += `${text === '' ? '' : ','}${value ?? 'NULL'}`;
  return `{${text}}`;
}
