// Imports a file into a SQLite store step by step and kills itself, hard, when so many steps are done; else it prints
// how many there were. Arguments: the store, after how many steps. What it imports is `IMPORTED`.

import { rowIntegrity } from '../../enclave/slashing/history/integrity.ts';
import { writeHistory } from '../../enclave/slashing/sqlite/history-text.ts';
import { importer } from '../../enclave/slashing/sqlite/operations/import.ts';
import { openDatabase } from '../../enclave/slashing/sqlite/tables/schema.ts';
import type { ValidatorHistory } from '../../enclave/slashing/types.ts';
import { history, MAIN_ROOT } from './slashing.ts';

/** Keys 1 to 3 have records before; 4 and 5 are new; key 1 comes in two parts, key 5 has nothing to say. */
export const IMPORTED: readonly ValidatorHistory[] = [
  ...[1, 2, 3, 4].map((key) =>
    history(
      key,
      [
        [500, 'f'],
        [600, 'f'],
      ],
      [
        [50, 51, 'f'],
        [60, 61, 'f'],
      ],
    ),
  ),
  history(1, [[700, 'f']], [[70, 71, 'f']]),
  history(5, [], []),
];

if (import.meta.main) {
  const [path = '', lastStep = ''] = process.argv.slice(2);
  const genesisValidatorsRoot = Buffer.from(MAIN_ROOT.slice(2), 'hex');
  const options = { path, genesisValidatorsRoot, integrity: rowIntegrity({ genesisValidatorsRoot }) };
  let steps = 0;
  const step = (): void => {
    if (steps === Number(lastStep)) process.kill(process.pid, 'SIGKILL');
    steps += 1;
  };
  const imports = importer(openDatabase(options).connection, options, 3);
  for (const one of IMPORTED) {
    imports.stage(1, [[one.publicKey, writeHistory(one)]]);
    step();
  }
  for (const _ of imports.merge(1, IMPORTED.length, 'by_key')) step();
  step();
  process.stdout.write(`${steps}\n`);
}
