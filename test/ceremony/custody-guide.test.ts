// Every command of docs/guides/custody.md, and those of docs/guides/key-table.md that make keys, as they stand there
// and in their order, with the real programs on the stand-ins. Left out is the rehearsal, which
// test/e2e/rehearsal.test.ts runs. And the guide's ceremony fits the example of an enclave's configuration.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { type CeremonyBlock, parseCeremony } from '../../ceremony/definition.ts';
import { encodeHex } from '../../common/formats/hex.ts';
import { readProxyConfiguration } from '../../parent-proxy/configuration.ts';
import { type CustodyWorld, startCustody } from '../../rehearsal/custody.ts';
import { cleanEnvironment, killChildren, type RunningSigner, startSigner, tracked } from '../../rehearsal/signer.ts';
import { publicNetwork } from '../../signer/sign/networks.ts';
import { loadGood, violationsOf } from '../config/loading.ts';
import { awsProgram } from '../runbooks/aws.ts';
import { blocksOf } from '../runbooks/page.ts';
import { type Programs, startPrograms, writeScript } from '../runbooks/programs.ts';
import { testSecret, writeKeystore } from '../support/keys.ts';
import { lacking, neededBy } from '../support/needs.ts';

const ROOT = join(import.meta.dirname, '../..');
const guide = (name: string): string => readFileSync(join(ROOT, `docs/guides/${name}.md`), 'utf8');
const yamlIn = (text: string): readonly string[] =>
  [...text.matchAll(/^```yaml\n([\s\S]*?)^```$/gm)].map(([, block = '']) => block);
const commandsIn = (page: string, text: string): readonly string[] =>
  blocksOf(page, text).map(({ commands }) => commands);
const CUSTODY = guide('custody');
const KEY_TABLE = guide('key-table');
const GUIDES = [
  ...commandsIn('docs/guides/custody.md', CUSTODY),
  ...commandsIn('docs/guides/key-table.md', KEY_TABLE),
].join('\n');
const RECIPIENT = 'age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p';

/** The ceremony of the guide, with keys and people in the places that it leaves open. */
function ceremonyOf(recipients: readonly string[]): CeremonyBlock {
  const [yaml = ''] = yamlIn(CUSTODY);
  let keys = 0;
  const filled = yaml.replaceAll('key/…', () => `key/00000000-0000-4000-8000-00000000000${++keys}`);
  return parse(filled.replace('[age1…, age1…]', JSON.stringify(recipients))) as CeremonyBlock;
}

it('the ceremony of the guide and the example of an enclave’s configuration make one image', () => {
  const yaml = readFileSync(join(ROOT, 'docs/examples/enclave.yaml'), 'utf8');
  const compiledCeremony = parseCeremony(ceremonyOf([RECIPIENT]));
  expect(compiledCeremony.kmsKeys).toHaveLength(3);
  expect(loadGood({ yaml, build: { compiledCeremony } }).tee.platform).toBe('nitro');
  expect(readProxyConfiguration(Buffer.from(yaml), 'enclave.yaml')).toMatchObject({ ok: true });
  const without = yaml.replace(/^.*kms\.us-east-1.*\n/m, '');
  expect(violationsOf({ yaml: without, build: { compiledCeremony } })).toHaveLength(1);
});

let world: CustodyWorld;
let account: ReturnType<typeof awsProgram>;
let programs: Programs;
let folder = '';
const at = (name: string): string => join(folder, name);

/** The guide puts no policy on a key; test/runbooks does. */
const NO_POLICIES = { policyOf: () => undefined, putPolicy: refused, setBehaviour: refused, isEnabled: refused };

function refused(): never {
  throw new Error('the guide changes no key');
}

beforeAll(async () => {
  world = await startCustody();
  folder = mkdtempSync(join(tmpdir(), 'strongroom-custody-guide-'));
  account = awsProgram({ dynamodb: world.dynamodb.endpoint, kms: world.kms.endpoint }, NO_POLICIES);
  programs = await startPrograms(folder, { aws: account.program });
  writeScript(programs.folder, 'strongroom', `#!/bin/sh\nexec ${join(ROOT, 'bin/strongroom')} "$@"\n`);
});
afterAll(async () => {
  await killChildren();
  await programs.close();
  account.close();
  await world.close();
  rmSync(folder, { recursive: true });
});

/** Not in the way of the stand-in for KMS, which answers from this process. */
async function run(block: string, env: Readonly<Record<string, string>> = {}) {
  const child = tracked(
    spawn('sh', ['-e', '-c', block], {
      cwd: folder,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        ...cleanEnvironment(),
        ...world.environment(),
        SVC_OPERATOR_ALLOW_PLAINTEXT_SIGNER: 'true',
        ...env,
        PATH: `${programs.folder}:${process.env['PATH']}`,
      },
    }),
  );
  const said = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => (said.stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said.stderr += text));
  const [status] = (await once(child, 'close')) as [number | null];
  return { status, ...said };
}

async function done(block: string, env: Readonly<Record<string, string>> = {}): Promise<string> {
  const { status, stdout, stderr } = await run(block, env);
  expect([block, status, status === 0 ? '' : stderr]).toEqual([block, 0, '']);
  return stdout;
}

it.skipIf(lacking(...neededBy(GUIDES)))('every command of the guide works, in its order', async () => {
  const [
    plan = '',
    tables = '',
    policies = '',
    row = '',
    management = '',
    clients = '',
    seal = '',
    recover = '',
    ...sealed
  ] = commandsIn('docs/guides/custody.md', CUSTODY);
  const [keygen = '', ...others] = plan.trimEnd().split('\n');
  const recipient = /age1[a-z0-9]{58}/.exec(await done(keygen))?.[0] ?? '';
  const ceremony = ceremonyOf([recipient]);
  for (const { arns } of ceremony.kms_keys) world.kms.createKey(arns);
  writeFileSync(at('ceremony.yaml'), stringify(ceremony));
  await done(others.filter((command) => !command.startsWith('strongroom ceremony rehearse')).join('\n'));

  const config = configuration(ceremony, recipient);
  writeFileSync(at('strongroom.yaml'), stringify(config, { aliasDuplicateObjects: false }));
  expect(await done(tables)).toMatch(
    /strongroom-state: created\nstrongroom-keys: created\nstrongroom-slashing: created/,
  );
  expect(await done(policies)).toContain('"Sid": "AccountIfTheyAreGone"');

  const signer = await startSigner({ config, env: world.environment() });
  const operator = operatorOf(signer);
  await done(row, operator);
  expect(readFileSync(at('root-token'), 'utf8')).toMatch(/^sr_mgmt_/);
  await done(management, operator);
  const daily = { ...operator, SVC_OPERATOR_TOKEN: '@management-token' };
  await done(clients, daily);

  // A management token manages no keys; the client token of the other guide does.
  expect((await run('strongroom operator keys generate --count 1', daily)).status).toBe(4);
  const [keys = '', backups = '', bringIn = '', takeOut = ''] = commandsIn('docs/guides/key-table.md', KEY_TABLE);
  expect((await done(keys, daily)).match(/0x[0-9a-f]{96}/g)).toHaveLength(4); // two made, two listed
  const written = readdirSync(at('backups')).toSorted();
  expect(written).toHaveLength(2);
  rmSync(at('backups'), { recursive: true });
  expect(await done(backups, daily)).toMatch(/^found +2$/m);
  expect(readdirSync(at('backups')).toSorted()).toEqual(written);
  mkdirSync(at('keystores'));
  const moved = writeKeystore(at('keystores'), 'validator-1', testSecret(1), 'of a TEST key');
  writeFileSync(at('records.json'), JSON.stringify(recordsOf(moved)));
  expect(await done(bringIn, daily)).toMatch(/^imported +1$/m);
  expect(await done(takeOut, daily)).toMatch(/^deleted +1$/m);
  expect(JSON.parse(readFileSync(at('deleted.json'), 'utf8'))).toEqual(recordsOf(moved));

  await done(seal, daily);
  await signer.logged('sealed');
  await done(recover, daily);
  await signer.stop();
  const again = await startSigner({ config, env: world.environment() });
  expect(await done('strongroom operator status', { ...daily, ...operatorOf(again) })).toContain('Unsealed');
  await again.stop();

  // Sealed table credentials: the ciphertext, and what keeps the parents out of a table
  const [credentials = '', keptOut = ''] = sealed;
  const [arn = ''] = ceremony.kms_keys[0]?.arns ?? [];
  expect((await done(credentials.replace(/arn:aws:kms:\S+…/, arn))).trim()).toMatch(/^[A-Za-z0-9+/=]{40,}$/);
  writeFileSync(at('enclave.yaml'), readFileSync(join(ROOT, 'docs/examples/enclave.yaml')));
  expect(await done(keptOut)).toContain('"Sid": "NotTheParents"');
  expect(sealed).toHaveLength(2);
});

function recordsOf(pubkey: string): object {
  const genesis_validators_root = encodeHex(publicNetwork('mainnet').genesisValidatorsRoot);
  const votes = [{ source_epoch: '421800', target_epoch: '421801' }];
  return {
    metadata: { interchange_format_version: '5', genesis_validators_root },
    data: [{ pubkey, signed_blocks: [{ slot: '13497632' }], signed_attestations: votes }],
  };
}

/** Those of both guides together. */
function configuration(ceremony: CeremonyBlock, recipient: string): Record<string, unknown> {
  const [, firstBoot = ''] = yamlIn(CUSTODY);
  const [table = '', routes = ''] = yamlIn(KEY_TABLE);
  return {
    ...(parse(table) as object),
    ...(parse(routes.replace('age1…', recipient)) as object),
    ...(parse(firstBoot.replace('{ … as above … }', '{}')) as object),
    ceremony,
  };
}

function operatorOf({ url }: RunningSigner): Record<string, string> {
  return { SVC_OPERATOR_SIGNER_URL: url };
}
