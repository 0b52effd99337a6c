// What is left in memory after a seal: the whole writable memory of a real signer process is searched for the master
// key and for a validator key from a keystore, before (they have to be there, or the search proves nothing) and after.

import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { CeremonyBlock } from '../../ceremony/definition.ts';
import { type CustodyWorld, startCustody } from '../../rehearsal/custody.ts';
import { startSigner } from '../../rehearsal/signer.ts';
import { makeKeyDirectory, testSecret, writeKeystore } from '../support/keys.ts';
import { scanProcess } from '../support/memory-scan.ts';
import { call } from '../support/requests.ts';
import { bootReplica } from './replicas.ts';

let world: CustodyWorld;
let keys: ReturnType<typeof makeKeyDirectory>;

beforeEach(async () => {
  world = await startCustody();
  keys = makeKeyDirectory();
});
afterEach(async () => {
  keys.remove();
  await world.close();
});

describe.runIf(process.platform === 'linux')('after a seal', () => {
  it.each([
    ['initialised the table', false],
    ['unsealed from the table', true],
  ])('neither master key nor validator key is in the memory of a replica that %s', async (_how, isLater) => {
    const validatorKey = Buffer.from(testSecret(1));
    writeKeystore(keys.path, 'key', validatorKey, 'TEST password');
    const table = await world.createTable();
    const ceremony = world.createCeremony();
    if (isLater) await bootReplica(world, { table, ceremony });
    const signer = await startSigner({
      config: {
        ...world.configuration(table, ceremony),
        key_sources: { filesystem: { paths: [keys.path] } },
        server: { mlock: 'off' }, // otherwise the system lets nobody look into the process
      },
      env: world.environment(),
    });
    try {
      const secrets = {
        ...(await masterKeys(table, ceremony)),
        ...spellingsOf(validatorKey),
        nowhere: randomBytes(32),
      };
      const before = scanProcess(signer.pid, secrets);
      expect(before['masterKey']).toBeGreaterThan(0);
      expect(Number(before['validatorKey']) + Number(before['validatorKeyReversed'])).toBeGreaterThan(0);

      const token = await world.rootToken(table);
      expect((await call(`${signer.url}/api/v1/chamber/seal`, { token, method: 'POST' })).status).toBe(200);
      const after = scanProcess(signer.pid, secrets);
      expect(after).toEqual(Object.fromEntries(Object.keys(secrets).map((name) => [name, 0])));
    } finally {
      await signer.kill();
    }
  });
});

async function masterKeys(table: string, ceremony: CeremonyBlock): Promise<Record<string, Buffer>> {
  const { booted } = await bootReplica(world, { table, ceremony });
  if (booted.kind !== 'unsealed') throw new Error('nobody has sealed the table');
  const { masterKey } = booted;
  return {
    masterKey: masterKey.use((bytes) => Buffer.from(bytes)),
    authRowKey: masterKey.subKey('authRowHmac'),
    tokenKey: masterKey.subKey('tokenHmac'),
    shareBindingKey: masterKey.subKey('shareBinding'),
  };
}

function spellingsOf(validatorKey: Buffer): Record<string, Buffer> {
  return {
    validatorKey,
    validatorKeyReversed: Buffer.from(validatorKey.toReversed()),
    validatorKeyText: Buffer.from(validatorKey.toString('hex'), 'latin1'),
  };
}
