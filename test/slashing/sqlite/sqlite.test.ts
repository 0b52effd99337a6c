// The contract of slashing backends on SQLite.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openSqliteBackend } from '../../../signer/slashing/sqlite/backend.ts';
import { slashingContract } from '../../contract/slashing.ts';
import { someOf } from '../../support/scale.ts';
import { quietLog } from '../../support/slashing.ts';

/** At the small size those of a signer with custody; damage.test.ts and import.test.ts have the others. */
const KEYS = [
  ['codes keyed from a master key', new Uint8Array(32).fill(7)],
  ['checksums', undefined],
] as const;

for (const [kind, integrityKey] of someOf(KEYS, 1)) {
  slashingContract(`sqlite with ${kind}`, {
    complete: true,
    manySigners: false,
    createStore: async () => {
      const folder = mkdtempSync(join(tmpdir(), 'slashing-sqlite-'));
      const path = join(folder, 'slashing_protection.sqlite');
      return {
        open: (genesisValidatorsRoot) =>
          openSqliteBackend({ path, genesisValidatorsRoot, integrityKey }, { log: quietLog }),
        remove: async () => rmSync(folder, { recursive: true }),
      };
    },
  });
}
