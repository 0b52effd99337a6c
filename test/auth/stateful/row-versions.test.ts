// Rows of the state table of other versions: what they mean, and that all of them fit.

import { describe, expect, it } from 'vitest';
import { OPERATIONS, type Operation } from '../../../signer/api/operations.ts';
import type { Rule } from '../../../signer/api/policy.ts';
import { evaluate } from '../../../signer/auth/evaluate.ts';
import {
  makeHead,
  makeRow,
  newCommit,
  openHead,
  parsePolicyText,
  policyFields,
} from '../../../signer/auth/stateful/rows.ts';
import { policyRecord, verifyRow } from '../../../signer/auth/stateful/snapshot.ts';
import { MAX_MANIFEST_BYTES, MAX_POLICIES, MAX_TOKENS } from '../../../signer/auth/stateful/state.ts';
import { START, testKeys } from '../../support/stateful-auth.ts';
import { ALLOW_ALL } from './table-history.ts';

describe('rows of other versions', () => {
  // Written by the version before rules knew of payments, with the row key of these tests.
  const CONTENT =
    '{"version":1,"commit":"AAAAAAAAAAAAAAAA","created_at":"2026-01-01T00:00:00.000Z","updated_at":"2026-01-01T00:00:00.000Z",' +
    `"rules":[{"effect":"allow","scopes":["sign","public_keys"],"keys":["0x${'ab'.repeat(48)}"]},` +
    '{"effect":"deny","operations":["VOLUNTARY_EXIT"]}]}';
  const MAC = Buffer.from('99c2a1848e1a1f22b3ca5ece56f6afc888637cd4ebb061a39ac0899f3bd154fe', 'hex');
  const COMMIT = { revision: 7, id: 'AAAAAAAAAAAAAAAA' };
  const AT = { createdAt: new Date(START).toISOString(), updatedAt: new Date(START).toISOString() };
  const KEY = `0x${'ab'.repeat(48)}`;

  it('an earlier row verifies and means the same', () => {
    const row = verifyRow(testKeys().rows, { pk: 'POLICY#validator-client', revision: 7, content: CONTENT, mac: MAC });
    if (row?.row !== 'policy') throw new Error('the row is not believed');
    const may = (operation: Operation, publicKey = KEY) => {
      const payment = { feeRecipient: `0x${'aa'.repeat(20)}`, gasLimit: 2n ** 64n - 1n };
      return evaluate(row.access, { scope: 'sign', publicKey, operation, payment }).allowed;
    };
    expect(OPERATIONS.filter((operation) => may(operation))).toEqual(
      OPERATIONS.filter((operation) => operation !== 'VOLUNTARY_EXIT'),
    );
    expect(OPERATIONS.filter((operation) => may(operation, `0x${'cd'.repeat(48)}`))).toEqual([]);
    expect(policyRecord(row).rules).toEqual([
      { effect: 'allow', scopes: ['sign', 'public_keys'], keys: [KEY] },
      { effect: 'deny', operations: ['VOLUNTARY_EXIT'] },
    ]);
  });

  it('rules that say nothing of payments are written byte for byte as before', () => {
    const earlier = parsePolicyText(CONTENT);
    if (earlier === undefined) throw new Error('the content is not understood');
    const row = makeRow(testKeys().rows, 'POLICY#validator-client', COMMIT, policyFields(earlier));
    expect(row).toEqual({ pk: 'POLICY#validator-client', revision: 7, content: CONTENT, mac: MAC });
  });

  it('fee recipients and gas limits are stored and read again', () => {
    const rules: Rule[] = [{ effect: 'allow', fee_recipients: [`0x${'aa'.repeat(20)}`], max_gas_limit: 60_000_000 }];
    const row = makeRow(testKeys().rows, 'POLICY#p', COMMIT, policyFields({ ...AT, rules }));
    expect(verifyRow(testKeys().rows, row)).toMatchObject({ name: 'p', rules });
  });

  it('a rule with a member of a later version makes its row missing: it is never read without the member', () => {
    const { created_at, updated_at } = ALLOW_ALL;
    const fields = { created_at, updated_at, rules: [{ effect: 'allow', scopes: ['sign'], max_blobs: 6 }] };
    expect(verifyRow(testKeys().rows, makeRow(testKeys().rows, 'POLICY#p', COMMIT, fields))).toBeUndefined();
  });
});

it('the manifest of as many rows as there may be, with the longest names, fits one item', () => {
  const code = 'A'.repeat(22);
  const tokens = Array.from({ length: MAX_TOKENS }, (_, index) => [
    `TOKEN#acc_${String(index).padStart(32, '0')}`,
    code,
  ]);
  const policies = Array.from({ length: MAX_POLICIES }, (_, index) => [
    `POLICY#${String(index).padStart(64, 'p')}`,
    code,
  ]);
  const rows = new Map([...tokens, ...policies] as [string, string][]);
  const head = makeHead(testKeys().rows, newCommit(Number.MAX_SAFE_INTEGER), { root: null, rows });
  expect(Buffer.byteLength(head.manifest)).toBeLessThan(MAX_MANIFEST_BYTES);
  expect(openHead(testKeys().rows, head)?.rows).toEqual(rows);
});
