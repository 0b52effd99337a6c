// Writes what was found safe: the new entries and the new state of each key, with their codes. The caller holds the
// locks and commits.

import { raiseMarks } from '../history/rules.ts';
import type { SlashableMessage } from '../types.ts';
import type { Connection } from './connections.ts';
import type { AttestationEntry, BlockEntry, RowCodes, ValidatorRow, ValidatorState } from './rows.ts';

export interface SafeMessage {
  readonly message: SlashableMessage;
  readonly validator: ValidatorRow;
  /** Of the key, once the message is recorded. */
  readonly state: ValidatorState;
}

const INSERT_BLOCKS = `
  INSERT INTO strongroom.blocks (validator_id, slot, signing_root, code)
  SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bytea[], $4::bytea[])`;

const INSERT_ATTESTATIONS = `
  INSERT INTO strongroom.attestations (validator_id, source_epoch, target_epoch, signing_root, code)
  SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bytea[], $5::bytea[])`;

const UPDATE_VALIDATORS = `
  UPDATE strongroom.validators AS v SET
    highest_slot = new.highest_slot, highest_source_epoch = new.highest_source_epoch,
    highest_target_epoch = new.highest_target_epoch, low_water_slot = new.low_water_slot,
    low_water_source_epoch = new.low_water_source_epoch, low_water_target_epoch = new.low_water_target_epoch,
    blocks = new.blocks, attestations = new.attestations, code = new.code
  FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[],
              $8::bigint[], $9::bigint[], $10::bytea[])
    AS new (id, highest_slot, highest_source_epoch, highest_target_epoch, low_water_slot, low_water_source_epoch,
            low_water_target_epoch, blocks, attestations, code)
  WHERE v.id = new.id`;

/** The state of a key after a message that nothing in it forbids. The first message of a kind sets its low-water mark. */
export function stateAfter(state: ValidatorState, message: SlashableMessage): ValidatorState {
  const highest = raiseMarks(state.highest, message);
  const { lowWater } = state;
  if (message.kind === 'block') {
    return {
      ...state,
      highest,
      blocks: state.blocks + 1,
      lowWater: { ...lowWater, slot: lowWater.slot ?? message.slot },
    };
  }
  return {
    ...state,
    highest,
    attestations: state.attestations + 1,
    lowWater: {
      slot: lowWater.slot,
      sourceEpoch: lowWater.sourceEpoch ?? message.sourceEpoch,
      targetEpoch: lowWater.targetEpoch ?? message.targetEpoch,
    },
  };
}

/** With all its values: whatever is wrong with them is thrown before anything is sent. */
export interface Statement {
  readonly name: string;
  readonly text: string;
  readonly values: readonly unknown[];
  /** Rows that it must change. */
  readonly rowCount: number;
}

export async function execute(connection: Connection, { rowCount, values, ...statement }: Statement): Promise<void> {
  const result = await connection.query({ ...statement, values: [...values] });
  if (result.rowCount !== rowCount) throw new Error(`${statement.name} did not change the rows that it should`);
}

/** The statements that record these messages; all of them must succeed. */
export function recordStatements(codes: RowCodes, safe: readonly SafeMessage[]): Statement[] {
  const blocks: NewEntry<BlockEntry>[] = [];
  const votes: NewEntry<AttestationEntry>[] = [];
  for (const { message, validator } of safe) {
    if (message.kind === 'block') blocks.push({ validator, entry: message });
    else votes.push({ validator, entry: message });
  }
  const statements: Statement[] = [];
  if (blocks.length > 0) statements.push(insertBlocks(codes, blocks));
  if (votes.length > 0) statements.push(insertAttestations(codes, votes));
  if (safe.length > 0) statements.push(updateValidators(codes, safe));
  return statements;
}

export interface NewEntry<Entry> {
  readonly validator: ValidatorRow;
  readonly entry: Entry;
}

export function insertBlocks(codes: RowCodes, blocks: readonly NewEntry<BlockEntry>[]): Statement {
  const values = [
    blocks.map(({ validator }) => validator.id),
    blocks.map(({ entry }) => entry.slot),
    blocks.map(({ entry }) => entry.signingRoot),
    blocks.map(({ entry, validator }) => codes.block(validator.public_key, entry)),
  ];
  return { name: 'insert_blocks', text: INSERT_BLOCKS, values, rowCount: blocks.length };
}

export function insertAttestations(codes: RowCodes, votes: readonly NewEntry<AttestationEntry>[]): Statement {
  const values = [
    votes.map(({ validator }) => validator.id),
    votes.map(({ entry }) => entry.sourceEpoch),
    votes.map(({ entry }) => entry.targetEpoch),
    votes.map(({ entry }) => entry.signingRoot),
    votes.map(({ entry, validator }) => codes.attestation(validator.public_key, entry)),
  ];
  return { name: 'insert_attestations', text: INSERT_ATTESTATIONS, values, rowCount: votes.length };
}

/** Write the states of keys whose rows are locked. */
export function updateValidators(
  codes: RowCodes,
  changes: readonly { readonly validator: ValidatorRow; readonly state: ValidatorState }[],
): Statement {
  const column = <Value>(of: (state: ValidatorState) => Value) => changes.map(({ state }) => of(state));
  const values = [
    changes.map(({ validator }) => validator.id),
    column(({ highest }) => highest.blockSlot),
    column(({ highest }) => highest.sourceEpoch),
    column(({ highest }) => highest.targetEpoch),
    column(({ lowWater }) => lowWater.slot),
    column(({ lowWater }) => lowWater.sourceEpoch),
    column(({ lowWater }) => lowWater.targetEpoch),
    column(({ blocks }) => blocks),
    column(({ attestations }) => attestations),
    changes.map(({ validator, state }) => codes.validator(validator.public_key, state)),
  ];
  return { name: 'update_validators', text: UPDATE_VALIDATORS, values, rowCount: changes.length };
}
