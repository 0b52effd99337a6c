// Opens the SQLite store that its argument names, as a process of its own, for namespaces that a test makes for it:
// prints `open`, or why not.

import { openSqliteBackend } from '../../signer/slashing/sqlite/backend.ts';
import { MAIN_ROOT, quietLog } from './slashing.ts';

const path = process.argv[2] ?? '';
try {
  const backend = await openSqliteBackend({ path, genesisValidatorsRoot: MAIN_ROOT }, { log: quietLog });
  await backend.close();
  process.stdout.write('open\n');
} catch (error) {
  process.stdout.write(`${error instanceof Error ? error.message : String(error)}\n`);
}
