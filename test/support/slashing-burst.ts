// A signer without keys, as a process of its own: it opens the SQLite store, sends bursts of conflicting messages
// through slashing protection, and appends each message it was allowed to sign to a file, one JSON line each; a byte on
// stdout says so. Arguments: the store, that file, the first slot, a name for its roots. It goes on until it is killed.

import { openSync, writeSync } from 'node:fs';
import { systemClock } from '../../common/observe/clock.ts';
import { SlashingProtection } from '../../signer/slashing/protection.ts';
import { openSqliteBackend } from '../../signer/slashing/sqlite/backend.ts';
import type { SlashableMessage } from '../../signer/slashing/types.ts';
import { unrestrained } from './restrained.ts';
import { block, MAIN_ROOT, quietLog, vote } from './slashing.ts';

const KEYS = 24;
const RIVALS = 3;

const [path = '', releasedPath = '', firstSlot = '1', name = ''] = process.argv.slice(2);
const releasedFile = openSync(releasedPath, 'a');
writeSync(releasedFile, '\n'); // ends the line that a killed one may have torn
const backend = await openSqliteBackend({ path, genesisValidatorsRoot: MAIN_ROOT }, { log: quietLog });
const protection = new SlashingProtection(unrestrained(backend), {}, { clock: systemClock, log: quietLog });

for (let slot = Number(firstSlot); ; slot += 1) {
  const burst: Promise<void>[] = [];
  for (let key = 0; key < KEYS; key += 1) {
    for (let rival = 0; rival < RIVALS; rival += 1) {
      const root = `${name} ${rival}`;
      burst.push(release(block(key, slot, root)));
      // Targets rise, and each rival has another source, so they also surround each other and earlier ones.
      burst.push(release(vote(key, Math.max(0, slot - rival * 2), slot + rival, root)));
    }
  }
  await Promise.all(burst);
}

async function release(message: SlashableMessage): Promise<void> {
  const verdict = await protection.check(message);
  if (verdict.kind !== 'safe') return;
  writeSync(
    releasedFile,
    `${JSON.stringify({ ...message, signingRoot: Buffer.from(message.signingRoot).toString('hex') })}\n`,
  );
  process.stdout.write('.');
}
