// `strongroom operator tunnel --participants FILE`: what a file of participants has to be, and the program over real
// files, from its start to SIGTERM.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { runWithRoot } from '../run-operator.ts';
import { cert, distribute, expected, type FakeParticipant, startParticipants } from './fake-participants.ts';

const STRONGROOM = join(import.meta.dirname, '../../../bin/strongroom');
const SECRET = 'sr_client_secret_of_the_file';
const folder = mkdtempSync(join(tmpdir(), 'strongroom-participants-'));
const file = join(folder, 'participants.yaml');
afterAll(() => rmSync(folder, { recursive: true }));

const profile = (more: object = {}) => ({ signer_url: 'https://signer.example:9443', token: SECRET, ...more });

function write(profiles: object, mode = 0o600): void {
  writeFileSync(file, JSON.stringify({ profiles }));
  chmodSync(file, mode);
}

async function refusalOf(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await runWithRoot(['tunnel', '--participants', file, ...args], {
    rootFingerprint: '',
  });
  expect([code, stdout]).toEqual([1, '']);
  expect(stderr).not.toContain(SECRET);
  return stderr;
}

it.each<[string, object, string]>([
  ['one participant', { one: profile() }, 'a key has 2 to 32 participants'],
  ['33 of them', Object.fromEntries(Array.from({ length: 33 }, (_, at) => [`p${at}`, profile()])), 'has 33 profiles'],
  ['no token', { one: profile(), two: { signer_url: 'https://two.example' } }, 'profile two has no token'],
  ['no URL', { one: profile(), two: { token: SECRET } }, 'profile two has no signer_url'],
  ['plain HTTP', { one: profile(), two: profile({ signer_url: 'http://two.example' }) }, 'is without TLS'],
  [
    'an enclave',
    { one: profile(), two: profile({ pcr: { 0: 'ab'.repeat(48) }, any_configuration: true }) },
    'enclaves are no participants yet',
  ],
  ['a token from stdin', { one: profile(), two: profile({ token: '-' }) }, 'cannot read the token from stdin'],
  [
    'a time of its own',
    { one: profile(), two: profile({ timeout_seconds: 3 }) },
    'timeout-seconds, which says nothing',
  ],
  ['a member that is none', { one: profile(), two: profile({ colour: 'red' }) }, 'colour'],
  [
    'a certificate that is not there',
    { one: profile({ tls_ca: 'none.pem' }), two: profile() },
    join(folder, 'none.pem'),
  ],
])('a file of participants is refused with %s', async (_, profiles, message) => {
  write(profiles);
  expect(await refusalOf()).toContain(message);
});

it('a file that others may write, or read a token in, is refused; so is one that is not there', async () => {
  write({ one: profile(), two: profile() }, 0o620);
  expect(await refusalOf()).toContain('can be written by others');
  write({ one: profile(), two: profile() }, 0o644);
  expect(await refusalOf()).toContain('others may read it');
  rmSync(file);
  expect(await refusalOf()).toContain('does not exist');
});

it('flags that are about one signer are refused', async () => {
  write({ one: profile(), two: profile() });
  for (const args of [
    ['--signer-url', 'https://x'],
    ['--token', 'env:X'],
    ['--profile', 'one'],
    ['--pcr', '0=ab'],
    ['--json'],
  ])
    expect(await refusalOf(...args)).toContain(`${args[0]} is about one signer`);
  expect(await refusalOf('--listen', '0.0.0.0:9000')).toContain('can be reached from other machines');
  expect(await refusalOf('--timeout-seconds', '0')).toContain('--timeout-seconds is a whole number');
});

async function startProgram(participants: readonly FakeParticipant[], variables: Readonly<Record<string, string>>) {
  mkdirSync(join(folder, 'tokens'), { recursive: true });
  writeFileSync(join(folder, 'ca.pem'), cert);
  const profiles = participants.map((participant) => {
    writeFileSync(join(folder, 'tokens', participant.name), participant.token, { mode: 0o600 });
    const { peer } = participant.settings();
    const named = { tls_ca: 'ca.pem', tls_server_name: 'localhost', token: `@tokens/${participant.name}` };
    return [participant.name, { signer_url: peer.url.origin, ...named }];
  });
  write(Object.fromEntries(profiles));
  const env = { PATH: process.env['PATH'], HOME: '/nonexistent', ...variables };
  const args = ['operator', 'tunnel', '--participants', 'participants.yaml', '--listen', '127.0.0.1:0'];
  const child = spawn(STRONGROOM, args, { cwd: folder, env, stdio: ['ignore', 'ignore', 'pipe'] });
  let lines = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (lines += text));
  const url = (): string | undefined => /listening on (http:\S+);/.exec(lines)?.[1];
  await expect.poll(url).toBeDefined();
  return { child, url: url() ?? '', lines: () => lines };
}

it('serves what the profiles name, by paths of their folder, whatever variables say; ends on SIGTERM', async () => {
  const key = distribute(2, 3);
  const participants = await startParticipants([key]);
  const variables = { SVC_OPERATOR_TOKEN: SECRET, SVC_OPERATOR_SIGNER_URL: 'https://no' };
  const { child, url, lines } = await startProgram(participants, variables);
  const path = `${url}/api/v1/eth2/sign/${key.publicKey}`;
  const body = JSON.stringify({ type: 'RANDAO_REVEAL' });
  const reply = await fetch(path, { method: 'POST', body, headers: { connection: 'close' } });
  expect(await reply.json()).toEqual({ signature: expected(key, JSON.parse(body)) });
  // As many connections at once as a client with a key for each opens.
  const ofMany = Array.from({ length: 500 }, async () => {
    const sent = request(path, { method: 'POST', agent: false }).end(body);
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    return response.resume().statusCode;
  });
  expect(new Set(await Promise.all(ofMany))).toEqual(new Set([200]));
  child.kill('SIGTERM');
  expect(await once(child, 'exit')).toEqual([0, null]);
  for (const secret of [SECRET, ...participants.map(({ token }) => token)]) expect(lines()).not.toContain(secret);
});

it('serves on when its log is not read, and when its reader is gone', async () => {
  const key = distribute(2, 2);
  const { child, url } = await startProgram(await startParticipants([key]), {});
  const ask = async (path: string, init: RequestInit = {}) => (await fetch(`${url}${path}`, init)).status;
  const refused = () => ask(`/api/v1/eth2/sign/0x${'ab'.repeat(48)}`, { method: 'POST', body: '{}' });
  child.stderr.pause();
  for (let times = 0; times < 200; times++) await Promise.all(Array.from({ length: 10 }, refused));
  expect(await ask('/upcheck')).toBe(200);
  child.stderr.destroy();
  expect(await refused()).toBe(404);
  expect(await ask('/upcheck')).toBe(200);
  child.kill('SIGTERM');
  expect(await once(child, 'exit')).toEqual([0, null]);
});
