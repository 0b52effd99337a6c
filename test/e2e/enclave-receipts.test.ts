// The log of receipts of the enclave's program: its key is in a document of the security module, it is kept in the
// state table, and an auditor who has the reference values finds it attested and whole, over a kill and a restart too.
// TEST keys, documents of an emulated NSM.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readCoseSign1, readPayload } from '../../common/attestation/document.ts';
import { verifyDocument } from '../../common/attestation/verify.ts';
import { readIdentity } from '../../common/receipts/read-identity.ts';
import type { DocumentJudge } from '../../common/receipts/verify.ts';
import { dynamoDBClientOptions } from '../../rehearsal/dynamodb.ts';
import { createDynamoDBClient, type DynamoDBClient } from '../../signer/aws/dynamodb.ts';
import { receiptsInStateTable } from '../../signer/receipts/state-table.ts';
import { faultsOf, headOf, keptBoots } from '../receipts/kept.ts';
import { type AttestedClient, attested, registersOf, testProvider } from '../support/attested-client.ts';
import type { Parent } from '../support/enclave-parent.ts';
import type { EnclaveProcess } from '../support/enclave-process.ts';
import { type EnclaveWorld, startEnclaveWorld } from '../support/enclave-world.ts';
import { attestation } from '../support/messages.ts';

let world: EnclaveWorld;
let tables: DynamoDBClient;
let running: { readonly parent: Parent; readonly enclave: EnclaveProcess; readonly client: AttestedClient } | undefined;
let registers: ReturnType<typeof registersOf>;

beforeAll(async () => {
  world = await startEnclaveWorld();
  tables = createDynamoDBClient(dynamoDBClientOptions(world.custody.dynamodb.endpoint));
});
afterAll(async () => {
  await end('kill');
  tables.destroy();
  await world.close();
});

async function start(): Promise<AttestedClient> {
  const parent = await world.startParent(world.yaml({ receipts: { storage: 'state_table', interval_seconds: 1 } }));
  const enclave = await world.startEnclave();
  await parent.readyToSign();
  registers = registersOf(enclave.nsm);
  const client = await attested(parent.tlsUrl, world.pki, registers);
  running = { parent, enclave, client };
  return client;
}

async function end(how: 'stop' | 'kill'): Promise<void> {
  await running?.client.close();
  await running?.enclave[how]();
  await running?.parent.close();
  running = undefined;
}

const storage = () => receiptsInStateTable(tables, world.stateTable);

/** Each document at its own time, as an auditor judges it who has the registers of the image. */
const accepts =
  (referenceValues: typeof registers): DocumentJudge =>
  (document, expectedUserData) => {
    const at = readPayload(readCoseSign1(document).payload).timestamp;
    const options = { provider: testProvider(world.pki), at, maxAgeSeconds: 0, expectedUserData, referenceValues };
    return verifyDocument(document, options).expected;
  };

describe('an enclave with receipts in its state table', () => {
  it('keeps a log that its image is attested for, over a kill and a restart', async () => {
    const client = await start();
    const root = await world.custody.rootToken(world.stateTable);
    await client.call('/api/v1/auth/policies', { token: root, body: { name: 'all', rules: [{ effect: 'allow' }] } });
    const made = await client.call('/api/v1/auth/tokens', { token: root, body: { policies: ['all'] } });
    const token = made.json['token'] as string;
    const generated = await client.call('/api/v1/chamber/keys/generate-keys', { token, body: { count: 1 } });
    const [{ pubkey }] = generated.json['keys'] as [{ pubkey: string }];
    const vote = (by: AttestedClient, target: number) =>
      by.call(`/api/v1/eth2/sign/${pubkey}`, { token, body: attestation({ source: target - 1, target }) });
    expect((await vote(client, 41)).status).toBe(200);
    expect((await vote(client, 40)).status).toBe(412);
    const covered = async (by: AttestedClient) => headOf((await by.call('/api/v1/receipts/head', { token })).text);
    await expect.poll(async () => (await covered(client)).size).toBe(2);
    const { statement } = await covered(client);
    expect(statement.slashing?.store).toMatch(/^dynamodb:/);
    expect(statement.slashing?.revision).toMatch(/^binding:\d+$/);
    expect(statement.latch).toBe('open');
    expect(statement.auth_revision).toBeGreaterThan(0);
    expect((await covered(client)).kind).toBe('attested');
    await end('kill');
    expect(await faultsOf(storage(), accepts(registers))).toEqual(['open_end']);

    const next = await start();
    const again = await next.call(`/api/v1/receipts/boots`, { token });
    expect((again.json['boots'] as string[]).length).toBe(2);
    await end('stop');
    expect(await faultsOf(storage(), accepts(registers))).toEqual(['open_end']);
    const [, killed] = await keptBoots(storage());
    const [latest] = await keptBoots(storage());
    const { before } = headOf(latest?.heads[0]).statement;
    expect(before).toEqual({ heads: [headOf(killed?.heads.at(-1)).digest], gap: null });
    expect(headOf(latest?.heads.at(-1)).statement.closed).toBe(true);
    expect(readIdentity(latest?.identity ?? '')?.kind).toBe('attested');

    // Another image has not made it.
    const others = new Map([...registers, [0, ['ab'.repeat(48)]]] as [number, readonly string[]][]);
    expect(await faultsOf(storage(), accepts(others))).toEqual(['not_attested', 'open_end']);
  });
});
