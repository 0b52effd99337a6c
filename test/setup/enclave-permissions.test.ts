// An enclave's first boot under the policies that are printed for its image, its parent and its table user: real
// attestation documents (of an emulated NSM) against the policy's conditions. Another image, another configuration and
// a call without attestation get nothing; during a rotation the old image and the new one do. The parent reaches no
// table and encrypts nothing, in any phase.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { ceremonyDigest, parseCeremony } from '../../ceremony/definition.ts';
import { extendedOnce } from '../../common/formats/register.ts';
import { CUSTODY_REGION } from '../../rehearsal/custody.ts';
import { saidBy } from '../../rehearsal/kms/attestation.ts';
import { kmsClientOptions } from '../../rehearsal/kms/server.ts';
import { createNsmEmulator } from '../../rehearsal/nsm/emulator.ts';
import { runStrongroom } from '../../rehearsal/signer.ts';
import type { PolicyDocument } from '../../setup/policy-document.ts';
import { createKms } from '../../signer/aws/kms.ts';
import { TABLE_CREDENTIALS_CONTEXT } from '../../signer/aws/table-credentials.ts';
import type { Parent } from '../support/enclave-parent.ts';
import type { EnclaveProcess } from '../support/enclave-process.ts';
import { type EnclaveWorld, startEnclaveWorld } from '../support/enclave-world.ts';
import {
  ACCOUNT,
  type GuardedAws,
  type Policies,
  SIGNER,
  startGuardedAws,
  TABLE_USER,
  TABLE_USER_ACCESS_KEY_ID,
} from '../support/guarded-aws.ts';
import { recordingLog } from '../support/recording-log.ts';
import { MAINNET_ROOT } from '../support/requests.ts';

let world: EnclaveWorld;
let aws: GuardedAws;
let running: { parent: Parent; enclave: EnclaveProcess } | undefined;
let yaml: string;
/** The registers of the image that runs here. */
let image: { readonly PCR0: string; readonly PCR17: string };
/** All but that of the keys, which alone names images. */
let policies: Policies;

beforeAll(async () => {
  world = await startEnclaveWorld();
  const { custody } = world;
  aws = await startGuardedAws({
    region: CUSTODY_REGION,
    dynamodb: custody.dynamodb.endpoint,
    kms: custody.kms.endpoint,
    registersIn: (document) => saidBy(document).pcrs,
  });
  const nsm = await createNsmEmulator({ pki: world.pki, clock: { now: Date.now } });
  image = {
    PCR0: nsm.pcr(0).value.toString('hex'),
    PCR17: extendedOnce(ceremonyDigest(parseCeremony(world.ceremony))).toString('hex'),
  };
  yaml = world.yaml({
    tee: { platform: 'nitro', nitro: { egress: { endpoints: world.endpoints }, table_credentials: await sealed() } },
  });
  writeFileSync(join(world.folder, 'strongroom.yaml'), yaml);
  writeFileSync(join(world.folder, 'ceremony.yaml'), stringify(world.ceremony, { aliasDuplicateObjects: false }));
  policies = await policiesOfAnyImage();
});
afterEach(stop);
afterAll(async () => {
  await aws?.close();
  await world?.close();
});

async function sealed() {
  const [arn = ''] = world.ceremony.kms_keys[0]?.arns ?? [];
  const kms = createKms(kmsClientOptions(world.custody.kms, [arn]), { log: recordingLog() });
  const contents = { access_key_id: TABLE_USER_ACCESS_KEY_ID, secret_access_key: 'TEST-secret-of-the-table-user' };
  const answer = await kms.encrypt([arn], Buffer.from(JSON.stringify(contents)), TABLE_CREDENTIALS_CONTEXT);
  kms.close();
  if (!answer.ok) throw new Error('the stand-in encrypts');
  return { key_arn: arn, ciphertext: answer.bytes.toString('base64') };
}

async function stop(): Promise<void> {
  await running?.enclave.kill();
  await running?.parent.close();
  running = undefined;
}

async function start(): Promise<Parent> {
  const parent = await world.startParent(yaml, aws.endpoints);
  running = { parent, enclave: await world.startEnclave() };
  return parent;
}

const HOME = ['--account', ACCOUNT, '--region', CUSTODY_REGION];
const ADMINISTRATOR = `arn:aws:iam::${ACCOUNT}:role/custody-admin`;

async function printed(...args: string[]): Promise<PolicyDocument> {
  const { code, stdout, stderr } = await runStrongroom(['setup', ...args, '-c', 'strongroom.yaml'], {
    cwd: world.folder,
  });
  expect([code, code === 0 ? '' : stderr]).toEqual([0, '']);
  return JSON.parse(stdout) as PolicyDocument;
}

const FIRST_BOOT = ['--phase', 'first-boot'];

async function policiesOfAnyImage(): Promise<Policies> {
  const ceremony = ['--ceremony', 'ceremony.yaml'];
  const role = await printed('iam', '--for', 'signer', ...ceremony, ...FIRST_BOOT, ...HOME);
  const user = await printed('iam', '--for', 'tables', ...ceremony, ...FIRST_BOOT, ...HOME);
  const kinds = { state: '', keys: '-keys', slashing: '-slashing' };
  const tables = await Promise.all(
    Object.entries(kinds).map(async ([kind, suffix]) => {
      const keptOut = ['--table', kind, '--keep-out', SIGNER];
      return [`${world.stateTable}${suffix}`, await printed('iam', '--for', 'table', ...keptOut, ...HOME)] as const;
    }),
  );
  return { role, user, tables: Object.fromEntries(tables) };
}

/** From now on every key has the policy for these images. */
async function allow(...images: readonly Readonly<Record<string, string>>[]): Promise<void> {
  const files = images.map((measurements, at) => {
    const file = join(world.folder, `pcrs-${at}.json`);
    writeFileSync(file, JSON.stringify({ measurements }));
    return ['--pcrs', file];
  });
  const who = ['--administrator', ADMINISTRATOR, '--signer', SIGNER, '--table-user', TABLE_USER];
  aws.use({ ...policies, key: await printed('kms-policy', ...who, ...FIRST_BOOT, ...files.flat()) });
}

const OTHER = 'ab'.repeat(48);

it('an image that the policy does not name opens nothing, nor does one with another configuration', async () => {
  for (const named of [
    { ...image, PCR0: OTHER },
    { ...image, PCR16: OTHER },
  ]) {
    await allow(named);
    const { said } = await start();
    await expect(said('ready')).rejects.toThrow(/attestation policy mismatch/);
    expect([...aws.refused]).toEqual(['kms:Decrypt']);
    await stop();
  }
});

it('the image that it names boots; so it does beside the next one, during a rotation', async () => {
  await allow(image);
  await (await start()).said('ready');
  expect([...aws.refused]).toEqual([]);
  expect([...aws.used].filter((call) => !call.startsWith('user ')).sort()).toEqual(['kms:Decrypt']);
  expect([...aws.used]).toContain('user kms:Encrypt');
  await stop();
  await allow({ ...image, PCR0: OTHER }, image);
  await (await start()).said('ready');
  expect([...aws.refused]).toEqual([]);
});

it('whoever has the parent’s role and no attestation decrypts nothing', async () => {
  await allow(image);
  const [arn = ''] = world.ceremony.kms_keys[0]?.arns ?? [];
  const kms = createKms(
    { ...kmsClientOptions(world.custody.kms, [arn]), endpoint: aws.endpoints.kms },
    { log: recordingLog() },
  );
  const purpose = { service: 'strongroom', purpose: 'table-credentials' };
  expect(await kms.decrypt([arn], Buffer.from('any'), purpose)).toMatchObject({ attempts: [{ fault: 'denied' }] });
  expect(await kms.encrypt([arn], Buffer.from('any'), purpose)).toMatchObject({ attempts: [{ fault: 'denied' }] });
  const share = { service: 'strongroom', network: MAINNET_ROOT, deployment: world.stateTable };
  expect(await kms.encrypt([arn], Buffer.from('a share'), share)).toMatchObject({ attempts: [{ fault: 'denied' }] });
  kms.close();
});
