// Reads the whole history out, one key after the other, from one consistent state. Every row is checked: a history
// that was tampered with is not handed on as if it were good, and what comes out is never weaker than what is in.

import { SignerError } from '../../api/errors.ts';
import { encodeHex } from '../../api/hex.ts';
import { exportedBlocks, exportedVotes } from '../history/carried-entries.ts';
import type { PublicKeyHex, ValidatorHistory } from '../types.ts';
import type { Connection } from './connections.ts';
import { type AttestationRow, type BlockRow, type RowCodes, VALIDATOR_COLUMNS, type ValidatorRow } from './rows.ts';

/** Rows of keys read at once; their entries are read key by key. */
const PAGE_SIZE = 500;

/** With a snapshot that all statements share, and no right to write. */
const BEGIN_EXPORT = 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY';

const PAGE_OF_VALIDATORS = `
  SELECT ${VALIDATOR_COLUMNS} FROM strongroom.validators
  WHERE public_key > $1 AND ($2::bytea[] IS NULL OR public_key = ANY ($2)) ORDER BY public_key LIMIT ${PAGE_SIZE}`;

const BLOCKS = 'SELECT slot, signing_root, code FROM strongroom.blocks WHERE validator_id = $1 ORDER BY slot';

const ATTESTATIONS = `
  SELECT source_epoch, target_epoch, signing_root, code FROM strongroom.attestations
  WHERE validator_id = $1 ORDER BY target_epoch, source_epoch`;

/** Keys without entries are left out. Throws `slashing_integrity` at the first key whose record fails. */
export async function* exportKeys(
  connection: Connection,
  codes: RowCodes,
  publicKeys: readonly PublicKeyHex[] | undefined,
): AsyncGenerator<ValidatorHistory> {
  const wanted = publicKeys?.map((publicKey) => Buffer.from(publicKey.slice(2), 'hex')) ?? null;
  await connection.query(BEGIN_EXPORT);
  let last: Buffer = Buffer.alloc(0);
  for (;;) {
    const page = await connection.query<ValidatorRow>(PAGE_OF_VALIDATORS, [last, wanted]);
    for (const validator of page.rows) {
      const history = await readHistory(connection, codes, validator);
      if (history.blocks.length > 0 || history.attestations.length > 0) yield history;
      last = validator.public_key;
    }
    if (page.rows.length < PAGE_SIZE) break;
  }
  await connection.query('ROLLBACK');
}

async function readHistory(
  connection: Connection,
  codes: RowCodes,
  validator: ValidatorRow,
): Promise<ValidatorHistory> {
  const publicKey = encodeHex(validator.public_key);
  const [blockRows, attestationRows] = await Promise.all([
    connection.query<BlockRow>({ name: 'export_blocks', text: BLOCKS, values: [validator.id] }),
    connection.query<AttestationRow>({ name: 'export_attestations', text: ATTESTATIONS, values: [validator.id] }),
  ]);
  const state = codes.readValidator(validator);
  const blocks = codes.readBlocks(validator.public_key, blockRows.rows);
  const attestations = codes.readAttestations(validator.public_key, attestationRows.rows);
  if (state === undefined || blocks?.length !== state.blocks || attestations?.length !== state.attestations) {
    throw new SignerError('slashing_integrity', { detail: { public_key: publicKey } });
  }
  return {
    publicKey,
    blocks: exportedBlocks(blocks, state.lowWater),
    attestations: exportedVotes(attestations, state.lowWater, state.highest),
  };
}
