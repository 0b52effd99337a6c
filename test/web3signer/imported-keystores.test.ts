// Keystores that are imported over the Key Manager API of a signer with Web3Signer's command line: they stay where
// Web3Signer keeps them, also when the API is off at the next start, and nothing is lost where they cannot.

import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type RunningSigner, runStrongroom, startSigner } from '../../rehearsal/signer.ts';
import { encryptKeystore, publicKeyOf, testSecret } from '../support/keys.ts';
import { call, randaoReveal, signCall } from '../support/requests.ts';
import { made, ON_FREE_PORTS } from '../support/web3signer-tools.ts';

const KEY = publicKeyOf(testSecret(1));
const WITH_API = ['eth2', '--key-manager-api-enabled=true'];

let folder = '';
let signer: RunningSigner | undefined;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-front-'));
});
afterEach(async () => {
  await signer?.stop();
  signer = undefined;
  rmSync(folder, { recursive: true });
});

async function start(command: readonly string[], env: Record<string, string> = {}): Promise<RunningSigner> {
  await signer?.stop();
  signer = await startSigner({ folder, command, env: { ...ON_FREE_PORTS, ...env } });
  return signer;
}

const ofKeys = (command: readonly string[]) => [`--key-store-path=${made(folder, 'keys')}`, ...command];
const imported = () => join(folder, 'keys/imported-keystores');

async function importOne({ url }: RunningSigner): Promise<unknown> {
  const keystores = [JSON.stringify(encryptKeystore(testSecret(1), 'password'))];
  const answer = await call(`${url}/eth/v1/keystores`, { body: { keystores, passwords: ['password'] }, token: null });
  return (answer.json['data'] as { status: string }[])[0]?.status;
}

async function listed({ url }: RunningSigner): Promise<unknown> {
  return JSON.parse((await call(`${url}/api/v1/eth2/publicKeys`, { token: null })).text);
}

const warned = ({ log }: RunningSigner, option: string) =>
  log.find((line) => line['option'] === option && line['level'] === 'warn')?.['msg'];

it('stay over restarts, with the API and without, until they are deleted', async () => {
  const first = await start(ofKeys(WITH_API));
  expect(warned(first, '--key-manager-api-enabled')).toBeUndefined();
  expect(await importOne(first)).toBe('imported');
  await first.kill();
  expect(statSync(imported()).mode & 0o777).toBe(0o700);
  expect(statSync(join(imported(), 'secret')).mode & 0o777).toBe(0o600);
  const secret = readFileSync(join(imported(), 'secret'), 'utf8');

  const second = await start(ofKeys(['eth2']));
  expect(await listed(second)).toEqual([KEY]);
  expect((await signCall(second.url, KEY, randaoReveal(), { token: null })).status).toBe(200);

  const third = await start(ofKeys([...WITH_API, '--Xkey-manager-skip-keystore-storage=true']));
  expect(warned(third, '--Xkey-manager-skip-keystore-storage')).toMatch(
    /is not honoured: .*imported-keystores is there/,
  );
  const gone = await call(`${third.url}/eth/v1/keystores`, { method: 'DELETE', body: { pubkeys: [KEY] }, token: null });
  expect(gone.json['data']).toMatchObject([{ status: 'deleted' }]);
  await third.stop();
  expect(readdirSync(imported())).toEqual(['secret']);
  expect(readFileSync(join(imported(), 'secret'), 'utf8')).toBe(secret);

  const printed = await runStrongroom([...ofKeys(WITH_API), '--print-config']);
  expect(printed.stdout).toContain(`persist_secret: "file:${imported()}/secret"`);
  expect(printed.stdout + third.output()).not.toContain(secret.trim());
});

it('are in memory alone with --Xkey-manager-skip-keystore-storage', async () => {
  const started = await start(ofKeys([...WITH_API, '--Xkey-manager-skip-keystore-storage=true']));
  expect(await importOne(started)).toBe('imported');
  expect(existsSync(imported())).toBe(false);
});

it('are where variables of strongroom say, if they say it', async () => {
  const elsewhere = made(folder, 'elsewhere');
  const started = await start(ofKeys(WITH_API), {
    SVC_KEY_SOURCES__MEMORY__PERSIST_DIR: elsewhere,
    SVC_KEY_SOURCES__MEMORY__PERSIST_SECRET: 'test-only secret of 16 characters or more',
  });
  expect(await importOne(started)).toBe('imported');
  expect(readdirSync(elsewhere)).toEqual([`${KEY.slice(2)}.json`]);
  expect(existsSync(imported())).toBe(false);
});

it.skipIf(process.platform !== 'linux')('are in memory where nothing can be written, which is said', async () => {
  const started = await start([`--data-path=${folder}`, '--key-store-path=/proc/sys/fs', ...WITH_API]);
  expect(warned(started, '--key-manager-api-enabled')).toMatch(/kept in memory: \/proc\/sys\/fs.* cannot be made/);
  expect(await importOne(started)).toBe('imported');
});

it('are never given up for another secret, nor for a folder that cannot be read', async () => {
  writeFileSync(join(made(folder, 'keys/imported-keystores'), `${KEY.slice(2)}.json`), '{}');
  const refused = await runStrongroom(ofKeys(WITH_API), { env: ON_FREE_PORTS });
  expect(refused).toMatchObject({ code: 78, stderr: expect.stringContaining('whose secret is gone') });
  expect(readdirSync(imported())).toHaveLength(1);

  rmSync(imported(), { recursive: true });
  writeFileSync(imported(), '');
  const unread = await runStrongroom(ofKeys(['eth2']), { env: ON_FREE_PORTS });
  expect(unread).toMatchObject({ code: 78, stderr: expect.stringContaining('cannot be read') });
});

it('make no folder for --print-config and the commands, which say how to', async () => {
  const printed = await runStrongroom([...ofKeys(WITH_API), '--print-config']);
  expect(printed).toMatchObject({ code: 0, stderr: expect.stringContaining('openssl rand -hex 32') });
  expect(printed.stdout).not.toContain('persist_dir');
  expect(await runStrongroom([...ofKeys(WITH_API), 'export', `--to=${folder}/record.json`])).toMatchObject({ code: 0 });
  expect(existsSync(imported())).toBe(false);
});
