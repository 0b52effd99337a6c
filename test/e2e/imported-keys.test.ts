// Keys that are imported over the Key Manager API into a plain service with `key_sources.memory.persist_dir`: whatever
// moment the process is killed, those that were answered as imported are there again, and those that were answered as
// deleted are not.

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type RunningSigner, runStrongroom } from '../../rehearsal/signer.ts';
import { deploy } from '../support/deployment.ts';
import { encryptKeystore, publicKeyOf, testSecret } from '../support/keys.ts';
import { LONGEST_WAIT_MS } from '../support/patience.ts';
import { type Answer, attestation, call, randaoReveal, signCall, TEST_TOKEN } from '../support/requests.ts';
import { sized } from '../support/scale.ts';

const PASSWORD = 'TEST password of a keystore';
const SECRET = 'TEST persist secret 0001';
const SCOPES = ['sign', 'public_keys', 'list_keys', 'import_keystores', 'delete_keys'];
const running: RunningSigner[] = [];

afterEach(() => Promise.all(running.splice(0).map((signer) => signer.kill())));

function service(memory: Record<string, unknown> = { persist_dir: 'imported', persist_secret: 'env:PERSIST' }) {
  const deployment = deploy(0, {
    http: { key_manager_api: { enabled: true } },
    key_sources: { memory },
    static_auth: {
      policies: [{ name: 'full', rules: [{ effect: 'allow', scopes: SCOPES }] }],
      tokens: [{ secret: TEST_TOKEN, policies: ['full'] }],
    },
  });
  const folder = join(deployment.folder, 'imported');
  mkdirSync(folder, { mode: 0o700 });
  return {
    folder,
    config: join(deployment.folder, 'strongroom.yaml'),
    async start(secret = SECRET): Promise<RunningSigner> {
      const signer = await deployment.start({ env: { PERSIST: secret } });
      running.push(signer);
      return signer;
    },
  };
}

const keystore = (number: number): string => JSON.stringify(encryptKeystore(testSecret(number), PASSWORD));
const key = (number: number): string => publicKeyOf(testSecret(number));

function importAll({ url }: RunningSigner, numbers: readonly number[]): Promise<Answer> {
  const body = { keystores: numbers.map(keystore), passwords: numbers.map(() => PASSWORD) };
  return call(`${url}/eth/v1/keystores`, { method: 'POST', body });
}

function remove({ url }: RunningSigner, numbers: readonly number[]): Promise<Answer> {
  return call(`${url}/eth/v1/keystores`, { method: 'DELETE', body: { pubkeys: numbers.map(key) } });
}

const statusesOf = ({ json }: Answer): unknown[] => (json['data'] as { status: string }[]).map(({ status }) => status);

async function listed({ url }: RunningSigner): Promise<readonly string[]> {
  const { json } = await call(`${url}/eth/v1/keystores`);
  return (json['data'] as { validating_pubkey: string }[]).map(({ validating_pubkey: publicKey }) => publicKey).sort();
}

describe('imported keys of a service with persist_dir', () => {
  it('sign again after kill -9, the deleted ones do not, and their records are kept', async () => {
    const { folder, start } = service();
    const first = await start();
    expect(statusesOf(await importAll(first, [1, 2, 3]))).toEqual(['imported', 'imported', 'imported']);
    expect((await signCall(first.url, key(1), attestation({ source: 1, target: 2 }))).status).toBe(200);
    await first.kill();

    const second = await start();
    expect(await listed(second)).toEqual([key(1), key(2), key(3)].sort());
    expect((await signCall(second.url, key(2), randaoReveal())).status).toBe(200);
    expect((await signCall(second.url, key(1), attestation({ source: 0, target: 2 }))).status).toBe(412);
    expect(statusesOf(await importAll(second, [1]))).toEqual(['duplicate']);
    expect(statusesOf(await remove(second, [1]))).toEqual(['deleted']);
    await second.kill();

    const third = await start();
    expect(await listed(third)).toEqual([key(2), key(3)].sort());
    expect((await signCall(third.url, key(1), randaoReveal())).status).toBe(404);
    expect(readdirSync(folder)).toHaveLength(2);
    expect(statusesOf(await importAll(third, [1]))).toEqual(['imported']);
    expect((await signCall(third.url, key(1), attestation({ source: 0, target: 2 }))).status).toBe(412);
  });

  it('killed in the middle of imports and deletions: all that was answered holds', async () => {
    const { start } = service();
    const imported = new Set<number>();
    const deleted = new Set<number>();
    let next = 10;
    let signer = await start();
    for (let round = 0; round < sized(2, 4); round++) {
      const numbers = Array.from({ length: 6 }, () => next++);
      const [victim] = imported;
      const answers = numbers.map(async (number) => {
        const answer = await importAll(signer, [number]).catch(() => undefined);
        if (answer?.status === 200 && statusesOf(answer)[0] === 'imported') imported.add(number);
      });
      const deletion = async (): Promise<void> => {
        if (victim === undefined) return;
        imported.delete(victim); // from here on until it is answered it may be there or not
        const answer = await remove(signer, [victim]).catch(() => undefined);
        if (answer?.status === 200 && statusesOf(answer)[0] === 'deleted') deleted.add(victim);
      };
      // Others are still under way when this many are answered.
      await Promise.all([answers[round], round % 2 === 1 ? deletion() : undefined]);
      const rest = round % 2 === 0 ? deletion() : undefined;
      await signer.kill();
      await Promise.all([...answers, rest]);

      signer = await start();
      const there = await listed(signer);
      for (const number of imported) expect(there).toContain(key(number));
      for (const number of deleted) expect(there).not.toContain(key(number));
    }
    expect(imported.size).toBeGreaterThan(0);
    expect(deleted.size).toBeGreaterThan(0);
  });

  it('are kept as they came, with the password under the secret alone', async () => {
    const { folder, start } = service();
    const signer = await start();
    const text = `  ${keystore(1)}`;
    const body = { keystores: [text], passwords: [PASSWORD] };
    await call(`${signer.url}/eth/v1/keystores`, { method: 'POST', body });
    const [name = ''] = readdirSync(folder);
    const content = readFileSync(join(folder, name), 'utf8');
    expect(name).toBe(`${key(1).slice(2)}.json`);
    expect(JSON.parse(content)).toMatchObject({ format: 'strongroom-imported-keystore-1', keystore: text });
    for (const hidden of [PASSWORD, SECRET, Buffer.from(testSecret(1)).toString('hex')]) {
      expect(content).not.toContain(hidden);
      expect(signer.output()).not.toContain(hidden);
    }
  });

  it('that cannot be opened are named, make the health DOWN, and stay on disk', async () => {
    const { folder, start } = service();
    const first = await start();
    await importAll(first, [1, 2]);
    await first.kill();
    const path = join(folder, `${key(1).slice(2)}.json`);
    const file = JSON.parse(readFileSync(path, 'utf8'));
    writeFileSync(path, JSON.stringify({ ...file, keystore: file.keystore.replace('"version":4', '"version": 4') }));
    writeFileSync(join(folder, `${key(3).slice(2)}.json.new`), 'half a fi');

    const second = await start();
    expect(await listed(second)).toEqual([key(2)]);
    await second.logged('an imported key cannot be loaded', { file: `imported/${key(1).slice(2)}.json` });
    expect((await call(`${second.url}/healthcheck`)).status).toBe(503);
    expect(readdirSync(folder)).toHaveLength(2);
    await second.kill();
    const wrong = await start('TEST another secret 0002');
    expect(await listed(wrong)).toEqual([]);
    expect(readdirSync(folder)).toHaveLength(2);
    // Nothing of a failed import takes away what was there: key 4 cannot be written.
    mkdirSync(join(folder, `${key(4).slice(2)}.json`));
    expect(statusesOf(await importAll(wrong, [2, 4]))).toEqual(['error', 'error']);
    expect(readdirSync(folder)).toContain(`${key(2).slice(2)}.json`);
  });

  it('that cannot be written are answered as errors and do not sign', async () => {
    const { folder, start } = service();
    const signer = await start();
    // What is a directory cannot be replaced by a file, for root either.
    mkdirSync(join(folder, `${key(1).slice(2)}.json`));
    const answer = await importAll(signer, [1]);
    expect(statusesOf(answer)).toEqual(['error']);
    expect(JSON.stringify(answer.json)).toContain('could not write the keystore to its disk');
    expect(await listed(signer)).toEqual([]);
  });
});

describe('the options', () => {
  it('without persist_dir each import warns that its keys are gone after a restart', async () => {
    const { start } = service({});
    const signer = await start();
    await importAll(signer, [1]);
    await importAll(signer, [2]);
    const warnings = () => signer.log.filter(({ msg }) => /gone after a restart/.test(String(msg)));
    await vi.waitUntil(() => warnings().length >= 2, LONGEST_WAIT_MS);
    expect(warnings()).toMatchObject([{ level: 'warn' }, { level: 'warn' }]);
  });

  it('a folder that is not there ends the start and --check; one of the two alone is refused', async () => {
    const missing = service({ persist_dir: '/nowhere/imported', persist_secret: 'env:PERSIST' });
    await expect(missing.start()).rejects.toThrow(/persist_dir/);
    const env = { PERSIST: SECRET };
    const check = await runStrongroom(['server', '--check', '-c', missing.config], { env });
    expect(check.code).toBe(78);
    expect(check.stdout + check.stderr).toContain('key_sources.memory.persist_dir names a directory that cannot be');
    await expect(service({ persist_dir: 'imported' }).start()).rejects.toThrow(/persist_secret is missing/);
  });
});
