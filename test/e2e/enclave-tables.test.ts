// Whose credentials an enclave's tables are called with, and which tables: sealed credentials that this image, this
// configuration and this ceremony open and nothing else, and tables by ARN, which the parent's choice of credentials
// does not move. KMS verifies documents; that DynamoDB keeps accounts apart is AWS's word, which the proxy repeats.

import { createHash } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { extendedOnce } from '../../common/formats/register.ts';
import { CUSTODY_REGION } from '../../rehearsal/custody.ts';
import { kmsClientOptions } from '../../rehearsal/kms/server.ts';
import { createNsmEmulator, testPcr } from '../../rehearsal/nsm/emulator.ts';
import { createKms } from '../../signer/aws/kms.ts';
import { TABLE_CREDENTIALS_CONTEXT } from '../../signer/aws/table-credentials.ts';
import { parseTableArn } from '../../signer/aws/table-name.ts';
import { type AttestedClient, attested, registersOf } from '../support/attested-client.ts';
import { PARENT_ACCESS_KEY_ID, type Parent } from '../support/enclave-parent.ts';
import type { EnclaveProcess } from '../support/enclave-process.ts';
import { type EnclaveWorld, slashingSection, startEnclaveWorld } from '../support/enclave-world.ts';
import { recordingLog } from '../support/recording-log.ts';
import { attestation } from '../support/requests.ts';
import { someOf } from '../support/scale.ts';
import { startTableProxy, type TableProxy } from '../support/table-proxy.ts';

const ACCOUNT = '111122223333';
const PARENTS_OTHER_ACCOUNT = '999988887777';
const SEALED_ACCESS_KEY_ID = 'AKIATESTOFTHETABLES0';
const SEALED_SECRET = 'TEST-secret-of-the-sealed-credentials';
const SEALED = { access_key_id: SEALED_ACCESS_KEY_ID, secret_access_key: SEALED_SECRET };

let world: EnclaveWorld;
let tables: TableProxy;
let keyArn: string;
let parentsAccount = ACCOUNT;
const started: { parent: Parent; enclave: EnclaveProcess; client?: AttestedClient }[] = [];

beforeAll(async () => {
  world = await startEnclaveWorld();
  keyArn = world.ceremony.kms_keys[0]?.arns[0] ?? '';
  tables = await startTableProxy(world.custody.dynamodb.endpoint, {
    region: CUSTODY_REGION,
    serverAccount: ACCOUNT,
    accountOf: (accessKeyId) => (accessKeyId === PARENT_ACCESS_KEY_ID ? parentsAccount : ACCOUNT),
  });
});
afterEach(async () => {
  parentsAccount = ACCOUNT;
  await stopAll();
});
afterAll(async () => {
  await tables?.close();
  await world?.close();
});

async function stopAll(): Promise<void> {
  for (const { parent, enclave, client } of started.splice(0)) {
    await client?.close();
    await enclave.stop(); // in order: the next start joins its store without a jump
    await parent.close();
  }
}

async function sealed(contents: unknown, context = TABLE_CREDENTIALS_CONTEXT): Promise<string> {
  const kms = createKms(kmsClientOptions(world.custody.kms, [keyArn]), { log: recordingLog() });
  const text = typeof contents === 'string' ? contents : JSON.stringify(contents);
  const answer = await kms.encrypt([keyArn], Buffer.from(text), context);
  kms.close();
  if (!answer.ok) throw new Error('the stand-in encrypts');
  return answer.bytes.toString('base64');
}

const arnOf = (table: string) => `arn:aws:dynamodb:${CUSTODY_REGION}:${ACCOUNT}:table/${table}`;

/** A bound of ten minutes: however slow the machine, the start before has ended in order within it. */
const signerState = (table: string) => ({ backend: 'dynamodb', table, refresh_interval_seconds: 120 });

function yamlOf(sections: Record<string, unknown> = {}): string {
  return world.yaml({ signer_state: signerState(world.stateTable), ...sections });
}

function yamlWith(tableCredentials: object | undefined, sections: Record<string, unknown> = {}): string {
  const { tee } = JSON.parse(JSON.stringify(parsed())) as { tee: { nitro: Record<string, unknown> } };
  if (tableCredentials !== undefined) {
    tee.nitro['table_credentials'] = tableCredentials;
    delete tee.nitro['unsafe_parent_writes_tables'];
  }
  return yamlOf({ ...sections, tee });
}

function parsed(): { tee: unknown } {
  return parse(yamlOf()) as { tee: unknown };
}

async function start(yaml: string, nsm?: Awaited<ReturnType<typeof createNsmEmulator>>) {
  const parent = await world.startParent(yaml, { dynamodb: tables.endpoint });
  const enclave = await world.startEnclave(nsm === undefined ? {} : { nsm });
  const running: (typeof started)[number] = { parent, enclave };
  started.push(running);
  return running;
}

async function startReady(yaml: string): Promise<AttestedClient> {
  const running = await start(yaml);
  await running.parent.said('ready');
  running.client = await attested(running.parent.tlsUrl, world.pki, registersOf(running.enclave.nsm));
  return running.client;
}

async function tokenFor({ call }: AttestedClient, root: string): Promise<string> {
  // or it is there
  await call('/api/v1/auth/policies', { token: root, body: { name: 'all', rules: [{ effect: 'allow' }] } });
  const { status, json } = await call('/api/v1/auth/tokens', { token: root, body: { policies: ['all'] } });
  expect(status).toBe(201);
  return String(json['token']);
}

async function failureOf(yaml: string, nsm?: Awaited<ReturnType<typeof createNsmEmulator>>): Promise<string> {
  const { parent, enclave } = await start(yaml, nsm);
  expect(await enclave.exited).not.toBe(0);
  expect(JSON.stringify(parent.lines) + enclave.console()).not.toContain(SEALED_SECRET);
  const said = parent.lines.slice(-3).map((line) => JSON.stringify(line));
  await stopAll();
  return said.join('\n');
}

describe('sealed table credentials', () => {
  it('call every table and encrypt the shares: the parent sees them never, and only decrypts', async () => {
    const from = tables.calls.length;
    const kmsFrom = world.custody.kms.calls.length;
    const yaml = yamlWith({ ciphertext: await sealed(SEALED), key_arn: keyArn });
    const client = await startReady(yaml);
    const root = await world.custody.rootToken(world.stateTable);
    const token = await tokenFor(client, root);
    const made = await client.call('/api/v1/chamber/keys/generate-keys', { token, body: { count: 1 } });
    const path = `/api/v1/eth2/sign/${(made.json['keys'] as [{ pubkey: string }])[0].pubkey}`;
    expect((await client.call(path, { token, body: attestation() })).status).toBe(200);

    const calls = tables.calls.slice(from);
    expect(new Set(calls.flatMap((call) => call.tables))).toEqual(
      new Set([world.stateTable, `${world.stateTable}-keys`, `${world.stateTable}-slashing`]),
    );
    expect(new Set(calls.map(({ accessKeyId }) => accessKeyId))).toEqual(new Set([SEALED_ACCESS_KEY_ID]));
    const opened = world.custody.kms.calls.slice(kmsFrom).find(({ operation }) => operation === 'Decrypt');
    expect(opened).toMatchObject({ arn: keyArn, accessKeyId: PARENT_ACCESS_KEY_ID });
    expect(opened?.document).toBeDefined();
    // A first boot: the shares of a new master key.
    const calledBy = (operation: string) =>
      new Set(
        world.custody.kms.calls
          .slice(kmsFrom + 1)
          .filter((call) => call.operation === operation)
          .map(({ accessKeyId }) => accessKeyId),
      );
    expect(calledBy('Encrypt')).toEqual(new Set([SEALED_ACCESS_KEY_ID]));
    expect(calledBy('Decrypt')).toEqual(new Set([PARENT_ACCESS_KEY_ID]));
    for (const { parent, enclave } of started) {
      expect(JSON.stringify(parent.lines) + enclave.console()).not.toContain(SEALED_SECRET);
    }

    const status = await client.call('/api/v1/chamber/status', { token });
    expect(status.status).toBe(200);
    expect(status.json['slashing']).toMatchObject({
      store: expect.stringMatching(/^[0-9a-f]{32}$/),
      bound: true,
      jumped_at_boot: null,
      warning: expect.stringContaining('sealed credentials'),
    });
    expect(status.json['tee']).toMatchObject({ parent_writes_tables: false });
  });

  it('are asked for: without them nothing starts, but by a word that the start and the status repeat', async () => {
    const from = tables.calls.length;
    const { tee, ...rest } = parse(yamlOf()) as { tee: { nitro: Record<string, unknown> } };
    const { unsafe_parent_writes_tables: _unsafe, ...nitro } = tee.nitro;
    const failure = await failureOf(yamlOf({ ...rest, tee: { ...tee, nitro } }));
    expect(failure).toMatch(/"tee\.nitro\.table_credentials","problem":"is missing/);
    expect(tables.calls.slice(from)).toEqual([]);
    const { call } = await startReady(yamlOf());
    const [{ parent } = { parent: undefined }] = started;
    expect(JSON.stringify(parent?.lines)).toContain('whoever controls the parent instance writes the tables');
    const token = await world.custody.rootToken(world.stateTable);
    const status = await call('/api/v1/chamber/status', { token });
    expect(status.json['tee']).toMatchObject({ parent_writes_tables: true });
    expect(new Set(tables.calls.slice(from).map(({ accessKeyId }) => accessKeyId))).toEqual(
      new Set([PARENT_ACCESS_KEY_ID]),
    );
  });

  it('open for the registers of the key policy alone: no other image, and no other configuration', async () => {
    const yaml = yamlWith({ ciphertext: await sealed(SEALED), key_arn: keyArn });
    const pcr16 = extendedOnce(createHash('sha384').update(yaml).digest());
    world.custody.kms.requireAttestation(keyArn, {
      'kms:RecipientAttestation:PCR0': [testPcr(0).toString('hex')],
      'kms:RecipientAttestation:PCR16': [pcr16.toString('hex')],
    });
    try {
      await startReady(yaml);
      await stopAll();
      const from = tables.calls.length;
      const otherImage = await createNsmEmulator({ pki: world.pki, pcrs: { 0: Buffer.alloc(48, 7) } });
      expect(await failureOf(yaml, otherImage)).toMatch(
        /credentials: tee\.nitro\.table_credentials.*attestation policy/,
      );
      expect(await failureOf(`${yaml}\n# another configuration\n`)).toMatch(/attestation policy mismatch/);
      expect(tables.calls.slice(from)).toEqual([]);
    } finally {
      world.custody.kms.requireAttestation(keyArn, {});
    }
  });

  const unusable: readonly (readonly [string, () => Promise<string>, RegExp])[] = [
    [
      'another context',
      () => sealed(SEALED, { service: 'strongroom' }),
      /service=strongroom,purpose=table-credentials/,
    ],
    ['another ciphertext', async () => Buffer.alloc(200, 1).toString('base64'), /did not make this ciphertext/],
    ['no JSON', () => sealed('AKIA:secret'), /is not JSON/],
    ['a member that nobody knows', () => sealed({ ...SEALED, account: '1' }), /has other members/],
    ['a member twice', () => sealed(`{"access_key_id":"a",${JSON.stringify(SEALED).slice(1)}`), /is not JSON/],
    ['a secret of another form', () => sealed({ ...SEALED, secret_access_key: 'a b' }), /has other members/],
  ];
  it.each(someOf(unusable, 2))('end the start when it is %s', async (_what, ciphertext, expected) => {
    expect(await failureOf(yamlWith({ ciphertext: await ciphertext(), key_arn: keyArn }))).toMatch(expected);
  });

  it('are refused under a key outside the ceremony, which is not called', async () => {
    const other = world.custody.createKey();
    const from = world.custody.kms.calls.length;
    const failure = await failureOf(yamlWith({ ciphertext: await sealed(SEALED), key_arn: other }));
    expect(failure).toContain('is not a custody key of the ceremony');
    expect(world.custody.kms.calls.slice(from).some(({ arn }) => arn === other)).toBe(false);
  });
});

describe('tables by ARN', () => {
  const pinned = () => ({
    signer_state: signerState(arnOf(world.stateTable)),
    key_sources: { dynamodb: { table: arnOf(`${world.stateTable}-keys`) } },
    anti_slashing: slashingSection(world.stateTable, {
      table: arnOf(`${world.stateTable}-slashing`),
      jump_at_boot: false,
    }),
  });

  it('are those of that account in every call, for state, keys and slashing protection', async () => {
    const from = tables.calls.length;
    const client = await startReady(yamlWith(undefined, pinned()));
    const root = await world.custody.rootToken(world.stateTable); // of the start before: pinning renames no deployment
    const token = await tokenFor(client, root);
    const made = await client.call('/api/v1/chamber/keys/generate-keys', { token, body: { count: 3 } });
    const keys = (made.json['keys'] as { pubkey: string }[]).map(({ pubkey }) => pubkey);
    for (const target of [11, 12]) {
      const body = attestation({ source: 10, target });
      const answers = await Promise.all(keys.map((key) => client.call(`/api/v1/eth2/sign/${key}`, { token, body })));
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    }
    const calls = tables.calls.slice(from);
    expect(calls.flatMap((call) => call.tables).filter((table) => parseTableArn(table)?.account !== ACCOUNT)).toEqual(
      [],
    );
    const operations = new Set(calls.map(({ operation }) => operation));
    for (const operation of ['BatchGetItem', 'DescribeTable', 'GetItem', 'PutItem', 'Query', 'TransactWriteItems']) {
      expect(operations).toContain(operation);
    }
    expect(operations).not.toContain('BatchExecuteStatement');
  });

  it('are not those of another account whose credentials the parent gives: by name they would be', async () => {
    parentsAccount = PARENTS_OTHER_ACCOUNT;
    const from = tables.calls.length;
    expect(await failureOf(yamlWith(undefined, pinned()))).toMatch(/access is denied/);
    const named = tables.calls.slice(from).flatMap((call) => call.tables);
    expect(named.every((table) => parseTableArn(table)?.account === ACCOUNT)).toBe(true);
    // By name the service looks in the account of the credentials: here an empty one, which a parent could fill.
    expect(await failureOf(yamlOf())).toMatch(/does not exist/);
  });

  it('are refused in another region than the declared endpoint’s', async () => {
    const table = arnOf(world.stateTable).replace(CUSTODY_REGION, 'us-east-1');
    const failure = await failureOf(yamlWith(undefined, { ...pinned(), signer_state: { backend: 'dynamodb', table } }));
    expect(failure).toMatch(/"signer_state\.table","problem":"is an ARN of us-east-1/);
  });
});
