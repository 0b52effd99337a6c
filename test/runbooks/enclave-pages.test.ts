// The runbooks of images and their registers, as they stand there, in a world with an enclave whose custody keys have
// policies that count.

import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type EnclaveRunbookWorld, startEnclaveRunbooks } from './enclave-world.ts';
import { rehearse } from './rehearse.ts';

let world: EnclaveRunbookWorld;

beforeAll(async () => {
  world = await startEnclaveRunbooks();
});
afterAll(() => world?.close());

it('docs/runbooks/image-upgrade.md: there and back, and only the image that stays opens the keys', async () => {
  world.makeRelease('new', { isBaked: true });
  const old = world.runningPcr0();
  const seen: (string | undefined)[] = [];
  await rehearse('docs/runbooks/image-upgrade.md', world, {
    elsewhere: 1,
    before: async () => void seen.push(world.runningPcr0()),
  });
  expect(new Set(seen).size).toBe(2);
  expect(world.runningPcr0()).toBe(old);
  expect(await world.comesUp('new')).toBe(false);
  expect(world.trouble()).toContain('attestation policy mismatch');
});

it('docs/runbooks/pcr-rotation.md: the old configuration opens nothing any more', async () => {
  const at = (...names: readonly string[]) => join(world.folder, ...names);
  world.makeRelease('before', { image: 'fetching' });
  world.makeRelease('after', { image: 'fetching', sections: { logging: { level: 'debug' } } });
  await world.settle('before');
  copyFileSync(at('before', 'pcrs.json'), at('pcrs.json'));
  copyFileSync(at('before', 'strongroom.yaml'), at('old.yaml'));
  copyFileSync(at('after', 'strongroom.yaml'), at('new.yaml'));
  await rehearse('docs/runbooks/pcr-rotation.md', world);
  expect(await world.comesUp('before')).toBe(false);
  expect(world.trouble()).toContain('attestation policy mismatch');
});

it('docs/runbooks/table-credentials.md: the tables are called with the new key, and the old one is dead', async () => {
  const at = (...names: readonly string[]) => join(world.folder, ...names);
  world.makeRelease('sealed', { image: 'fetching' });
  await world.settle('sealed');
  copyFileSync(at('sealed', 'pcrs.json'), at('pcrs.json'));
  copyFileSync(at('sealed', 'strongroom.yaml'), at('old.yaml'));
  let isRotated = false;
  await rehearse('docs/runbooks/table-credentials.md', world, {
    before: async ({ section }) => {
      if (section !== 'retire' || isRotated) return;
      isRotated = true;
      await rehearse('docs/runbooks/pcr-rotation.md', world);
    },
  });
  expect(isRotated).toBe(true);
  // The configuration before has the credentials of a key that IAM refuses now.
  expect(await world.comesUp('sealed')).toBe(false);
  copyFileSync(at('new.yaml'), at('sealed', 'strongroom.yaml'));
  expect(await world.comesUp('sealed')).toBe(true);
});
