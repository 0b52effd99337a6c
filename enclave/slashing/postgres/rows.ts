// The rows of the PostgreSQL schema as values, and their integrity codes. Whatever is read for a decision passes
// through here: a row that fails its code, or a set of rows that is not what the row of its key says, is `undefined`.

import type { LowWaterMarks } from '../history/carried-entries.ts';
import type { IntegrityField, RowIntegrity } from '../history/integrity.ts';
import type { HighWaterMarks } from '../types.ts';

/** What the row of a key says, and its code covers. */
export interface ValidatorState {
  readonly highest: HighWaterMarks;
  readonly lowWater: LowWaterMarks;
  /** How many entries the history of the key has. */
  readonly blocks: number;
  readonly attestations: number;
}

export interface BlockEntry {
  readonly slot: number;
  readonly signingRoot: Uint8Array | null;
}

export interface AttestationEntry {
  readonly sourceEpoch: number;
  readonly targetEpoch: number;
  readonly signingRoot: Uint8Array | null;
}

/** As selected by VALIDATOR_COLUMNS. */
export interface ValidatorRow {
  readonly id: number;
  readonly public_key: Buffer;
  readonly highest_slot: number | null;
  readonly highest_source_epoch: number | null;
  readonly highest_target_epoch: number | null;
  readonly low_water_slot: number | null;
  readonly low_water_source_epoch: number | null;
  readonly low_water_target_epoch: number | null;
  readonly blocks: number;
  readonly attestations: number;
  readonly code: Buffer;
}

export interface BlockRow {
  readonly slot: number;
  readonly signing_root: Buffer | null;
  readonly code: Buffer;
}

export interface AttestationRow {
  readonly source_epoch: number;
  readonly target_epoch: number;
  readonly signing_root: Buffer | null;
  readonly code: Buffer;
}

export const VALIDATOR_COLUMNS = `id, public_key, highest_slot, highest_source_epoch, highest_target_epoch,
  low_water_slot, low_water_source_epoch, low_water_target_epoch, blocks, attestations, code`;

export const NEW_VALIDATOR: ValidatorState = {
  highest: { blockSlot: null, sourceEpoch: null, targetEpoch: null },
  lowWater: { slot: null, sourceEpoch: null, targetEpoch: null },
  blocks: 0,
  attestations: 0,
};

export interface RowCodes {
  validator(publicKey: Uint8Array, state: ValidatorState): Uint8Array;
  block(publicKey: Uint8Array, entry: BlockEntry): Uint8Array;
  attestation(publicKey: Uint8Array, entry: AttestationEntry): Uint8Array;
  /** The code of the row that binds the database to a network and to the key of the codes. */
  binding(genesisValidatorsRoot: Uint8Array): Uint8Array;
  readValidator(row: ValidatorRow): ValidatorState | undefined;
  /** Undefined when any of the rows fails. */
  readBlocks(publicKey: Uint8Array, rows: readonly BlockRow[]): BlockEntry[] | undefined;
  readAttestations(publicKey: Uint8Array, rows: readonly AttestationRow[]): AttestationEntry[] | undefined;
}

export function rowCodes(integrity: RowIntegrity): RowCodes {
  const code = (domain: Domain, publicKey: Uint8Array, fields: readonly IntegrityField[]) =>
    integrity.code(domain, publicKey, fields);
  const passes = (
    row: { readonly code: Uint8Array },
    domain: Domain,
    publicKey: Uint8Array,
    fields: IntegrityField[],
  ) => fields.every(isPossible) && integrity.verify(row.code, domain, publicKey, fields);

  return {
    validator: (publicKey, state) => code('validator', publicKey, validatorFields(state)),
    block: (publicKey, entry) => code('block', publicKey, blockFields(entry)),
    attestation: (publicKey, entry) => code('attestation', publicKey, attestationFields(entry)),
    binding: (genesisValidatorsRoot) => code('binding', NO_PUBLIC_KEY, [genesisValidatorsRoot]),
    readValidator(row) {
      const state = validatorState(row);
      return passes(row, 'validator', row.public_key, validatorFields(state)) ? state : undefined;
    },
    readBlocks(publicKey, rows) {
      const entries = rows.map((row) => ({ slot: row.slot, signingRoot: row.signing_root }));
      const good = entries.every((entry, index) => {
        const row = rows[index];
        return row !== undefined && passes(row, 'block', publicKey, blockFields(entry));
      });
      return good ? entries : undefined;
    },
    readAttestations(publicKey, rows) {
      const entries = rows.map((row) => ({
        sourceEpoch: row.source_epoch,
        targetEpoch: row.target_epoch,
        signingRoot: row.signing_root,
      }));
      const good = entries.every((entry, index) => {
        const row = rows[index];
        return row !== undefined && passes(row, 'attestation', publicKey, attestationFields(entry));
      });
      return good ? entries : undefined;
    },
  };
}

/** The highest of the marks that are there. */
export function highest(marks: readonly (number | null)[]): number | null {
  return marks.reduce((high, mark) => (high === null || (mark !== null && mark > high) ? mark : high), null);
}

type Domain = 'binding' | 'validator' | 'block' | 'attestation';

const NO_PUBLIC_KEY = new Uint8Array(48);

function validatorState(row: ValidatorRow): ValidatorState {
  return {
    highest: {
      blockSlot: row.highest_slot,
      sourceEpoch: row.highest_source_epoch,
      targetEpoch: row.highest_target_epoch,
    },
    lowWater: {
      slot: row.low_water_slot,
      sourceEpoch: row.low_water_source_epoch,
      targetEpoch: row.low_water_target_epoch,
    },
    blocks: row.blocks,
    attestations: row.attestations,
  };
}

function validatorFields({ highest, lowWater, blocks, attestations }: ValidatorState): IntegrityField[] {
  const marks = [highest.blockSlot, highest.sourceEpoch, highest.targetEpoch];
  return [...marks, lowWater.slot, lowWater.sourceEpoch, lowWater.targetEpoch, blocks, attestations];
}

function blockFields(entry: BlockEntry): IntegrityField[] {
  return [entry.slot, entry.signingRoot];
}

function attestationFields(entry: AttestationEntry): IntegrityField[] {
  return [entry.sourceEpoch, entry.targetEpoch, entry.signingRoot];
}

/** A number that this program never wrote has no code; the codes assert that they are not asked for one. */
function isPossible(field: IntegrityField): boolean {
  return typeof field !== 'number' || (Number.isSafeInteger(field) && field >= 0);
}
