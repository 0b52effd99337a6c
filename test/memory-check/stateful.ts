// `make check-memory`, second part: a signer with a signer state and a key table over DynamoDB and KMS (stand-ins). It
// unseals, is given policies, a token and keystores, signs, and is searched for the master key, its shares as KMS gave
// them, its sub-keys, the tokens that are hashed, and the keys of its table. The test opens the record of the master
// key itself, as a signer does. It stands alone because it has a world of its own. TEST secrets only.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { ceremonyArns, parseCeremony } from '../../ceremony/definition.ts';
import { unwrapMasterKey } from '../../ceremony/key-record.ts';
import { deriveSubKey, parseRecord } from '../../ceremony/record.ts';
import { type CustodyWorld, startCustody } from '../../rehearsal/custody.ts';
import { kmsClientOptions } from '../../rehearsal/kms/server.ts';
import { startSigner } from '../../rehearsal/signer.ts';
import { createKms, custodyKeysOf } from '../../signer/aws/kms.ts';
import { PURPOSES } from '../../signer/chamber/master-key.ts';
import { decodeMasterKey } from '../../signer/chamber/state-rows.ts';
import { keyTableDefinition } from '../../signer/keys/table/definition.ts';
import { encryptKeystore, publicKeyOf, testSecret } from '../support/keys.ts';
import { PATIENT } from '../support/patience.ts';
import { recordingLog } from '../support/recording-log.ts';
import { attestation, call, signCall } from '../support/requests.ts';
import { dumpedProgram } from './core.ts';
import { encodings, type Secret, search, searchCore, TAKES_SNAPSHOTS, texts } from './search.ts';

const PASSWORD = 'TEST password of a keystore for the table 0005';
const KEY_TABLE = 'memory-check-keys';
const ROUNDS = 200;
const KEYS = '/api/v1/chamber/keys';
/** Until a vote of a key that was imported is signed. */
const TRIES = 600;

export async function searchStateful(isDumped: boolean): Promise<string[]> {
  const world = await startCustody();
  const folder = mkdtempSync(join(tmpdir(), 'memory-check-'));
  try {
    return await searchIn(world, folder, isDumped);
  } finally {
    rmSync(folder, { recursive: true, force: true });
    await world.close();
  }
}

async function searchIn(world: CustodyWorld, folder: string, isDumped: boolean): Promise<string[]> {
  const table = await world.createTable();
  await world.dynamodb.createTable(keyTableDefinition(KEY_TABLE));
  const ceremony = world.createCeremony();
  const signer = await startSigner({
    folder,
    ...(isDumped ? { program: dumpedProgram(folder) } : {}),
    config: {
      ...world.configuration(table, ceremony),
      key_sources: { dynamodb: { table: KEY_TABLE } },
      chamber: { keys: { import: { enabled: true }, lifecycle: { enabled: true } } },
      server: { mlock: 'required' },
    },
    env: { ...world.environment(), ...TAKES_SNAPSHOTS },
    keepsLog: false,
  });
  try {
    const root = await world.rootToken(table);
    const [kept, removed] = [9_101, 9_102].map((number) => testSecret(number)) as [Uint8Array, Uint8Array];
    const token = await use(signer.url, root, { kept, removed });
    const { masterKey, shares } = await masterKeyOf(world, table, ceremony);
    const secrets: Secret[] = [
      { name: 'master key', allowed: 'locked', patterns: encodings(masterKey) },
      ...shares.map((share, index): Secret => {
        // KMS is told and tells them as base64 in HTTP bodies, which nobody can wipe.
        return { name: `share ${index + 1} of the master key`, allowed: 'told', patterns: encodings(share) };
      }),
      ...Object.entries(PURPOSES).map(([name, purpose]): Secret => {
        return { name: `sub-key ${name}`, allowed: 'told', patterns: encodings(deriveSubKey(masterKey, purpose)) };
      }),
      { name: 'key of the table', allowed: 'locked', patterns: encodings(kept) },
      { name: 'key that was removed from the table', allowed: 'nowhere', patterns: encodings(removed) },
      { name: 'password of an import into the table', allowed: 'told', patterns: texts(PASSWORD) },
      { name: 'root token, after 2 requests', allowed: 'told', patterns: texts(root) },
      { name: `token of a client, after ${3 * ROUNDS} requests`, allowed: 'told', patterns: texts(token) },
    ];
    return await (isDumped ? searchCore : search)(signer, folder, secrets);
  } finally {
    await signer.kill();
  }
}

/** @returns the token that signed */
async function use(
  url: string,
  root: string,
  { kept, removed }: { readonly kept: Uint8Array; readonly removed: Uint8Array },
): Promise<string> {
  await call(`${url}/api/v1/auth/policies`, { token: root, body: { name: 'all', rules: [{ effect: 'allow' }] } });
  const made = await call(`${url}/api/v1/auth/tokens`, { token: root, body: { policies: ['all'] } });
  const token = String(made.json['token']);
  const keystores = [kept, removed].map((secret) => encryptKeystore(secret, PASSWORD));
  const body = { keystores, passwords: [PASSWORD, PASSWORD], storage: { persist: true } };
  const answer = await call(`${url}${KEYS}`, { token, body });
  if (answer.text.split('"imported"').length !== 3) throw new Error(`the import failed: ${answer.text}`);
  for (const secret of [kept, removed]) {
    for (let target = 1; target <= ROUNDS; target++) {
      await signedVote(url, publicKeyOf(secret), target, token);
    }
  }
  await call(`${url}${KEYS}`, { token, method: 'DELETE', body: { pubkeys: [publicKeyOf(removed)] } });
  await pause(2_000);
  return token;
}

/** A store that is new waits before its first vote. */
async function signedVote(url: string, publicKey: string, target: number, token: string): Promise<void> {
  for (let left = TRIES; ; left--) {
    const { status, text } = await signCall(url, publicKey, attestation({ source: target - 1, target }), { token });
    if (status === 200) return;
    if (left === 0 || status !== 503) throw new Error(`a vote got ${status}: ${text}`);
    await pause(500);
  }
}

interface Opened {
  readonly masterKey: Buffer;
  readonly shares: readonly Buffer[];
}

async function masterKeyOf(world: CustodyWorld, table: string, block: object): Promise<Opened> {
  const ceremony = parseCeremony(block);
  const row = decodeMasterKey(await world.row(table, 'MASTER_KEY'));
  const record = row && parseRecord(row.record);
  if (record === undefined) throw new Error('the state table has no master key');
  const kms = createKms(kmsClientOptions(world.kms, ceremonyArns(ceremony), PATIENT), { log: recordingLog() });
  const shares: Buffer[] = [];
  const custodyKeys = custodyKeysOf(kms);
  const opened = await unwrapMasterKey(
    record,
    { ceremony, deployment: record.deployment },
    {
      ...custodyKeys,
      async decryptShare(...asked) {
        const answer = await custodyKeys.decryptShare(...asked);
        if (answer.ok) shares.push(Buffer.from(answer.bytes));
        return answer;
      },
    },
  );
  kms.close();
  if (!opened.ok) throw new Error('the master key does not open');
  return { masterKey: opened.masterKey, shares };
}
