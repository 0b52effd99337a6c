// The machine of a signer with a signer state: tokens and policies in a table under custody keys, and a key table
// beside its key files. DynamoDB and KMS are stand-ins. The reader has a management token.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { vi } from 'vitest';
import { parse } from 'yaml';
import { type CustodyWorld, startCustody } from '../../rehearsal/custody.ts';
import { type RunningSigner, startSigner } from '../../rehearsal/signer.ts';
import { testKey } from '../../rehearsal/test-key.ts';
import { keyTableDefinition } from '../../signer/keys/table/definition.ts';
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts';
import { ownAddress } from '../support/own-address.ts';
import { LONGEST_WAIT_MS } from '../support/patience.ts';
import { presentSlot } from '../support/present.ts';
import { ask } from './asking.ts';
import { awsProgram } from './aws.ts';
import { type ServiceWorld, startServiceRunbooks } from './service-world.ts';

/** Long enough for the wait for whoever may still sign, and for the slot after the jump. */
const WAIT = { timeout: LONGEST_WAIT_MS, interval: 500 };

export interface Client {
  readonly token: string;
  readonly accessor: string;
}

export interface StatefulWorld extends ServiceWorld {
  readonly custody: CustodyWorld;
  readonly table: string;
  /** Between the signer and its tables. */
  readonly tables: FaultProxy;
  readonly client: Client;
  readonly root: string;
  readonly arns: readonly string[];
  readonly peerAddress: string;
  /** A second replica of the fleet, with the configuration of the first. */
  startPeer(): Promise<RunningSigner>;
  metric(name: string): Promise<number>;
  /**
   * The key proposes, once it may, a block of the present: whoever did not end in order waits, and jumps first.
   * @returns its slot
   */
  signs(key: string, options?: { readonly token?: string }): Promise<number>;
  createToken(body: object): Promise<Client>;
}

export async function startStatefulRunbooks({
  slashing,
}: {
  /** In place of sqlite: the store of a fleet. */
  readonly slashing?: 'dynamodb';
} = {}): Promise<StatefulWorld> {
  const peerAddress = ownAddress(21);
  const custody = await startCustody();
  const table = await custody.createTable();
  await custody.dynamodb.createTable(keyTableDefinition(`${table}-keys`));
  const tables = await startFaultProxy(custody.dynamodb.endpoint);
  const ceremony = custody.createCeremony();
  const { signer_state, anti_slashing } = custody.configuration(table, ceremony);
  const account = awsProgram(
    { dynamodb: custody.dynamodb.endpoint, kms: custody.kms.endpoint },
    {
      policyOf: () => undefined,
      putPolicy: () => undefined,
      setBehaviour: (arn, behaviour) => custody.kms.setBehaviour(arn, behaviour),
      isEnabled: (arn) => custody.kms.isEnabled(arn),
    },
  );
  const world = await startServiceRunbooks({
    programs: { aws: account.program },
    sections: {
      ...{ signer_state, ceremony, static_auth: undefined, chamber: { keys: { lifecycle: { enabled: true } } } },
      canary_keys: [testKey(2).publicKey],
      ...(slashing === undefined ? {} : { anti_slashing }),
    },
    env: custody.environment({ dynamodb: tables.endpoint }),
  });
  world.configure((all) => {
    const { filesystem } = all['key_sources'] as { filesystem: object };
    all['key_sources'] = { filesystem, dynamodb: { table: `${table}-keys` } };
  });
  await world.unit.start();
  const root = await custody.rootToken(table);
  const createToken = async (body: object): Promise<Client> => {
    const { status, text } = await ask(world.address, '/api/v1/auth/tokens', root, body);
    if (status !== 201) throw new Error(`no token: ${status} ${text}`);
    return JSON.parse(text) as Client;
  };
  const rules = [{ effect: 'allow', scopes: ['sign', 'public_keys'] }];
  await ask(world.address, '/api/v1/auth/policies', root, { name: 'validator-client', rules });
  const scopes = ['chamber_keys_list', 'chamber_keys_delete'];
  await ask(world.address, '/api/v1/auth/policies', root, { name: 'key-admin', rules: [{ effect: 'allow', scopes }] });
  writeFileSync(join(world.etc, 'key-admin-token'), (await createToken({ policies: ['key-admin'] })).token, {
    mode: 0o600,
  });
  const client = await createToken({ policies: ['validator-client'] });
  writeFileSync(join(world.folder, '../operator-token'), (await createToken({ management: true })).token);
  return {
    ...world,
    custody,
    table,
    tables,
    client,
    root,
    createToken,
    arns: ceremony.kms_keys.flatMap(({ arns }) => arns),
    peerAddress,
    async startPeer() {
      const folder = join(world.folder, 'peer');
      mkdirSync(folder);
      const config = parse(readFileSync(join(world.etc, 'strongroom.yaml'), 'utf8'));
      const address = { listen_address: peerAddress };
      for (const section of ['server', 'metrics', 'tls']) Object.assign(config[section], address);
      return startSigner({ folder, config, env: custody.environment() });
    },
    async metric(name) {
      const text = await (await fetch(`http://${world.address}:3000/metrics`)).text();
      const found = [...text.matchAll(new RegExp(`^${name}(?:\\{.*\\})? (\\d+)`, 'gm'))];
      return found.reduce((sum, [, value]) => sum + Number(value), 0);
    },
    values: { ...world.values, STATE_TABLE: table },
    vote: (key, target, options = {}) => world.vote(key, target, { token: client.token, ...options }),
    propose: (key, slot, options = {}) => world.propose(key, slot, { token: client.token, ...options }),
    signs: (key, options) =>
      vi.waitFor(async () => {
        const slot = presentSlot();
        const outcome = await world.propose(key, slot, { token: client.token, ...options });
        if (outcome !== 'signed') throw new Error(`the block of slot ${slot} is not signed: ${outcome}`);
        return slot;
      }, WAIT),
    async close() {
      await world.close();
      account.close();
      await tables.close();
      await custody.close();
    },
  };
}
