// A validator client that starts together with the signer, as Prysm, Teku, Vero, Nimbus and Lodestar do after a power
// cut: the real `strongroom web3signer`, whose keystores take seconds. What is asked meanwhile is answered when the
// keys are there, or not at all; probes are answered. A reload keeps every key listed. TEST keys.

import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, get, type IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type RunningSigner, startSigner } from '../../rehearsal/signer.ts';
import { FULL_SCRYPT, publicKeyOf, testSecret, writeKeystore } from '../support/keys.ts';
import { expectNoList } from '../support/no-list.ts';
import { type Answer, attestation, call, randaoReveal, signCall } from '../support/requests.ts';
import { made, ON_FREE_PORTS } from '../support/web3signer-tools.ts';

/** Most of a second for a core, and more on a busy machine. */
const SLOW = [1];
const QUICK = 9;
const KEYS = [...SLOW, QUICK].map((number) => publicKeyOf(testSecret(number))).toSorted();
const QUICK_KEY = publicKeyOf(testSecret(QUICK));
const SLOW_KEY = publicKeyOf(testSecret(1));

let folder: string;
let signer: RunningSigner;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-door-'));
  const keys = made(folder, 'keys');
  for (const number of SLOW) writeKeystore(keys, `slow-${number}`, testSecret(number), 'password', FULL_SCRYPT);
  writeFileSync(
    join(keys, 'quick.yaml'),
    `type: file-raw\nkeyType: BLS\nprivateKey: "${Buffer.from(testSecret(QUICK)).toString('hex')}"\n`,
  );
  const command = ['web3signer', `--key-store-path=${keys}`, `--data-path=${made(folder, 'data')}`, 'eth2'];
  signer = await startSigner({
    ...{ folder, waitFor: 'listening', command: [...command, '--key-manager-api-enabled=true'] },
    env: { ...ON_FREE_PORTS, SVC_SERVER__REQUEST_TIMEOUT_SECONDS: '300' },
  });
});
afterEach(async () => {
  await signer.stop();
  rmSync(folder, { recursive: true, force: true });
});

const ask = (path: string) => call(`${signer.url}${path}`, { token: null });
/** As a supervised client: started again when it gets no list, which takes a minute. */
const list = (): Promise<Answer> => ask('/api/v1/eth2/publicKeys').catch(list);
const isLoading = () => !signer.log.some(({ msg }) => String(msg).startsWith('ready'));

it('gets every key, each signature, and its probes meanwhile', async () => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const kept = async (path: string) => {
    const [answer] = (await once(get(`${signer.url}${path}`, { agent }), 'response')) as [IncomingMessage];
    return { status: answer.statusCode, text: await text(answer) };
  };
  const early = [
    list(),
    kept('/api/v1/eth2/publicKeys').catch(() => undefined),
    signCall(signer.url, SLOW_KEY, randaoReveal(), { token: null }),
    signCall(signer.url, QUICK_KEY, attestation({ target: 12 }), { token: null }),
  ] as const;
  expect(await ask('/upcheck')).toMatchObject({ status: 200, text: 'OK' });
  expect(await ask('/healthcheck')).toMatchObject({ status: 503, json: { status: 'DOWN' } });
  expect(await ask('/eth/v1/keystores')).toMatchObject({ status: 503, json: { reason: 'starting' } });
  expect((await early[3]).status).toBe(200);
  expect(isLoading()).toBe(true);
  const [listed, keptAlive, signed] = await Promise.all(early);
  expect([listed.status, JSON.parse(listed.text)]).toEqual([200, KEYS]);
  expect([undefined, { status: 200, text: listed.text }]).toContainEqual(keptAlive); // or a minute was too short
  expect(signed.status).toBe(200);
  expect((await kept('/upcheck')).text).toBe('OK'); // on the connection that was held
  agent.destroy();

  expect((await call(`${signer.url}/reload`, { method: 'POST', token: null })).status).toBe(202);
  for (let asked = 0; asked < 50; asked++) expect(JSON.parse((await list()).text)).toEqual(KEYS);
  expect((await ask('/healthcheck')).status).toBe(200);
});

it('is let go when the signer ends, and the signer with it', async () => {
  const [listed, signed] = [
    ask('/api/v1/eth2/publicKeys'),
    signCall(signer.url, SLOW_KEY, randaoReveal(), { token: null }),
  ];
  await ask('/upcheck');
  const gone = expectNoList(listed);
  expect(isLoading()).toBe(true);
  const before = performance.now();
  expect(await signer.stop()).toBe(0);
  await gone;
  expect(await signed).toMatchObject({ status: 503, json: { reason: 'shutting_down' } });
  expect(performance.now() - before).toBeLessThan(25_000); // the grace time
  const lines = signer.log.filter(({ audit, scope }) => audit === true && scope === 'public_keys');
  expect(lines).toMatchObject([{ status: 503, reason: 'shutting_down', outcome: 'refused' }]);
});
