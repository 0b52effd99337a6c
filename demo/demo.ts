// What `make demo` runs: the real program on its embedded default (SQLite, file keys, static tokens), a real
// attestation signed through it, of Hoodi since Gloas, and a slashable second vote refused. Everything it makes is
// under build/demo and is a TEST key.

import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { SecretKey } from '@chainsafe/blst';
import { cleanEnvironment } from '../rehearsal/signer.ts';
import { hoodiVote } from '../service/first/vote.ts';
import { ended, isKept, keep, shown } from './keep.ts';

const ROOT = join(import.meta.dirname, '..');
const FOLDER = join(ROOT, 'build/demo');

const { publicKey, token, operatorToken, config, port } = await prepare();
const signer = spawn(join(ROOT, 'bin/strongroom'), ['server', '-c', config], {
  env: cleanEnvironment(),
  stdio: ['ignore', 'pipe', 'inherit'],
});
const signerEnded = ended(signer);
try {
  await readyOf(signer);
  await show();
  if (isKept()) await keepIt();
} finally {
  // Ctrl-C has reached it, too.
  if (signer.exitCode === null && signer.signalCode === null) {
    signer.kill('SIGTERM');
    await once(signer, 'exit');
  }
}
if (!isKept()) goOnFromHere();

async function show(): Promise<void> {
  const url = `http://127.0.0.1:${port}/api/v1/eth2/sign/${publicKey}`;
  const vote = hoodiVote('full');
  heading('The key (a TEST key, made just now)');
  say(publicKey);
  heading('The request: a vote on Hoodi, in Gloas');
  say(`POST ${url}\n${JSON.stringify(vote, null, 2)}`);

  const signed = await post(url, vote);
  heading(`The answer: ${signed.status}`);
  say(signed.body);
  expectStatus(signed, 200);

  const second = await post(url, hoodiVote('empty'));
  heading(`A second vote for the same target, which says that the payload is missing: ${second.status}`);
  say(second.body);
  expectStatus(second, 412);
}

function goOnFromHere(): void {
  heading('Go on from here');
  say(`Keep this signer running:  make demo KEEP=1
Start this signer again:   bin/strongroom server -c ${relative(config)}
List its keys:             curl -H "Authorization: Bearer $(cat ${relative(join(FOLDER, 'token'))})" http://127.0.0.1:${port}/api/v1/eth2/publicKeys
Export what it has signed: bin/strongroom slashing export -c ${relative(config)}    (with the signer stopped)
Every option:              bin/strongroom server --help
Next:                      README.md (Run it), docs/tutorial/first-signature.md

It worked: the signer signed one vote, refused the slashable second one, and has stopped.`);
}

async function keepIt(): Promise<void> {
  const [vote, second] = [join(FOLDER, 'vote.json'), join(FOLDER, 'second-vote.json')];
  writeFileSync(vote, JSON.stringify(hoodiVote('full')));
  writeFileSync(second, JSON.stringify(hoodiVote('empty')));
  const origin = `http://127.0.0.1:${port}`;
  const curl = `curl -s -w '\\n%{http_code}\\n' -H "Authorization: Bearer $(cat ${shown(join(FOLDER, 'token'))})"`;
  const sign = (file: string): string =>
    `${curl} -H 'Content-Type: application/json' -d @${shown(file)} ${origin}/api/v1/eth2/sign/${publicKey}`;
  await keep({
    folder: FOLDER,
    tokens: { token, 'operator-token': operatorToken },
    profiles: { default: { signer_url: origin, token: 'operator-token' } },
    tries: [
      { what: 'How it is', command: 'strongroom operator status' },
      { what: 'Its keys', command: 'strongroom operator keys list' },
      { what: 'What it has signed, as EIP-3076', command: 'strongroom operator slashing export' },
      { what: 'The vote again: 200, because it is the same', command: sign(vote) },
      { what: 'Another vote for the same target: 412', command: sign(second) },
    ],
    running: () => [{ name: 'the signer', ended: signerEnded }],
  });
}

async function prepare(): Promise<{
  publicKey: string;
  token: string;
  operatorToken: string;
  config: string;
  port: number;
}> {
  rmSync(FOLDER, { recursive: true, force: true });
  const keys = join(FOLDER, 'keys');
  mkdirSync(keys, { recursive: true, mode: 0o700 });
  const secretKey = SecretKey.fromKeygen(randomBytes(32));
  const descriptor = `# A TEST key of make demo.\ntype: file-raw\nkeyType: BLS\nprivateKey: "${secretKey.toHex()}"\n`;
  writeFileSync(join(keys, 'test-key.yaml'), descriptor, { mode: 0o600 });
  const [token, operatorToken] = [newToken(), newToken()];
  writeFileSync(join(FOLDER, 'token'), token, { mode: 0o600 });
  const publicKey = secretKey.toPublicKey().toHex();
  const [port, metricsPort] = [await freePort(), await freePort()];
  const config = join(FOLDER, 'strongroom.yaml');
  writeFileSync(config, configuration({ publicKey, token, operatorToken, port, metricsPort, keys }), { mode: 0o600 });
  return { publicKey, token, operatorToken, config, port };
}

function newToken(): string {
  return `sr_client_${randomBytes(32).toString('base64url')}`;
}

function configuration(values: {
  publicKey: string;
  token: string;
  operatorToken: string;
  port: number;
  metricsPort: number;
  keys: string;
}): string {
  return `# Written by make demo. In earnest, give the token as env:VAR_NAME.
network: hoodi
server: { listen_address: 127.0.0.1, listen_port: ${values.port} }
metrics: { listen_address: 127.0.0.1, listen_port: ${values.metricsPort} }
key_sources: { filesystem: { paths: [${JSON.stringify(values.keys)}] } }
anti_slashing: { backend: sqlite, path: ${JSON.stringify(join(FOLDER, 'slashing_protection.sqlite'))} }
static_auth:
  policies:
    - name: validator-client
      rules:
        - { effect: allow, scopes: [sign, public_keys], keys: ["${values.publicKey}"] }
        - { effect: deny, operations: [VOLUNTARY_EXIT] }
    - name: operator
      rules:
        - { effect: allow, scopes: [chamber_status, chamber_keys_list, slashing_protection] }
  tokens:
    - { name: validator-client, secret: ${values.token}, policies: [validator-client] }
    - { name: operator, secret: ${values.operatorToken}, policies: [operator] }
`;
}

async function post(url: string, body: object): Promise<{ status: number; body: string }> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', accept: 'application/json' };
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
  return { status: response.status, body: await response.text() };
}

/** Resolves when the signer says that its keys are loaded; shows its log on the way. */
async function readyOf(child: ReturnType<typeof spawn>): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  child.once('exit', (code) => reject(new Error(`the signer ended with ${code}`)));
  if (child.stdout !== null) {
    createInterface({ input: child.stdout }).on('line', (line) => {
      process.stdout.write(`  | ${line}\n`);
      if (line.includes(' ready')) resolve();
    });
  }
  await promise;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  if (address === null || typeof address === 'string') throw new Error('no free port');
  return address.port;
}

function expectStatus(answer: { status: number }, status: number): void {
  if (answer.status !== status) throw new Error(`expected ${status}, got ${answer.status}`);
}

function heading(text: string): void {
  process.stdout.write(`\n== ${text}\n`);
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

function relative(path: string): string {
  return path.startsWith(`${ROOT}/`) ? path.slice(ROOT.length + 1) : path;
}
