// A fleet of plain signers under a custody ceremony: two machines in one region and one that stands by in another, one
// custody key a region, the tables, an identity that opens the root token. The world of the runbooks about custody.
// Signers are the real program with TLS; DynamoDB, KMS with its key policies and the machines are stand-ins. All keys
// are TEST keys.

import { randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { CUSTODY_REGION, type CustodyWorld, startCustody } from '../../rehearsal/custody.ts';
import { type RunningSigner, startSigner } from '../../rehearsal/signer.ts';
import { testKey } from '../../rehearsal/test-key.ts';
import type { PolicyDocument } from '../../setup/policy-document.ts';
import { makeCertificate } from '../support/certificates.ts';
import { ACCOUNT, SIGNER, startGuardedAws } from '../support/guarded-aws.ts';
import { ownAddress } from '../support/own-address.ts';
import { attestation } from '../support/requests.ts';
import { type Answer, ask } from './asking.ts';
import { awsProgram } from './aws.ts';
import { type Host, scpProgram, sshProgram, type Verb } from './hosts.ts';
import { printed } from './printed.ts';
import { Refused } from './programs.ts';
import { type OpenWorld, openWorld } from './world.ts';

export const CONFIGURATION = '/etc/strongroom/strongroom.yaml';
export const STANDBY_REGION = 'eu-west-1';
const REGIONS = [CUSTODY_REGION, STANDBY_REGION, 'us-east-1'];
const KEY = testKey(0);
const EVERYTHING: PolicyDocument = {
  Version: '2012-10-17',
  Statement: [{ Sid: 'Everything', Effect: 'Allow', Action: ['*'], Resource: '*' }],
};

export interface CustodyRunbookWorld extends OpenWorld {
  readonly custody: CustodyWorld;
  readonly table: string;
  readonly arns: readonly string[];
  /** The two that sign; the third is in the other region, and stands by. */
  readonly signers: readonly string[];
  readonly standby: string;
  readonly clientToken: string;
  createKey(): string;
  vote(host: string, target: number): Promise<Answer>;
  ask(host: string, path: string, token: string, body?: object): Promise<Answer>;
  systemctl(host: string, verb: Verb): Promise<void>;
  /** What lies on every machine, and on the reader's as `strongroom.yaml`. */
  configure(change: (configuration: Record<string, unknown>) => void): void;
}

export async function startCustodyRunbooks(): Promise<CustodyRunbookWorld> {
  const custody = await startCustody();
  const folder = mkdtempSync(join(tmpdir(), 'sr-'));
  const table = await custody.createTable();
  const createKey = (region = CUSTODY_REGION): string => {
    const arn = `arn:aws:kms:${region}:111122223333:key/${randomUUID()}`;
    custody.kms.createKey([arn]);
    return arn;
  };
  const arns = REGIONS.map(createKey);
  const addresses = [10, 11, 12].map(ownAddress);
  const [first = '', second = '', standby = ''] = addresses;
  const { cert, key } = makeCertificate(folder, 'signers', addresses.map((address) => `IP:${address}`).join(','));
  const { dynamodb, kms } = custody;
  const guarded = await startGuardedAws({ region: CUSTODY_REGION, dynamodb: dynamodb.endpoint, kms: kms.endpoint });
  const policies = new Map<string, PolicyDocument>();
  guarded.use({ role: EVERYTHING, keys: policies });
  const fleet = createFleet({
    environment: custody.environment(guarded.endpoints),
    folder,
    addresses,
    standby,
    cert,
    key,
  });
  const account = awsProgram(
    { dynamodb: custody.dynamodb.endpoint, kms: custody.kms.endpoint },
    {
      policyOf: (arn) => policies.get(arn),
      putPolicy: (arn, policy) => void policies.set(arn, policy),
      setBehaviour: (arn, behaviour) => custody.kms.setBehaviour(arn, behaviour),
      isEnabled: (arn) => custody.kms.isEnabled(arn),
    },
  );
  const opened = await openWorld({
    folder,
    env: { ...custody.environment(), SVC_OPERATOR_TLS_CA: cert },
    values: {
      SIGNERS: `${first} ${second}`,
      STANDBY: standby,
      STATE_TABLE: table,
      CUSTODY_ADMIN_ROLE: 'custody-admin',
      SIGNER_ROLE: SIGNER,
      AWS_REGION: CUSTODY_REGION,
      STANDBY_REGION,
      SVC_OPERATOR_SIGNER_URL: `https://${first}:9443`,
      SVC_OPERATOR_TOKEN: '@management-token',
    },
    programs: { aws: account.program, ssh: sshProgram(fleet.hosts), scp: scpProgram(fleet.hosts) },
  });
  let configuration = firstConfiguration(table, arns, custody.recipient);
  const configure: CustodyRunbookWorld['configure'] = (change) => {
    change(configuration);
    const text = stringify(configuration, { aliasDuplicateObjects: false });
    configuration = parse(text);
    writeFileSync(join(opened.folder, 'strongroom.yaml'), text);
    for (const host of fleet.hosts.values()) {
      mkdirSync(join(host.folder, 'etc/strongroom/keys'), { recursive: true });
      writeFileSync(join(host.folder, CONFIGURATION), text);
      const descriptor = stringify({ type: 'file-raw', keyType: 'BLS', privateKey: KEY.secret });
      writeFileSync(join(host.folder, 'etc/strongroom/keys/test.yaml'), descriptor);
    }
  };
  configure(() => undefined);
  writeFileSync(join(opened.folder, 'alice.age'), custody.identity, { mode: 0o600 });
  const grant = async (phase: string): Promise<void> => {
    const whose = ['--administrator', `arn:aws:iam::${ACCOUNT}:role/custody-admin`, '--signer', SIGNER];
    const own = await printed('kms-policy', '-c', join(opened.folder, 'strongroom.yaml'), ...whose, '--phase', phase);
    for (const arn of arns) policies.set(arn, own);
  };
  await grant('first-boot');
  for (const host of [first, second]) await fleet.hosts.get(host)?.systemctl('start', 'strongroom');
  await grant('running');
  const root = await custody.rootToken(table);
  const made = async (body: object): Promise<string> => {
    const { status, text } = await ask(first, '/api/v1/auth/tokens', root, body);
    if (status !== 201) throw new Error(`no token: ${status} ${text}`);
    return (JSON.parse(text) as { token: string }).token;
  };
  const rules = [{ effect: 'allow', scopes: ['sign', 'public_keys'] }];
  await ask(first, '/api/v1/auth/policies', root, { name: 'validator-client', rules });
  const clientToken = await made({ policies: ['validator-client'] });
  writeFileSync(join(opened.folder, 'management-token'), await made({ management: true }), { mode: 0o600 });
  return {
    ...opened,
    custody,
    table,
    arns,
    signers: [first, second],
    standby,
    clientToken,
    createKey,
    configure,
    systemctl: async (host, verb) => fleet.hosts.get(host)?.systemctl(verb, 'strongroom'),
    ask,
    vote: (host, target) =>
      ask(host, `/api/v1/eth2/sign/${KEY.publicKey}`, clientToken, attestation({ source: target - 1, target })),
    trouble: fleet.trouble,
    async close() {
      for (const host of fleet.hosts.values()) await host.systemctl('stop', 'strongroom');
      account.close();
      await opened.close();
      await guarded.close();
      await custody.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function firstConfiguration(table: string, arns: readonly string[], recipient: string): Record<string, unknown> {
  return {
    network: 'mainnet',
    signer_state: { backend: 'dynamodb', table, deployment_id: 'mainnet-eu' },
    anti_slashing: { backend: 'dynamodb', table: `${table}-slashing` },
    ceremony: {
      generation: 1,
      kms_threshold: 2,
      kms_keys: arns.map((arn) => ({ arns: [arn] })),
      root_token_recipients: [recipient],
    },
  };
}

interface FleetParts {
  readonly environment: Readonly<Record<string, string>>;
  readonly folder: string;
  readonly addresses: readonly string[];
  readonly standby: string;
  readonly cert: string;
  readonly key: string;
}

interface Fleet {
  readonly hosts: ReadonlyMap<string, Host>;
  trouble(): string | undefined;
}

/** Each machine runs what lies on it; its listeners and its certificate are its own, as flags of a unit would be. */
function createFleet({ environment, folder, addresses, standby, cert, key }: FleetParts): Fleet {
  const failures = new Map<string, string>();
  const hostAt = (address: string): Host => {
    const machine = join(folder, address);
    const region = address === standby ? STANDBY_REGION : CUSTODY_REGION;
    let running: RunningSigner | undefined;
    const start = async (): Promise<void> => {
      const config = parse(readFileSync(join(machine, CONFIGURATION), 'utf8')) as Record<string, unknown>;
      const run = join(machine, 'run');
      mkdirSync(run, { recursive: true });
      failures.delete(address);
      try {
        running = await startSigner({
          folder: run,
          env: { ...environment, AWS_REGION: region },
          waitFor: 'listening',
          config: {
            ...config,
            key_sources: { filesystem: { paths: [join(machine, 'etc/strongroom/keys')] } },
            server: { listen_address: address, listen_port: 9000 },
            tls: { mode: 'file', listen_address: address, listen_port: 9443, file: { cert_path: cert, key_path: key } },
          },
        });
      } catch (error) {
        failures.set(address, String(error));
      }
    };
    return {
      folder: machine,
      async systemctl(verb, service) {
        if (service !== 'strongroom') throw new Refused(`Unit ${service}.service not found.`, 5);
        if (verb !== 'start') {
          await running?.stop();
          running = undefined;
        }
        if (verb !== 'stop' && running === undefined) await start();
      },
    };
  };
  return {
    hosts: new Map(addresses.map((address) => [address, hostAt(address)])),
    trouble: () => [...failures].map(([address, failure]) => `${address}: ${failure}`).join('\n') || undefined,
  };
}
