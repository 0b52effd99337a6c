// A signer without keys whose disk can be made full from outside: the parent lowers this process's file size limit
// (prlimit) and raises it again. For each line on stdin, `KEY SLOT ROOT`, it checks a block and prints what came of it.

import { createInterface } from 'node:readline';
import { systemClock } from '../../common/observe/clock.ts';
import { SlashingProtection } from '../../signer/slashing/protection.ts';
import { openSqliteBackend } from '../../signer/slashing/sqlite/backend.ts';
import { unrestrained } from './restrained.ts';
import { block, MAIN_ROOT, quietLog } from './slashing.ts';

const backend = await openSqliteBackend(
  { path: process.argv[2] ?? '', genesisValidatorsRoot: MAIN_ROOT },
  { log: quietLog },
);
const protection = new SlashingProtection(unrestrained(backend), {}, { clock: systemClock, log: quietLog });
process.stdout.write('ready\n');
for await (const line of createInterface({ input: process.stdin })) {
  const [key, slot, root] = line.split(' ');
  process.stdout.write(`${await answer(Number(key), Number(slot), String(root))}\n`);
}
await protection.close();

async function answer(key: number, slot: number, root: string): Promise<string> {
  try {
    const outcome = await protection.check(block(key, slot, root));
    return outcome.kind === 'refused' ? outcome.reason : outcome.kind;
  } catch (error) {
    return error instanceof Error && 'reason' in error ? String(error.reason) : String(error);
  }
}
