// docs/guides/receipts-audit.md word by word, against a signer that keeps a log: what it signed is found, what it did
// not sign is missing, and both verifiers say the same. And the section of a runbook for a log that is not kept.

import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { attestation, MAINNET_ROOT, rootOf } from '../support/messages.ts';
import { findPython } from '../support/needs.ts';
import { LONGEST_WAIT_MS } from '../support/patience.ts';
import { after } from './follow.ts';
import { rehearse, rehearseSection } from './rehearse.ts';
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
    const values = { KEY: key, EXAMPLES: join(ROOT, 'docs/examples'), FORK: '0x06000000' };
    await rehearse('docs/guides/receipts-audit.md', {
      ...world,
      values: { ...world.values, ...values, NETWORK: MAINNET_ROOT },
    });
  },
);

it('docs/runbooks/store-unavailable.md#receipts: the folder is gone, and nothing is lost when it is back', async () => {
  const folder = join(world.store, 'receipts');
  const waiting = () => metric('svc_receipts_entries_in_memory');
  renameSync(folder, `${folder}-away`);
  writeFileSync(folder, 'no folder');
  const failed = () => metric('svc_receipts_heads_total{outcome="failed"}');
  await expect.poll(failed, { timeout: LONGEST_WAIT_MS }).toBeGreaterThan(0);
  expect(await world.vote(world.keys[0] ?? '', presentEpoch())).toBe('signed');
  await expect.poll(waiting).toBeGreaterThan(0);
  const none = { DATABASE: '', DATABASE_SERVER: '', CUSTODY_KEYS: '' };
  await rehearseSection(
    'docs/runbooks/store-unavailable.md',
    'receipts',
    { ...world, values: { ...world.values, ...none } },
    {
      before: after(world, async ({ commands }) => {
        if (!commands.startsWith('until')) return;
        rmSync(folder);
        renameSync(`${folder}-away`, folder);
      }),
    },
  );
  expect(await metric('svc_receipts_decisions_total{outcome="lost"}')).toBe(0);
});

async function metric(name: string): Promise<number> {
  const text = await (await fetch(`http://${world.address}:3000/metrics`)).text();
  const line = text.split('\n').find((one) => one.startsWith(`${name} `));
  return Number(line?.slice(name.length));
}
