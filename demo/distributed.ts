// What `make demo-distributed` runs: a key split into four shares, four signers with a share and a slashing store each,
// and a combiner before them, on a chain whose epochs take eight seconds. One signer stops, another comes back with an
// older copy of its records, and the validator goes on; a second vote for a target is refused. Everything it makes is
// under build/demo-distributed and is a TEST key.

import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { PublicKey, SecretKey, Signature, verify } from '@chainsafe/blst';
import { stringify } from 'yaml';
import {
  cleanEnvironment,
  killChildren,
  type RunningSigner,
  runStrongroom,
  startSigner,
  tracked,
} from '../rehearsal/signer.ts';
import { encryptKeystore, newPassword } from '../signer/keys/keystores/encrypt.ts';

const ROOT = join(import.meta.dirname, '..');
const FOLDER = join(ROOT, 'build/demo-distributed');
const TOKEN = `sr_client_${randomBytes(32).toString('base64url')}`;
const SLOTS_PER_EPOCH = 32;
const SLOT_MS = 250;
const EPOCH_MS = SLOTS_PER_EPOCH * SLOT_MS;
/**
 * A signer that came back jumps: it refuses what could have been signed meanwhile, two minutes ahead of the clock,
 * which are fifteen epochs here. So votes are for the latest epoch that a signer takes, as far ahead.
 */
const TOLERANCE_SECONDS = 120;
/** So long ago that there were epochs before it. */
const GENESIS_SECONDS = Math.floor(Date.now() / 1000) - 3600;
const GENESIS_ROOT = `0x${'7e'.repeat(32)}`;
const [VERSION, CAPELLA] = ['0x10000099', '0x40000099'];
const LONGEST_WAIT_MS = 60_000;
const WHICH = [1, 2, 3, 4] as const;

const signers = new Map<number, RunningSigner>();
let url = '';
let epoch = 0;
try {
  const key = SecretKey.fromKeygen(randomBytes(32));
  const publicKey = key.toPublicKey().toHex();
  await splitKey(key);
  for (const id of WHICH) await start(id);
  await startCombiner();
  url += `/api/v1/eth2/sign/${publicKey}`;

  heading('A vote, through the combiner: three partial signatures are one signature of the validator');
  say(`POST ${url}`);
  const first = await signNewVote();
  say(`200 ${first.slice(0, 60)}…`);
  await show(publicKey, first);

  heading('Signer 4 stops');
  await signers.get(4)?.stop();
  say(`its vote: 200 ${(await signNewVote()).slice(0, 60)}…`);

  heading('Signer 4 is back. Signer 1 is killed, and comes back with its folder as it was before the next vote');
  await start(4);
  await signers.get(1)?.kill();
  const [folder, copy] = [folderOf(1), `${folderOf(1)}.copy`];
  cpSync(folder, copy, { recursive: true });
  await start(1);
  say(`a vote for epoch ${epoch + 1}: 200 ${(await signNewVote()).slice(0, 60)}…`);
  await signers.get(1)?.kill();
  rmSync(folder, { recursive: true });
  cpSync(copy, folder, { recursive: true });
  await start(1);

  heading(`A second vote for epoch ${epoch}, of which signer 1 has lost its record`);
  const second = await post(vote(epoch, '99'));
  say(`${second.status} ${second.text}`);
  if (second.status !== 412) throw new Error('a second vote for a target has to be refused');

  heading('Signer 4 stops again: signers 1, 2 and 3 are left, and the votes go on');
  await signers.get(4)?.stop();
  say(`a vote for epoch ${epoch + 1}: 200 ${(await signNewVote()).slice(0, 60)}…`);

  heading('It worked');
  say(`With 3 of 4 one signer may be down, and one may lose its records. What that costs, and when you want it:
docs/guides/distributed-keys.md. The files of this demonstration are in ${relative(ROOT, FOLDER)}.`);
} finally {
  await killChildren();
}

async function splitKey(key: SecretKey): Promise<void> {
  rmSync(FOLDER, { recursive: true, force: true });
  mkdirSync(FOLDER, { recursive: true, mode: 0o700 });
  const [keystore, passwordFile] = [join(FOLDER, 'whole-key.json'), join(FOLDER, 'whole-key.password')];
  const password = newPassword();
  const of = { publicKey: key.toPublicKey().toHex(), description: 'a TEST key of make demo-distributed' };
  const whole = encryptKeystore(key.toBytes(), password, of);
  writeFileSync(keystore, whole, { mode: 0o600 });
  writeFileSync(passwordFile, `${password}\n`, { mode: 0o600 });
  const args = ['--password-file', passwordFile, '--directory', join(FOLDER, 'shares')];
  heading('A key (a TEST key, made just now) becomes four shares');
  const command = ['operator', 'keys', 'split', keystore, '--threshold', '3', '--participants', '4', ...args];
  say(`strongroom ${command.map((word) => relative(ROOT, word) || word).join(' ')}`);
  const { code, stdout, stderr } = await runStrongroom(command);
  say(stdout.replaceAll(`${ROOT}/`, '') + stderr);
  if (code !== 0) throw new Error('the key was not split');
  rmSync(keystore); // who has it needs no signer
}

function folderOf(id: number): string {
  return join(FOLDER, `signer-${id}`);
}

async function start(id: number): Promise<void> {
  const folder = folderOf(id);
  const shares = join(FOLDER, 'shares', `participant-${id}`);
  mkdirSync(folder, { recursive: true });
  const port = signers.get(id) === undefined ? 0 : Number(new URL(signers.get(id)?.url ?? '').port);
  const config = {
    network: 'custom',
    custom_network: {
      genesis_validators_root: GENESIS_ROOT,
      genesis_time: GENESIS_SECONDS,
      slot_duration_ms: SLOT_MS,
      fork_versions: { phase0: VERSION, capella: CAPELLA },
    },
    server: { listen_port: port },
    anti_slashing: { path: join(folder, 'slashing.sqlite'), clock_tolerance_seconds: TOLERANCE_SECONDS },
    key_sources: { filesystem: { keystores: { path: shares, passwords_path: shares } } },
    static_auth: {
      policies: [{ name: 'combiner', rules: [{ effect: 'allow', scopes: ['sign', 'public_keys'] }] }],
      tokens: [{ secret: TOKEN, policies: ['combiner'] }],
    },
  };
  signers.set(id, await startSigner({ folder, config }));
  say(`signer ${id} is ready: ${signers.get(id)?.url}`);
}

async function startCombiner(): Promise<void> {
  const file = join(FOLDER, 'participants.yaml');
  const profiles = [...signers].map(([id, signer]) => [
    `signer-${id}`,
    { signer_url: signer.url, token: TOKEN, allow_plaintext_signer: true },
  ]);
  writeFileSync(file, stringify({ profiles: Object.fromEntries(profiles) }), { mode: 0o600 });
  const args = ['operator', 'tunnel', '--participants', file, '--listen', '127.0.0.1:0'];
  const child = tracked(
    spawn(join(ROOT, 'bin/strongroom'), args, { env: cleanEnvironment(), stdio: ['ignore', 'ignore', 'pipe'] }),
  );
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  child.once('exit', (code) => reject(new Error(`the combiner ended with ${code}`)));
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    say(text.trimEnd().replaceAll(/^/gm, '  | '));
    const [, listening] = /listening on (http:[^;\s]+)/.exec(text) ?? [];
    if (listening !== undefined) resolve(listening);
  });
  url = await promise;
}

function vote(target: number, head: string): object {
  const root = `0x${'33'.repeat(32)}`;
  return {
    type: 'ATTESTATION',
    fork_info: {
      fork: { previous_version: VERSION, current_version: VERSION, epoch: '0' },
      genesis_validators_root: GENESIS_ROOT,
    },
    attestation: {
      slot: String(target * SLOTS_PER_EPOCH),
      index: '0',
      beacon_block_root: `0x${head.repeat(32)}`,
      source: { epoch: String(target - 1), root },
      target: { epoch: String(target), root },
    },
  };
}

async function post(body: object): Promise<{ readonly status: number; readonly text: string }> {
  const headers = { 'content-type': 'application/json', accept: 'text/plain' };
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
  return { status: response.status, text: await response.text() };
}

/** For an epoch that no vote was for: as a validator client does, it votes again in the next when one was refused. */
async function signNewVote(): Promise<string> {
  for (const began = Date.now(); ; ) {
    epoch = Math.max(epoch + 1, Math.floor((Date.now() - startOf(0)) / EPOCH_MS));
    await pause(Math.max(0, startOf(epoch) - Date.now()));
    const { status, text } = await post(vote(epoch, '11'));
    if (status === 200) return text;
    say(`  | epoch ${epoch}: ${status} ${text}`);
    if (Date.now() - began > LONGEST_WAIT_MS) throw new Error('no vote was signed in a minute');
  }
}

/** When a vote for the epoch may be signed, in milliseconds since the Unix epoch. */
function startOf(wanted: number): number {
  return (GENESIS_SECONDS - TOLERANCE_SECONDS) * 1000 + wanted * EPOCH_MS;
}

/** A participant says the root; whether the signature is the validator's is computed here. */
async function show(publicKey: string, signature: string): Promise<void> {
  const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };
  const path = `/api/v1/eth2/distributed/sign/${publicKey}`;
  const body = JSON.stringify(vote(epoch, '11'));
  const response = await fetch(`${signers.get(2)?.url}${path}`, { method: 'POST', headers, body });
  const partial = (await response.json()) as { readonly signing_root: string };
  say(`what signer 2 gives for it alone: ${JSON.stringify(partial).slice(0, 130)}…`);
  const root = Buffer.from(partial.signing_root.slice(2), 'hex');
  const isGood = verify(root, PublicKey.fromHex(publicKey), Signature.fromHex(signature));
  say(`the combined signature verifies against the validator's key: ${isGood ? 'yes' : 'no'}`);
  if (!isGood) throw new Error('the signature does not verify');
}

function heading(text: string): void {
  process.stdout.write(`\n== ${text}\n`);
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}
