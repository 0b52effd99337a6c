// docs/guides/api.md word by word, with a signer of the network that its messages are of, and the Python program that
// it names. TEST key.

import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type RunningSigner, startSigner } from '../../rehearsal/signer.ts';
import { deploy } from '../support/deployment.ts';
import { TEST_TOKEN } from '../support/requests.ts';
import { rehearse } from './rehearse.ts';
import { ROOT } from './world.ts';

const deployment = deploy(1);
let folder: string;
let signer: RunningSigner;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-api-guide-'));
  copyFileSync(join(ROOT, 'docs/examples/sign.py'), join(folder, 'sign.py'));
  signer = await startSigner({ config: { ...deployment.config, network: 'hoodi' } });
});
afterAll(async () => {
  await signer.stop();
  rmSync(folder, { recursive: true });
});

it('a vote is signed and the other one refused, by curl and by Python', async () => {
  const values = { SIGNER: signer.url, TOKEN: TEST_TOKEN };
  const env = { PATH: process.env['PATH'] ?? '', HOME: folder };
  const rehearsed = await rehearse('docs/guides/api.md', { folder, env, values });
  const [, , curl, , python] = rehearsed.map(({ output }) => output);
  const [signature] = /0x[0-9a-f]{192}/.exec(curl ?? '') ?? [];
  expect(python).toContain(signature);
  expect(python).toContain('412 double_vote: slashing protection refused the request');
});
