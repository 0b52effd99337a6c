// Merges histories in one transaction: they are staged in temporary tables as they stream in, without touching what
// signers use, and then merged key by key in ascending order, the order in which batches lock, so that neither waits
// for the other in a circle. One import merges at a time, and batches can tell that one does: they answer its keys with
// 503 and do not wait for its commit. A key whose recorded history fails its codes stops the whole import.

import { SignerError } from '../../api/errors.ts';
import { encodeHex } from '../../api/hex.ts';
import { minimalMarks } from '../history/carried-entries.ts';
import type { ImportSummary, ValidatorHistory } from '../types.ts';
import { addValidators, IMPORT_LOCK } from './check.ts';
import { type Connection, commit } from './connections.ts';
import { type KeyHistory, mergeKey } from './merge.ts';
import { execute, insertAttestations, insertBlocks, updateValidators } from './record.ts';
import { type AttestationRow, type BlockRow, type RowCodes, VALIDATOR_COLUMNS, type ValidatorRow } from './rows.ts';

/** Rows in one insert at most. */
const CHUNK_SIZE = 5_000;
/** Keys that are locked in one statement. */
const PAGE_SIZE = 500;

const BEGIN = 'BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL synchronous_commit = on';

const STAGE = `
  CREATE TEMPORARY TABLE imported_keys (public_key bytea NOT NULL);
  CREATE TEMPORARY TABLE imported_blocks (public_key bytea, slot bigint, signing_root bytea);
  CREATE TEMPORARY TABLE imported_attestations
    (public_key bytea, source_epoch bigint, target_epoch bigint, signing_root bytea)`;

const INDEX_STAGE = `
  CREATE INDEX ON imported_blocks (public_key);
  CREATE INDEX ON imported_attestations (public_key);
  ANALYZE imported_keys, imported_blocks, imported_attestations`;

const STAGE_KEY = 'INSERT INTO imported_keys VALUES ($1)';

const STAGE_BLOCKS = `
  INSERT INTO imported_blocks SELECT $1, * FROM unnest($2::bigint[], $3::bytea[])`;

const STAGE_ATTESTATIONS = `
  INSERT INTO imported_attestations SELECT $1, * FROM unnest($2::bigint[], $3::bigint[], $4::bytea[])`;

const PAGE_OF_KEYS = `
  SELECT DISTINCT public_key FROM imported_keys WHERE public_key > $1 ORDER BY public_key LIMIT ${PAGE_SIZE}`;

const LOCK_PAGE = `
  SELECT ${VALIDATOR_COLUMNS} FROM strongroom.validators
  WHERE public_key = ANY ($1::bytea[]) ORDER BY public_key FOR UPDATE`;

const IMPORTED_BLOCKS = 'SELECT slot, signing_root FROM imported_blocks WHERE public_key = $1';

const IMPORTED_ATTESTATIONS = `
  SELECT source_epoch, target_epoch, signing_root FROM imported_attestations WHERE public_key = $1`;

const RECORDED_BLOCKS = 'SELECT slot, signing_root, code FROM strongroom.blocks WHERE validator_id = $1';

const RECORDED_ATTESTATIONS = `
  SELECT source_epoch, target_epoch, signing_root, code FROM strongroom.attestations WHERE validator_id = $1`;

const CONTRADICT_BLOCKS = `
  UPDATE strongroom.blocks b SET signing_root = NULL, code = new.code
  FROM unnest($2::bigint[], $3::bytea[]) AS new (slot, code) WHERE b.validator_id = $1 AND b.slot = new.slot`;

const CONTRADICT_ATTESTATIONS = `
  UPDATE strongroom.attestations a SET signing_root = NULL, code = new.code
  FROM unnest($2::bigint[], $3::bigint[], $4::bytea[]) AS new (source_epoch, target_epoch, code)
  WHERE a.validator_id = $1 AND a.target_epoch = new.target_epoch AND a.source_epoch = new.source_epoch`;

/** The connection must be closed afterwards. On rejection nothing was changed. */
export async function importKeys(
  connection: Connection,
  codes: RowCodes,
  histories: AsyncIterable<ValidatorHistory>,
  asMinimal: boolean,
): Promise<ImportSummary> {
  const summary = { validators: 0, blocks: 0, attestations: 0, alreadyPresent: 0, conflicts: 0 };
  await connection.query(STAGE);
  for await (const history of histories) {
    summary.blocks += history.blocks.length;
    summary.attestations += history.attestations.length;
    await stage(connection, history);
  }
  await connection.query(INDEX_STAGE);
  // Committed at once, as batches do it: a row that is not yet committed would hold up everybody who adds it too.
  for await (const keys of pagesOfKeys(connection)) await addValidators(connection, codes, keys.map(encodeHex));
  await connection.query(BEGIN);
  await connection.query('SELECT pg_advisory_xact_lock($1)', [IMPORT_LOCK]);
  for await (const keys of pagesOfKeys(connection)) {
    const locked = await connection.query<ValidatorRow>(LOCK_PAGE, [keys]);
    if (locked.rows.length !== keys.length) throw new Error('a validator row that was added is not there');
    for (const validator of locked.rows) {
      const { alreadyPresent, conflicts } = await mergeOne(connection, codes, validator, asMinimal);
      summary.validators += 1;
      summary.alreadyPresent += alreadyPresent;
      summary.conflicts += conflicts;
    }
  }
  await commit(connection);
  return summary;
}

async function stage(connection: Connection, history: ValidatorHistory): Promise<void> {
  const publicKey = Buffer.from(history.publicKey.slice(2), 'hex');
  await connection.query({ name: 'stage_key', text: STAGE_KEY, values: [publicKey] });
  for (const chunk of chunks(history.blocks)) {
    const values = [publicKey, chunk.map(({ slot }) => slot), chunk.map(({ signingRoot }) => signingRoot)];
    await connection.query({ name: 'stage_blocks', text: STAGE_BLOCKS, values });
  }
  for (const chunk of chunks(history.attestations)) {
    const sources = chunk.map(({ sourceEpoch }) => sourceEpoch);
    const targets = chunk.map(({ targetEpoch }) => targetEpoch);
    const values = [publicKey, sources, targets, chunk.map(({ signingRoot }) => signingRoot)];
    await connection.query({ name: 'stage_attestations', text: STAGE_ATTESTATIONS, values });
  }
}

async function* pagesOfKeys(connection: Connection): AsyncGenerator<Buffer[]> {
  let last: Buffer = Buffer.alloc(0);
  for (;;) {
    const { rows } = await connection.query<{ public_key: Buffer }>(PAGE_OF_KEYS, [last]);
    const end = rows.at(-1);
    if (end === undefined) return;
    yield rows.map(({ public_key: publicKey }) => publicKey);
    last = end.public_key;
  }
}

async function mergeOne(
  connection: Connection,
  codes: RowCodes,
  validator: ValidatorRow,
  asMinimal: boolean,
): Promise<{ readonly alreadyPresent: number; readonly conflicts: number }> {
  const { id, public_key: publicKey } = validator;
  const recorded = await readRecorded(connection, codes, validator);
  const imported = await readImported(connection, publicKey);
  const merged = mergeKey(recorded.state, recorded, imported);

  const { added, contradicted } = merged;
  for (const chunk of chunks(added.blocks)) {
    const entries = chunk.map((entry) => ({ validator, entry }));
    await execute(connection, insertBlocks(codes, entries));
  }
  for (const chunk of chunks(added.attestations)) {
    const entries = chunk.map((entry) => ({ validator, entry }));
    await execute(connection, insertAttestations(codes, entries));
  }
  for (const chunk of chunks(contradicted.blocks)) {
    const newCodes = chunk.map((entry) => codes.block(publicKey, entry));
    await connection.query(CONTRADICT_BLOCKS, [id, chunk.map(({ slot }) => slot), newCodes]);
  }
  for (const chunk of chunks(contradicted.attestations)) {
    const newCodes = chunk.map((entry) => codes.attestation(publicKey, entry));
    const sources = chunk.map(({ sourceEpoch }) => sourceEpoch);
    const targets = chunk.map(({ targetEpoch }) => targetEpoch);
    await connection.query(CONTRADICT_ATTESTATIONS, [id, sources, targets, newCodes]);
  }
  const lowWater = asMinimal ? minimalMarks(merged.state.lowWater, imported) : merged.state.lowWater;
  await execute(connection, updateValidators(codes, [{ validator, state: { ...merged.state, lowWater } }]));
  return merged;
}

async function readRecorded(connection: Connection, codes: RowCodes, validator: ValidatorRow) {
  const { id, public_key: publicKey } = validator;
  const blockRows = await connection.query<BlockRow>(RECORDED_BLOCKS, [id]);
  const attestationRows = await connection.query<AttestationRow>(RECORDED_ATTESTATIONS, [id]);
  const state = codes.readValidator(validator);
  const blocks = codes.readBlocks(publicKey, blockRows.rows);
  const attestations = codes.readAttestations(publicKey, attestationRows.rows);
  if (state === undefined || blocks?.length !== state.blocks || attestations?.length !== state.attestations) {
    throw new SignerError('slashing_integrity', { detail: { public_key: encodeHex(publicKey) } });
  }
  return { state, blocks, attestations };
}

async function readImported(connection: Connection, publicKey: Uint8Array): Promise<KeyHistory> {
  const blocks = await connection.query<Omit<BlockRow, 'code'>>(IMPORTED_BLOCKS, [publicKey]);
  const attestations = await connection.query<Omit<AttestationRow, 'code'>>(IMPORTED_ATTESTATIONS, [publicKey]);
  return {
    blocks: blocks.rows.map((row) => ({ slot: row.slot, signingRoot: row.signing_root })),
    attestations: attestations.rows.map((row) => ({
      sourceEpoch: row.source_epoch,
      targetEpoch: row.target_epoch,
      signingRoot: row.signing_root,
    })),
  };
}

function* chunks<Element>(list: readonly Element[]): Generator<readonly Element[]> {
  for (let at = 0; at < list.length; at += CHUNK_SIZE) yield list.slice(at, at + CHUNK_SIZE);
}
