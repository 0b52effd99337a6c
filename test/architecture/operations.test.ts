// What a new signing operation has to bring. A root that only our own code computes is not known to be right, and a
// signature over a wrong one costs money: each operation has its row of the specification, a vector of others, a root
// that the conformance kit computes without the signer's code, a case of that kit, and a word on which fork it is of.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { OPERATION_ENTRIES, OPERATIONS, type Operation } from '../../signer/api/operations.ts';
import type { OperationRow } from '../../signer/operations/row.ts';
import { ROWS } from '../../signer/operations/rows.ts';
import { vectorPath } from '../support/vectors.ts';

const ROOT = join(import.meta.dirname, '../..');
const textOf = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const specification = textOf('docs/specification/signing.md');
const expectedRoots = textOf('test/expected/expected-root.ts');
const KIT = ['test/expected/messages.ts', 'lab/conformance/vector-cases.ts'];
const hasKit = KIT.every((path) => existsSync(join(ROOT, path)));
const folders = ['signing', 'gloas'].map((folder) => vectorPath(folder));
const vectors = folders.flatMap((folder) =>
  folder === undefined ? [] : readdirSync(folder).map((name) => readFileSync(join(folder, name), 'utf8')),
);

/**
 * Which fork an operation is of, a second time and on purpose: with a wrong word the signer signs what no node accepts,
 * or too much.
 */
const FORKS: Readonly<Record<Operation, OperationRow['fork']>> = {
  AGGREGATION_SLOT: 'any',
  AGGREGATE_AND_PROOF: 'phase0', // its container changed with Electra and Gloas
  ATTESTATION: 'any',
  BLOCK_V2: 'any',
  BUILDER_REQUEST_AUTH: 'genesis',
  EXECUTION_PAYLOAD_BID: 'gloas',
  EXECUTION_PAYLOAD_ENVELOPE: 'gloas',
  PAYLOAD_ATTESTATION_MESSAGE: 'gloas',
  PROPOSER_PREFERENCES: 'gloas',
  RANDAO_REVEAL: 'any',
  SYNC_COMMITTEE_CONTRIBUTION_AND_PROOF: 'any',
  SYNC_COMMITTEE_MESSAGE: 'any',
  SYNC_COMMITTEE_SELECTION_PROOF: 'any',
  VALIDATOR_REGISTRATION: 'genesis',
  VOLUNTARY_EXIT: 'capella',
};
/** A column that could be forgotten: without it nothing would stop a second content. */
const SLASHABLE: readonly Operation[] = ['ATTESTATION', 'BLOCK_V2'];
const SIGNED_ONCE: readonly Operation[] = [
  'EXECUTION_PAYLOAD_BID',
  'EXECUTION_PAYLOAD_ENVELOPE',
  'PAYLOAD_ATTESTATION_MESSAGE',
];

describe.each(OPERATIONS)('%s', (operation) => {
  it('has its row of the specification', () => {
    expect(specification).toMatch(new RegExp(`^\\| ${operation}(?:,| \\|)`, 'm'));
  });

  it.skipIf(vectors.length === 0)('has a vector of others', () => {
    expect(vectors.filter((text) => text.includes(`"${operation}"`))).not.toEqual([]);
  });

  it('has a root that is computed without the signer', () => {
    expect(expectedRoots).toMatch(new RegExp(`^  ${operation}: \\{`, 'm'));
  });

  it.skipIf(!hasKit)('has a case of the conformance kit', () => {
    expect(KIT.map(textOf).join('')).toContain(`'${operation}'`);
  });

  const row: OperationRow = ROWS[operation];
  const entry: { readonly states: readonly string[]; readonly conditions?: readonly string[] } =
    OPERATION_ENTRIES[operation];

  it('is of its fork, and says where on the chain it is when the fork depends on that', () => {
    expect(row.fork).toBe(FORKS[operation]);
    if (!['genesis', 'capella'].includes(row.fork)) expect(row.place).toBeDefined();
    expect(row.place !== undefined).toBe(entry.states.length > 0);
  });

  it('has the domain that the specification gives', () => {
    const domain = `0x${row.domain.toString(16).padStart(8, '0')}`;
    const line = specification.split('\n').find((one) => new RegExp(`^\\| ${operation}(?:,| \\|)`).test(one));
    expect(line?.toLowerCase()).toContain(`| ${domain} |`);
  });

  it('is protected, and is healed only if nothing protects it', () => {
    expect(row.slashable !== undefined).toBe(SLASHABLE.includes(operation));
    expect(row.claim !== undefined).toBe(SIGNED_ONCE.includes(operation));
    const isBound = row.slashable !== undefined || row.claim !== undefined || ['genesis', 'capella'].includes(row.fork);
    if (isBound) expect(row.isHealable).toBeUndefined();
  });

  it('says of a payment and of a block what rules may ask', () => {
    expect(row.payment !== undefined).toBe(entry.conditions !== undefined);
    expect(row.block !== undefined).toBe(entry.conditions?.includes('only_for_own_blocks') === true);
  });
});
