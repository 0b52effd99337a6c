// The contract of damaged rows on SQLite: with a master key, and with checksums, which this writer does not make again.

import { describe, expect } from 'vitest';
import { damageContract } from '../../contract/damage.ts';
import { ownDatabase } from './own-database.ts';

const KEYS = [
  ['checksums', undefined],
  ['a master key', new Uint8Array(32).fill(9)],
] as const;

describe.each(KEYS)('%s', (kind, integrityKey) => {
  const { open, tamper, query } = ownDatabase();
  damageContract(`sqlite with ${kind}`, {
    open: () => open(integrityKey),
    tamper: async (statements) => tamper(statements),
    query: async (statement) => query(statement),
    manySigners: false,
    words: { seals: 'seal', zeroed_seal: 'zeroblob(length(seal))' },
    looksAtNewest: false,
    refusal: { message: expect.stringMatching(/metadata/) },
  });
});
