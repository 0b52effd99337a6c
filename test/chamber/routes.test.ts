// What of the chamber there is without a signer state, and what the offline commands do with one, on the real program.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { startCustody } from '../../rehearsal/custody.ts';
import { runStrongroom, startSigner } from '../../rehearsal/signer.ts';
import { chamberStatusSchema } from '../../signer/api/chamber.ts';
import { deploy } from '../support/deployment.ts';
import { call, TEST_TOKEN, testKey } from '../support/requests.ts';

it('without a signer state the status is for the scope, says Unsealed without custody, and there is no seal', async () => {
  const monitoring = 'sr_client_TEST_monitoring_token_01';
  const full = { name: 'full', rules: [{ effect: 'allow', scopes: ['sign', 'public_keys', 'chamber_seal'] }] };
  const status = { name: 'status', rules: [{ effect: 'allow', scopes: ['chamber_status'] }] };
  const deployment = deploy(2, {
    static_auth: {
      policies: [full, status],
      tokens: [
        { secret: TEST_TOKEN, policies: ['full'] },
        { secret: monitoring, policies: ['status'] },
      ],
    },
  });
  const signer = await deployment.start();
  try {
    const path = `${signer.url}/api/v1/chamber/status`;
    const answer = await call(path, { token: monitoring });
    expect(answer.status).toBe(200);
    expect(chamberStatusSchema.parse(answer.json)).toMatchObject({
      state: 'Unsealed',
      custody: null,
      latch: null,
      state_watcher: null,
      keys: expect.arrayContaining([{ source: 'filesystem', status: 'active', count: 2 }]),
    });
    expect((await call(path)).status).toBe(403);
    expect((await call(path, { token: null })).status).toBe(401);
    expect((await call(`${signer.url}/api/v1/chamber/seal`, { method: 'POST' })).status).toBe(404);
  } finally {
    await signer.stop();
    rmSync(deployment.folder, { recursive: true, force: true });
  }
});

it('offline slashing commands unseal the row key from the table; they initialise nothing, and a latch stops them', async () => {
  const world = await startCustody();
  const folder = mkdtempSync(join(tmpdir(), 'strongroom-offline-'));
  try {
    mkdirSync(join(folder, 'keys'));
    writeFileSync(join(folder, 'keys/key.yaml'), `type: file-raw\nprivateKey: "${testKey(0).secret}"\n`);
    const table = await world.createTable();
    const config = {
      ...world.configuration(table, world.createCeremony()),
      key_sources: { filesystem: { paths: [join(folder, 'keys')] } },
      anti_slashing: { backend: 'sqlite', path: join(folder, 'slashing_protection.sqlite') },
    };
    const file = join(folder, 'offline.yaml');
    writeFileSync(file, JSON.stringify(config));
    const status = () => runStrongroom(['slashing', 'status', '-c', file], { env: world.environment() });

    const fresh = await status();
    expect(fresh.code).toBe(1);
    expect(fresh.stderr).toContain('it has no MASTER_KEY row: start the server once');
    expect(await world.row(table, 'MASTER_KEY')).toBeUndefined();

    await (await startSigner({ folder, config, env: world.environment() })).stop();
    expect(await status()).toMatchObject({ code: 0 });

    await world.putRow(table, { pk: { S: 'SEAL_OVERRIDE' } });
    const sealed = await status();
    expect(sealed.code).toBe(1);
    expect(sealed.stderr).toContain('SEAL_OVERRIDE is there');
  } finally {
    rmSync(folder, { recursive: true, force: true });
    await world.close();
  }
});
