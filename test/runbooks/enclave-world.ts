// A lone enclave with its parent on a machine of its own, with sealed table credentials, and an account whose policies
// count: the world of the runbooks about images and registers. The program, the parent proxy and the operator's
// commands are the real ones; the module, KMS, DynamoDB and the machine are stand-ins. An image is a file that says
// what would be measured.

import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { stringify } from 'yaml';
import { ceremonyDigest, parseCeremony } from '../../ceremony/definition.ts';
import { extendedOnce } from '../../common/formats/register.ts';
import { CUSTODY_REGION } from '../../rehearsal/custody.ts';
import { saidBy } from '../../rehearsal/kms/attestation.ts';
import { kmsClientOptions } from '../../rehearsal/kms/server.ts';
import { createNsmEmulator } from '../../rehearsal/nsm/emulator.ts';
import type { PolicyDocument } from '../../setup/policy-document.ts';
import { createKms } from '../../signer/aws/kms.ts';
import { TABLE_CREDENTIALS_CONTEXT } from '../../signer/aws/table-credentials.ts';
import { attested, registersOf } from '../support/attested-client.ts';
import type { Parent } from '../support/enclave-parent.ts';
import type { EnclaveProcess } from '../support/enclave-process.ts';
import { type EnclaveWorld, startEnclaveWorld } from '../support/enclave-world.ts';
import {
  ACCOUNT,
  type GuardedAws,
  SIGNER,
  startGuardedAws,
  TABLE_USER,
  TABLE_USER_ACCESS_KEY_ID,
  TABLE_USER_KEYS,
} from '../support/guarded-aws.ts';
import { ownAddress } from '../support/own-address.ts';
import { recordingLog } from '../support/recording-log.ts';
import { type AccessKeys, awsProgram } from './aws.ts';
import { type Host, scpProgram, sshProgram } from './hosts.ts';
import { printed } from './printed.ts';
import { Refused, writeScript } from './programs.ts';
import { type OpenWorld, openWorld, ROOT } from './world.ts';

export const IMAGE = '/opt/strongroom/image/strongroom.eif';
export const CONFIGURATION = '/etc/strongroom/strongroom.yaml';
const ADMINISTRATOR = `arn:aws:iam::${ACCOUNT}:role/custody-admin`;
const HOME = ['--account', ACCOUNT, '--region', CUSTODY_REGION];
const HOST_NUMBER = 9;

export interface EnclaveRunbookWorld extends OpenWorld {
  /** PCR0 of the image that the machine runs; `undefined` when it runs none. */
  runningPcr0(): string | undefined;
  trouble(): string | undefined;
  /** A fresh start of the machine with these files: whether it comes up. */
  comesUp(folder: string): Promise<boolean>;
  /** As it is before a page begins: the keys allow this release alone, and it runs. */
  settle(folder: string): Promise<void>;
  /** A folder for the reader with `image.eif`, `pcrs.json` and `strongroom.yaml`. */
  makeRelease(folder: string, options?: ReleaseOptions): void;
}

export interface ReleaseOptions {
  readonly image?: string;
  /** It has its configuration with it, and otherwise asks its parent for it. */
  readonly isBaked?: boolean;
  readonly sections?: Record<string, unknown>;
}

/** What is in the file of an image here. */
interface Image {
  readonly pcrs: Readonly<Record<number, string>>;
  readonly configuration?: string;
}

/** One that runs `old`, after its first boot, with a key in its table. */
export async function startEnclaveRunbooks(): Promise<EnclaveRunbookWorld> {
  const world = await startEnclaveWorld();
  const { custody } = world;
  const guarded = await startGuardedAws({
    region: CUSTODY_REGION,
    dynamodb: custody.dynamodb.endpoint,
    kms: custody.kms.endpoint,
    registersIn: (document) => saidBy(document).pcrs,
  });
  const address = ownAddress(HOST_NUMBER);
  const machine = createMachine(world, guarded);
  const keys = new Map<string, PolicyDocument>();
  const account = awsProgram(
    { dynamodb: custody.dynamodb.endpoint, kms: custody.kms.endpoint },
    {
      policyOf: (arn) => keys.get(arn),
      putPolicy: (arn, policy) => void keys.set(arn, policy),
      setBehaviour: (arn, behaviour) => custody.kms.setBehaviour(arn, behaviour),
      isEnabled: (arn) => custody.kms.isEnabled(arn),
    },
    accessKeysOf(guarded),
  );
  const hosts = new Map([[address, machine.host]]);
  const arns = world.ceremony.kms_keys.flatMap((key) => key.arns);
  const [sealingKey = ''] = arns;
  const opened = await openWorld({
    folder: world.folder,
    env: { ...custody.environment(), SVC_OPERATOR_SIGNER_URL: `https://${address}:9443` },
    values: {
      SIGNERS: address,
      CUSTODY_KEYS: arns.join(' '),
      CUSTODY_ADMIN_ROLE: 'custody-admin',
      PARENT_ROLE: SIGNER,
      TABLE_USER_NAME: TABLE_USER.split('/').at(-1) ?? '',
      SEALING_KEY: sealingKey,
      SVC_OPERATOR_TOKEN: '@management-token',
    },
    programs: { aws: account.program, ssh: sshProgram(hosts), scp: scpProgram(hosts) },
  });
  writeScript(opened.bin, 'strongroom', strongroomScript(world.pki.rootFingerprint));
  const sealed = await sealedCredentials(world, sealingKey);
  const makeRelease = releaseMaker(world, { reader: opened.folder, address, sealed });

  makeRelease('old', { isBaked: true });
  const old = (name: string) => join(opened.folder, 'old', name);
  writeFileSync(join(opened.folder, 'ceremony.yaml'), stringify(world.ceremony, { aliasDuplicateObjects: false }));
  install(machine.host, old('image.eif'), old('strongroom.yaml'));
  const grant = async (folder: string, phase: string): Promise<void> => {
    const [configuration, pcrs] = ['strongroom.yaml', 'pcrs.json'].map((name) => join(opened.folder, folder, name));
    const common = ['-c', String(configuration), '--phase', phase];
    const ceremony = join(opened.folder, 'ceremony.yaml');
    const role = await printed('iam', ...common, '--for', 'signer', '--ceremony', ceremony, ...HOME);
    const user = await printed('iam', ...common, '--for', 'tables', '--ceremony', ceremony, ...HOME);
    const whose = ['--administrator', ADMINISTRATOR, '--signer', SIGNER, '--table-user', TABLE_USER];
    const key = await printed('kms-policy', ...common, ...whose, '--pcrs', String(pcrs));
    for (const arn of arns) keys.set(arn, key);
    guarded.use({ role, user, keys });
  };
  const comesUp = async (folder: string): Promise<boolean> => {
    install(machine.host, join(opened.folder, folder, 'image.eif'), join(opened.folder, folder, 'strongroom.yaml'));
    await machine.host.systemctl('restart', 'strongroom-enclave');
    return machine.failure() === undefined;
  };
  await grant('old', 'first-boot');
  await machine.host.systemctl('start', 'strongroom-enclave');
  await grant('old', 'running');
  await makeKey(world, machine, address, opened.folder);
  return {
    ...opened,
    makeRelease,
    runningPcr0: () => machine.enclave()?.nsm.pcr(0).value.toString('hex'),
    trouble: () => machine.failure(),
    comesUp,
    async settle(folder) {
      await grant(folder, 'running');
      if (!(await comesUp(folder))) throw new Error(machine.failure());
    },
    async close() {
      await machine.host.systemctl('stop', 'strongroom-enclave');
      account.close();
      await opened.close();
      await guarded.close();
      await world.close();
    },
  };
}

const strongroomScript = (rootFingerprint: string): string => `#!/bin/sh
[ "$1" = operator ] || exec '${ROOT}/bin/strongroom' "$@"
shift
exec '${ROOT}/bin/pinned-node' '${ROOT}/test/runbooks/operator.ts' ${rootFingerprint} "$@"
`;

interface Machine {
  readonly host: Host;
  readonly enclave: () => EnclaveProcess | undefined;
  readonly failure: () => string | undefined;
}

function createMachine(world: EnclaveWorld, guarded: GuardedAws): Machine {
  const folder = join(world.folder, 'machine');
  let running: { readonly parent: Parent; readonly enclave: EnclaveProcess } | undefined;
  let failure: string | undefined;
  const stop = async (): Promise<void> => {
    await running?.enclave.stop();
    await running?.parent.close();
    running = undefined;
  };
  const start = async (): Promise<void> => {
    const yaml = readFileSync(join(folder, CONFIGURATION), 'utf8');
    const image = JSON.parse(readFileSync(join(folder, IMAGE), 'utf8')) as Image;
    const pcrs = Object.fromEntries(
      Object.entries(image.pcrs).map(([index, hex]) => [index, Buffer.from(hex, 'hex')] as const),
    );
    const nsm = await createNsmEmulator({ pki: world.pki, pcrs });
    const parent = await world.startParent(yaml, guarded.endpoints);
    const baked = image.configuration === undefined ? {} : { baked: image.configuration };
    running = { parent, enclave: await world.startEnclave({ nsm, ...baked }) };
    failure = await parent.said('ready').then(
      () => undefined,
      (error: unknown) => String(error),
    );
  };
  return {
    enclave: () => (failure === undefined ? running?.enclave : undefined),
    failure: () => failure,
    host: {
      folder,
      async systemctl(verb, service) {
        if (service !== 'strongroom-enclave') throw new Refused(`Unit ${service}.service not found.`, 5);
        if (verb !== 'start' || running === undefined) await stop();
        if (verb !== 'stop' && running === undefined) await start(); // systemctl waits for no signer
      },
    },
  };
}

function install(host: Host, image: string, configuration: string): void {
  for (const [from, to] of [
    [image, IMAGE],
    [configuration, CONFIGURATION],
  ] as const) {
    const target = join(host.folder, to);
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, readFileSync(from));
  }
}

/** Of the table user; the first one is what the first boot has. */
function accessKeysOf({ tableUserKeys }: GuardedAws): AccessKeys {
  let made = 0;
  return {
    create() {
      made += 1;
      const AccessKeyId = `${TABLE_USER_KEYS}${made}`;
      tableUserKeys.add(AccessKeyId);
      return { AccessKeyId, SecretAccessKey: 'TEST-secret-of-a-second-access-key' };
    },
    list: () => [...tableUserKeys],
    deactivate: (id) => void tableUserKeys.delete(id),
  };
}

/** As the sealer makes them, before there is anything else. */
async function sealedCredentials({ custody }: EnclaveWorld, keyArn: string): Promise<object> {
  const kms = createKms(kmsClientOptions(custody.kms, [keyArn]), { log: recordingLog() });
  const contents = { access_key_id: TABLE_USER_ACCESS_KEY_ID, secret_access_key: 'TEST-secret-of-the-table-user' };
  const answer = await kms.encrypt([keyArn], Buffer.from(JSON.stringify(contents)), TABLE_CREDENTIALS_CONTEXT);
  kms.close();
  if (!answer.ok) throw new Error('the stand-in encrypts');
  return { key_arn: keyArn, ciphertext: answer.bytes.toString('base64') };
}

interface Releases {
  readonly reader: string;
  readonly address: string;
  readonly sealed: object;
}

function releaseMaker(world: EnclaveWorld, { reader, address, sealed }: Releases): EnclaveRunbookWorld['makeRelease'] {
  const listener = (listen_port: number) => ({ listen_address: address, listen_port });
  const ingress = { tls: listener(9443), probes: listener(9000), metrics: listener(3000) };
  const limits = { graceful_shutdown_timeout_seconds: 0 };
  return (folder, { image = folder, isBaked = false, sections = {} } = {}) => {
    const tee = { platform: 'nitro', nitro: { egress: { endpoints: world.endpoints }, table_credentials: sealed } };
    const yaml = world.yaml({ parent_proxy: { ingress, metrics: listener(9101), limits }, tee, ...sections });
    const registers = [0, 1, 2].map((index) => [index, sha384(`${image} ${index}`).toString('hex')] as const);
    const measurements = {
      ...Object.fromEntries(registers.map(([index, hex]) => [`PCR${index}`, hex])),
      ...(isBaked ? { PCR16: extendedOnce(sha384(yaml)).toString('hex') } : {}),
      PCR17: extendedOnce(ceremonyDigest(parseCeremony(world.ceremony))).toString('hex'),
    };
    const file: Image = { pcrs: Object.fromEntries(registers), ...(isBaked ? { configuration: yaml } : {}) };
    const at = join(reader, folder);
    mkdirSync(at, { recursive: true });
    writeFileSync(join(at, 'image.eif'), JSON.stringify(file));
    writeFileSync(join(at, 'pcrs.json'), JSON.stringify({ measurements }));
    writeFileSync(join(at, 'strongroom.yaml'), yaml);
  };
}

const sha384 = (text: string): Buffer => createHash('sha384').update(text).digest();

/** The root token becomes the reader's `management-token`. */
async function makeKey(world: EnclaveWorld, machine: Machine, address: string, reader: string): Promise<void> {
  const enclave = machine.enclave();
  if (enclave === undefined) throw new Error(`the first boot failed: ${machine.failure()}`);
  const root = await world.custody.rootToken(world.stateTable);
  writeFileSync(join(reader, 'management-token'), root, { mode: 0o600 });
  const client = await attested(`https://${address}:9443`, world.pki, registersOf(enclave.nsm));
  try {
    await client.call('/api/v1/auth/policies', { token: root, body: { name: 'all', rules: [{ effect: 'allow' }] } });
    const made = await client.call('/api/v1/auth/tokens', { token: root, body: { policies: ['all'] } });
    const token = String(made.json['token']);
    const { status } = await client.call('/api/v1/chamber/keys/generate-keys', { token, body: { count: 1 } });
    if (status >= 300) throw new Error(`no key was generated: ${status}`);
  } finally {
    await client.close();
  }
}
