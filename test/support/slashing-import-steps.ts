// Imports a file into a SQLite store and kills itself, hard, when so many steps are done; else it prints how many there
// were. Arguments: the store, after how many steps. What it imports is `IMPORTED`.

import { rowIntegrity } from '../../signer/slashing/history/codes.ts';
import type { ValidatorHistory } from '../../signer/slashing/types.ts';
import { history, MAIN_ROOT } from './slashing.ts';
import { storeInProcess } from './slashing-in-process.ts';

const FIRST_SLOT = 101;
const FIRST_EPOCH = 50;
const ENTRIES = 600;
/** Of each key; key 1 has a later block. */
export const LAST_SLOT = FIRST_SLOT + ENTRIES - 1;

/**
 * Keys 1 to 3 have records before; 4 and 5 are new; key 1 comes in two parts, key 5 has nothing to say. Each key has
 * more entries than are written at once.
 */
export const IMPORTED: readonly ValidatorHistory[] = [
  ...[1, 2, 3, 4].map((key) =>
    history(
      key,
      Array.from({ length: ENTRIES }, (_, index) => [FIRST_SLOT + index, 'f']),
      Array.from({ length: ENTRIES }, (_, index) => [FIRST_EPOCH + index, FIRST_EPOCH + index + 1, 'f']),
    ),
  ),
  history(1, [[LAST_SLOT + 100, 'f']], [[FIRST_EPOCH + ENTRIES, FIRST_EPOCH + ENTRIES + 1, 'f']]),
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
  const imports = storeInProcess(options, step);
  for (const one of IMPORTED) {
    imports.stage(1, one);
    step();
  }
  await imports.merge(1);
  step();
  process.stdout.write(`${steps}\n`);
}
