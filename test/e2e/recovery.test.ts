// Trouble of the slashing database: 503 while it lasts, and signing goes on by itself when it is over.

import { execFileSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it } from 'vitest';
import { runStrongroom } from '../../rehearsal/signer.ts';
import { deploy } from '../support/deployment.ts';
import { attestation, call, rootOf, signCall } from '../support/requests.ts';

describe('the slashing database', () => {
  it('serves one process only: a second signer and the offline commands are refused while it runs', async () => {
    const deployment = deploy(1);
    const signer = await deployment.start();
    await expect(deployment.start()).rejects.toThrow(/in use by another process/);
    const config = join(deployment.folder, 'strongroom.yaml');
    const status = await runStrongroom(['slashing', 'status', '-c', config]);
    expect(status.code).toBe(1);
    expect(status.stderr).toMatch(/in use by another process: stop it first/);
    await signer.stop();
    expect((await runStrongroom(['slashing', 'status', '-c', config])).code).toBe(0);
  });

  it('of another network ends the start', async () => {
    const deployment = deploy(1);
    await (await deployment.start()).stop();
    await expect(deployment.start({ config: { network: 'hoodi' } })).rejects.toThrow(/network/);
  });

  it('a record altered behind its back: whatever would rest on it is 503, and other keys go on', async () => {
    const deployment = deploy(2, { anti_slashing: { jump_after_unclean_end: false } });
    const [one, other] = deployment.keys.map(({ publicKey }) => publicKey);
    const signer = await deployment.start();
    for (const key of [one, other]) {
      for (const target of [2, 4]) {
        expect((await signCall(signer.url, key ?? '', attestation({ source: 1, target }))).status).toBe(200);
      }
    }
    await signer.stop();

    const database = new DatabaseSync(join(deployment.folder, 'slashing_protection.sqlite'));
    database.exec('UPDATE attestations SET target_epoch = 3 WHERE validator = 1 AND target_epoch = 4');
    database.close();

    const again = await deployment.start();
    const answers = await Promise.all(
      [one, other].map((key) => signCall(again.url, key ?? '', attestation({ source: 1, target: 4, head: rootOf(2) }))),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([412, 503]);
    const refused = answers.find(({ status }) => status === 503);
    expect(refused?.json['reason']).toBe('slashing_integrity');
    expect((await call(again.metricsUrl)).text).toMatch(/svc_slashing_refusals_total\{reason="slashing_integrity"\} 1/);
    await again.stop();
  });

  it('locked by somebody answers 503, and signing goes on when the lock is gone', async () => {
    const deployment = deploy(1);
    const key = deployment.keys[0]?.publicKey ?? '';
    const signer = await deployment.start();
    const database = new DatabaseSync(join(deployment.folder, 'slashing_protection.sqlite'));
    database.exec('BEGIN EXCLUSIVE');
    const locked = await signCall(signer.url, key, attestation());
    expect(locked.json).toMatchObject({ code: 503, reason: 'slashing_unavailable' });
    expect(locked.headers.get('retry-after')).toBe('1');
    expect((await call(`${signer.url}/healthcheck`, { token: null })).json['status']).toBe('DOWN');
    expect((await call(`${signer.url}/upcheck`, { token: null })).text).toBe('OK');
    database.exec('ROLLBACK');
    database.close();
    expect((await signCall(signer.url, key, attestation())).status).toBe(200);
    expect((await call(`${signer.url}/healthcheck`, { token: null })).json['status']).toBe('UP');
    await signer.stop();
  });

  it.skipIf(process.platform !== 'linux')(
    'on a full disk answers 503, and signing goes on when there is room',
    async () => {
      const deployment = deploy(1);
      const key = deployment.keys[0]?.publicKey ?? '';
      const signer = await deployment.start();
      expect((await signCall(signer.url, key, attestation({ source: 1, target: 2 }))).status).toBe(200);
      // No file of the process may grow: to SQLite this is a disk without room.
      limitFileSize(signer.pid, 0);
      for (let target = 3; target < 6; target += 1) {
        const refused = await signCall(signer.url, key, attestation({ source: 2, target }));
        expect(refused.json).toMatchObject({ code: 503, reason: 'slashing_unavailable' });
      }
      limitFileSize(signer.pid, 'unlimited');
      expect((await signCall(signer.url, key, attestation({ source: 5, target: 6 }))).status).toBe(200);
      await signer.stop();
    },
  );

  it('is created with mode 0600', async () => {
    const deployment = deploy(1);
    const signer = await deployment.start();
    const path = join(deployment.folder, 'slashing_protection.sqlite');
    expect(statSync(path).mode & 0o777).toBe(0o600);
    await signer.stop();
  });
});

function limitFileSize(pid: number, bytes: number | 'unlimited'): void {
  execFileSync('prlimit', ['--pid', String(pid), `--fsize=${bytes}:unlimited`]);
}
