// docs/guides/receipts-audit.md word by word, against a signer that keeps a log: what it signed is found, what it did
// not sign is missing, and both verifiers say the same.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { attestation, MAINNET_ROOT, rootOf } from '../support/messages.ts';
import { LONGEST_WAIT_MS } from '../support/patience.ts';
import { findPython } from '../support/python.ts';
import { rehearse } from './rehearse.ts';
import { presentEpoch, type ServiceWorld, startServiceRunbooks } from './service-world.ts';
import { ROOT } from './world.ts';

let world: ServiceWorld;

beforeAll(async () => {
  world = await startServiceRunbooks();
  world.configure((configuration) => {
    configuration['receipts'] = { storage: 'folder', path: join(world.store, 'receipts'), interval_seconds: 1 };
  });
  await world.unit.start();
});
afterAll(async () => {
  await world?.close();
});

it.runIf(findPython('cryptography') !== undefined)(
  'docs/guides/receipts-audit.md',
  { timeout: LONGEST_WAIT_MS },
  async () => {
    const [key = ''] = world.keys;
    const target = presentEpoch() - 1;
    expect(await world.vote(key, target)).toBe('signed');
    // The last head of a boot covers all that it signed.
    await world.unit.stop();
    await world.unit.start();
    const vote = attestation({ source: target - 1, target, head: rootOf(1) })['attestation'];
    writeFileSync(join(world.folder, 'vote.json'), JSON.stringify(vote));
    const values = { KEY: key, EPOCH: String(target), EXAMPLES: join(ROOT, 'docs/examples'), FORK: '0x06000000' };
    await rehearse('docs/guides/receipts-audit.md', {
      ...world,
      values: { ...world.values, ...values, NETWORK: MAINNET_ROOT },
    });
  },
);
