// Check and record one batch in one transaction, of two round trips when nobody else holds its keys.
// The rows of the batch's keys are locked first, in the order of the keys, and only later statements read the history:
// under READ COMMITTED a statement sees what was committed before it began, so a history read together with the lock
// would be older than the lock, and two signers could both find a vote safe. Every row that a verdict rests on is
// checked by its integrity code here; a key whose record fails, or that is held for long, is answered by itself and does
// not touch the others.

import { strict as assert } from 'node:assert';
import { type Decision, decideAttestation, decideBlock, isBeyondHistory, isRolledBack } from '../history/rules.ts';
import type { AttestationVote, BlockProposal, HighWaterMarks, SlashableMessage, Verdict } from '../types.ts';
import { type Connection, commit } from './connections.ts';
import { execute, recordStatements, type SafeMessage, stateAfter } from './record.ts';
import {
  type AttestationRow,
  type BlockRow,
  NEW_VALIDATOR,
  type RowCodes,
  VALIDATOR_COLUMNS,
  type ValidatorRow,
  type ValidatorState,
} from './rows.ts';

/** Whatever the database or the role is set to: a commit of ours is on disk when it is answered. */
const BEGIN = 'BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL synchronous_commit = on';

const SELECT_VALIDATORS = `
  SELECT ${VALIDATOR_COLUMNS} FROM strongroom.validators WHERE public_key = ANY ($1::bytea[]) ORDER BY public_key`;

interface LockStatement {
  readonly name: string;
  readonly text: string;
}
/** What nobody holds, without waiting. */
const LOCK_FREE: LockStatement = { name: 'lock_free', text: `${SELECT_VALIDATORS} FOR UPDATE SKIP LOCKED` };
/** Everything, after others are done with it; fails after the lock timeout. */
const LOCK_ALL: LockStatement = { name: 'lock_all', text: `${SELECT_VALIDATORS} FOR UPDATE` };

/** Held by an import from its first locked row to its commit. "strongim" in ASCII, as in migrate.ts. */
export const IMPORT_LOCK = 0x7374_726f_6e67_696dn;
const LOOK_AROUND = `
  SELECT count(*)::int AS known, pg_try_advisory_xact_lock_shared($2) AS "noImport"
  FROM strongroom.validators WHERE public_key = ANY ($1::bytea[])`;
/** lock_not_available: the lock timeout has passed. */
const LOCK_TIMEOUT = '55P03';

// For each message its entry, and whatever is at the highest mark of its key or beyond. At the mark there must be an
// entry, beyond it none: so lost and brought-back rows are noticed where messages normally go.
const READ_BLOCKS = `
  SELECT m.position, b.slot, b.signing_root, b.code
  FROM unnest($1::bytea[], $2::bigint[]) WITH ORDINALITY AS m (public_key, slot, position)
  JOIN strongroom.validators v ON v.public_key = m.public_key
  CROSS JOIN LATERAL (
    (SELECT slot, signing_root, code FROM strongroom.blocks
     WHERE validator_id = v.id AND slot = m.slot AND slot < coalesce(v.highest_slot, 0))
    UNION ALL
    (SELECT slot, signing_root, code FROM strongroom.blocks
     WHERE validator_id = v.id AND slot >= coalesce(v.highest_slot, 0) ORDER BY slot DESC LIMIT 2)
  ) b`;

const READ_ATTESTATIONS = `
  SELECT m.position, a.source_epoch, a.target_epoch, a.signing_root, a.code
  FROM unnest($1::bytea[], $2::bigint[]) WITH ORDINALITY AS m (public_key, target_epoch, position)
  JOIN strongroom.validators v ON v.public_key = m.public_key
  CROSS JOIN LATERAL (
    (SELECT source_epoch, target_epoch, signing_root, code FROM strongroom.attestations
     WHERE validator_id = v.id AND target_epoch = m.target_epoch
       AND target_epoch < coalesce(v.highest_target_epoch, 0))
    UNION ALL
    (SELECT source_epoch, target_epoch, signing_root, code FROM strongroom.attestations
     WHERE validator_id = v.id AND target_epoch >= coalesce(v.highest_target_epoch, 0)
     ORDER BY target_epoch DESC LIMIT 2)
  ) a`;

const READ_ALL_BLOCKS = 'SELECT slot, signing_root, code FROM strongroom.blocks WHERE validator_id = $1';

// A vote that the message surrounds, and one that surrounds it: either is enough to refuse.
const READ_SURROUNDING = `
  (SELECT source_epoch, target_epoch, signing_root, code FROM strongroom.attestations
   WHERE validator_id = $1 AND target_epoch < $3 AND source_epoch > $2 ORDER BY target_epoch DESC LIMIT 1)
  UNION ALL
  (SELECT source_epoch, target_epoch, signing_root, code FROM strongroom.attestations
   WHERE validator_id = $1 AND target_epoch > $3 AND source_epoch < $2 ORDER BY target_epoch LIMIT 1)`;

const READ_ALL_ATTESTATIONS = `
  SELECT source_epoch, target_epoch, signing_root, code FROM strongroom.attestations WHERE validator_id = $1`;

/** Keys without a row get one first, outside the batch: a row that is added later could not be locked in order. */
const ADD_VALIDATORS = `
  INSERT INTO strongroom.validators (public_key, code)
  SELECT * FROM unnest($1::bytea[], $2::bytea[]) AS new (public_key, code) ORDER BY public_key
  ON CONFLICT (public_key) DO NOTHING`;

const DAMAGED: Verdict = { kind: 'unavailable', reason: 'slashing_integrity' };
const HELD: Verdict = { kind: 'unavailable', reason: 'slashing_unavailable' };
const ROLLED_BACK: Verdict = { kind: 'unavailable', reason: 'slashing_rollback' };

/** A message with what was read of its key: the rows at its slot or target and at the highest mark. */
interface Case<Message, Row> {
  readonly message: Message;
  readonly validator: ValidatorRow;
  readonly state: ValidatorState;
  readonly rows: readonly Row[];
}

/** The verdicts in the order of the messages; on rejection the connection must be closed. */
export async function checkBatch(
  connection: Connection,
  codes: RowCodes,
  messages: readonly SlashableMessage[],
  floors: readonly HighWaterMarks[],
): Promise<Verdict[]> {
  const read = await lockAndRead(connection, codes, messages);
  const safe: SafeMessage[] = [];
  const verdicts = messages.map(async (message, index): Promise<Verdict> => {
    const validator = read.validators.get(message.publicKey);
    const floor = floors[index];
    assert(floor !== undefined);
    if (validator === undefined) return HELD;
    const state = codes.readValidator(validator);
    if (state === undefined) return DAMAGED;
    if (isRolledBack(state.highest, floor)) return ROLLED_BACK;
    const decision =
      message.kind === 'block'
        ? await judgeBlock(connection, codes, { message, validator, state, rows: read.blocks.get(index) ?? [] })
        : await judgeVote(connection, codes, { message, validator, state, rows: read.attestations.get(index) ?? [] });
    if (decision === undefined) return DAMAGED;
    if (decision.kind === 'safe' && !decision.repeat) {
      safe.push({ message, validator, state: stateAfter(state, message) });
    }
    return decision;
  });
  const answers = await Promise.all(verdicts);
  const statements = recordStatements(codes, safe);
  await Promise.all([...statements.map((statement) => execute(connection, statement)), commit(connection)]);
  return answers;
}

interface BatchRows {
  readonly validators: ReadonlyMap<string, ValidatorRow>;
  /** By the place of the message in the batch. */
  readonly blocks: ReadonlyMap<number, BlockRow[]>;
  readonly attestations: ReadonlyMap<number, AttestationRow[]>;
}

/**
 * The rows of the keys that could be locked. Usually all are free, or about to be. An import holds its keys until it is
 * done: neither it, nor whoever holds a key for longer than the lock timeout, is waited for; such keys have no rows here.
 */
async function lockAndRead(
  connection: Connection,
  codes: RowCodes,
  messages: readonly SlashableMessage[],
): Promise<BatchRows> {
  const isWhole = ({ validators }: BatchRows) => validators.size === messages.length;
  const free = await readBatch(connection, messages, LOCK_FREE);
  if (isWhole(free)) return free;
  await connection.query('ROLLBACK');
  const publicKeys = messages.map(({ publicKey }) => publicKey);
  const around = await connection.query<{ known: number; noImport: boolean }>(LOOK_AROUND, [
    publicKeys.map(bytesOf),
    IMPORT_LOCK,
  ]);
  if (around.rows[0]?.known !== messages.length) await addValidators(connection, codes, publicKeys);
  if (around.rows[0]?.noImport === true) {
    const all = await readBatch(connection, messages, LOCK_ALL).catch(undefinedAfterLockTimeout);
    if (all !== undefined && !isWhole(all)) throw new Error('a validator row that was added is not there');
    if (all !== undefined) return all;
    await connection.query('ROLLBACK');
  }
  return readBatch(connection, messages, LOCK_FREE);
}

function undefinedAfterLockTimeout(error: unknown): undefined {
  if (error instanceof Error && 'code' in error && error.code === LOCK_TIMEOUT) return undefined;
  throw error;
}

/** Lock and read, sent at once and executed in order. */
async function readBatch(
  connection: Connection,
  messages: readonly SlashableMessage[],
  lock: LockStatement,
): Promise<BatchRows> {
  const publicKeys = messages.map(({ publicKey }) => bytesOf(publicKey));
  const blocks = [...messages.entries()].filter(([, { kind }]) => kind === 'block');
  const votes = [...messages.entries()].filter(([, { kind }]) => kind === 'attestation');
  const [, locked, blockRows, attestationRows] = await Promise.all([
    connection.query(BEGIN),
    connection.query<ValidatorRow>({ ...lock, values: [publicKeys] }),
    readEntries<BlockRow>(connection, 'read_blocks', READ_BLOCKS, blocks),
    readEntries<AttestationRow>(connection, 'read_attestations', READ_ATTESTATIONS, votes),
  ]);
  assert.equal(new Set(messages.map(({ publicKey }) => publicKey)).size, messages.length, 'a key is in a batch once');
  const validators = new Map(locked.rows.map((row) => [`0x${row.public_key.toString('hex')}`, row]));
  return { validators, blocks: blockRows, attestations: attestationRows };
}

/** Make sure that each key has a row. */
export async function addValidators(
  connection: Connection,
  codes: RowCodes,
  publicKeys: readonly string[],
): Promise<void> {
  const keys = publicKeys.map(bytesOf);
  const rowCodes = keys.map((key) => codes.validator(key, NEW_VALIDATOR));
  await connection.query({ name: 'add_validators', text: ADD_VALIDATORS, values: [keys, rowCodes] });
}

async function readEntries<Row extends object>(
  connection: Connection,
  name: string,
  text: string,
  messages: readonly (readonly [index: number, message: SlashableMessage])[],
): Promise<Map<number, Row[]>> {
  const found = new Map<number, Row[]>();
  if (messages.length === 0) return found;
  const publicKeys = messages.map(([, { publicKey }]) => bytesOf(publicKey));
  const places = messages.map(([, message]) => (message.kind === 'block' ? message.slot : message.targetEpoch));
  const { rows } = await connection.query<Row & { position: number }>({ name, text, values: [publicKeys, places] });
  for (const row of rows) {
    const [index] = messages[row.position - 1] ?? [];
    assert(index !== undefined);
    const others = found.get(index);
    if (others === undefined) found.set(index, [row]);
    else others.push(row);
  }
  return found;
}

/** Undefined when the record of the key is damaged. */
async function judgeBlock(
  connection: Connection,
  codes: RowCodes,
  { message, validator, state, rows }: Case<BlockProposal, BlockRow>,
): Promise<Decision | undefined> {
  const entries = codes.readBlocks(validator.public_key, rows);
  const highest = state.highest.blockSlot;
  if (
    entries === undefined ||
    !reaches(
      highest,
      entries.map(({ slot }) => slot),
    )
  )
    return undefined;
  const entry = entries.find(({ slot }) => slot === message.slot) ?? null;
  const decision = decideBlock(message, { entry, lowWaterSlot: state.lowWater.slot });
  if (entry !== null || decision.kind === 'refused' || isBeyondHistory(message, state.highest)) return decision;
  // Safe because the slot is free, says the absence of a row: the history must be whole.
  const all = await connection.query<BlockRow>({ name: 'all_blocks', text: READ_ALL_BLOCKS, values: [validator.id] });
  const history = codes.readBlocks(validator.public_key, all.rows);
  return history?.length === state.blocks ? decision : undefined;
}

/** Undefined when the record of the key is damaged. */
async function judgeVote(
  connection: Connection,
  codes: RowCodes,
  { message, validator, state, rows }: Case<AttestationVote, AttestationRow>,
): Promise<Decision | undefined> {
  const entries = codes.readAttestations(validator.public_key, rows);
  const highest = state.highest.targetEpoch;
  if (
    entries === undefined ||
    !reaches(
      highest,
      entries.map(({ targetEpoch }) => targetEpoch),
    )
  )
    return undefined;
  const marks = { lowWaterSourceEpoch: state.lowWater.sourceEpoch, lowWaterTargetEpoch: state.lowWater.targetEpoch };
  const [entry, another] = entries.filter(({ targetEpoch }) => targetEpoch === message.targetEpoch);
  if (entry !== undefined || isBeyondHistory(message, state.highest)) {
    const only = entry === undefined ? null : another === undefined ? entry : { ...entry, signingRoot: null };
    return decideAttestation(message, { entry: only, surroundsAnEntry: false, isSurroundedByAnEntry: false, ...marks });
  }
  // Rare: an older vote. One row is enough to refuse it; that no row stands against it is known of a whole history only.
  const { sourceEpoch, targetEpoch } = message;
  const some = await connection.query<AttestationRow>({
    name: 'surrounding_attestations',
    text: READ_SURROUNDING,
    values: [validator.id, sourceEpoch, targetEpoch],
  });
  const against = codes.readAttestations(validator.public_key, some.rows);
  if (against === undefined) return undefined;
  const decision = decideAttestation(message, {
    entry: null,
    surroundsAnEntry: against.some((past) => past.targetEpoch < targetEpoch),
    isSurroundedByAnEntry: against.some((past) => targetEpoch < past.targetEpoch),
    ...marks,
  });
  if (decision.kind === 'refused') return decision;
  const values = [validator.id];
  const all = await connection.query<AttestationRow>({ name: 'all_attestations', text: READ_ALL_ATTESTATIONS, values });
  const history = codes.readAttestations(validator.public_key, all.rows);
  return history?.length === state.attestations ? decision : undefined;
}

/** Whether the entries reach the highest mark, and not beyond. */
function reaches(mark: number | null, places: readonly number[]): boolean {
  return mark === null ? places.length === 0 : places.includes(mark) && places.every((place) => place <= mark);
}

function bytesOf(publicKey: string): Buffer {
  return Buffer.from(publicKey.slice(2), 'hex');
}
