// What `make demo-custody` runs, to be read from top to bottom: a custody ceremony's whole life on local stand-ins for
// DynamoDB and KMS, with two replicas of the real program and the real operator commands. All keys are TEST keys.

import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { create } from '@chainsafe/bls-keystore';
import { decodeHex, encodeHex } from '../common/formats/hex.ts';
import type { RunningSigner } from '../rehearsal/signer.ts';
import { type Stage, setStage } from '../rehearsal/stage.ts';
import { testKey } from '../rehearsal/test-key.ts';
import { keyTableDefinition } from '../signer/keys/table/definition.ts';
import { publicNetwork } from '../signer/sign/networks.ts';
import { isKept, keep, shown } from './keep.ts';
import { tellKeyEvidence } from './key-evidence.ts';

/** Replicas follow within their refresh interval of one second; after a seal they wait for their lease, and jump. */
const PATIENCE_MS = 45_000;
const PAUSE_MS = 100;

/** What is kept. */
const FOLDER = join(import.meta.dirname, '../build/demo-custody');
const KEYSTORES = join(FOLDER, 'keystores');
const RECORDS = join(FOLDER, 'records.json');
const AWS = join(FOLDER, 'aws.env');
/** EIP-2335 asks for no more; who opens it has the password beside it. */
const PASSWORD = 'of a TEST key';

const stage = await setStage('');
const { say, heading, custody, table } = stage;
try {
  heading('Two replicas boot at once on a fresh state table: one initialises, both unseal');
  const replicas = await Promise.all([stage.startReplica(), stage.startReplica()]);
  const [first, second] = replicas;
  for (const replica of replicas) {
    const steps = replica.log.filter(({ module }) => module === 'chamber').map(({ msg }) => `  ${String(msg)}`);
    say(`${replica.url}\n${steps.join('\n')}`);
  }

  heading('The root token is in the table, encrypted to the ceremony participants; an age identity opens it');
  const row = await custody.row(table, 'ROOT_TOKEN_BOOTSTRAP');
  say(`${String(row?.['value']?.S).split('\n').slice(0, 2).join('\n')}\n…`);
  const rootToken = await custody.rootToken(table);
  say(`opened: ${rootToken.slice(0, 8)}… (${rootToken.length} characters, to be kept offline)`);

  const status = await stage.operator(first, rootToken, ['status']);
  say(`its ${status.split('\n').find((line) => line.startsWith('master key')) ?? 'master key is not in the status'}`);

  heading('A management token for daily work, a policy, and a client token');
  const created = await stage.operator(first, rootToken, ['auth', 'token', 'create', '--management', '--json']);
  const management = (JSON.parse(created) as { token: string }).token;
  const rules = JSON.stringify([
    { effect: 'allow', scopes: ['sign', 'public_keys'], keys: [stage.key.publicKey] },
    { effect: 'deny', operations: ['VOLUNTARY_EXIT'] },
  ]);
  say(
    await stage.operator(first, management, [
      'auth',
      'policy',
      'create',
      '--name',
      'validator-client',
      '--rules',
      rules,
    ]),
  );
  const client = await stage.operator(first, management, [
    ...['auth', 'token', 'create', '--policies', 'validator-client', '--ttl', '1d', '--json'],
  ]);
  const { token, accessor } = JSON.parse(client) as { token: string; accessor: string };
  say(`client token ${accessor}`);

  // A block of the present: later than what a replica raises its keys to when its start took longer than its lease.
  heading('The other replica knows the token within the refresh interval, and signs a block');
  const signed = await until(
    () => stage.proposal(second, token),
    ({ status }) => status === 200,
  );
  say(`${signed.status} ${signed.text.slice(0, 80)}…`);

  heading('Break glass: one command seals every replica');
  say(await stage.operator(first, management, ['seal', '--reason', 'demonstration', '--yes']));
  for (const replica of replicas) {
    const refused = await until(
      () => stage.proposal(replica, token),
      ({ text }) => text.includes('"sealed"'), // not only without an answer from the state table
    );
    say(`${replica.url}: ${refused.status} ${refused.text}`);
  }

  heading('The latch survives a restart: the signer starts sealed');
  await Promise.all(replicas.map((replica) => replica.stop()));
  const sealed = await stage.startReplica('listening');
  say(`${sealed.url}: ${(await stage.proposal(sealed, token)).text}`);
  await sealed.stop();

  heading('Recovery: delete the SEAL_OVERRIDE row, then restart every replica');
  await custody.deleteRow(table, 'SEAL_OVERRIDE');
  const recovered = await stage.startReplica();
  const again = await until(
    () => stage.proposal(recovered, token),
    ({ status }) => status === 200,
  );
  say(
    'The sealed replicas did not end in order. So the first one to come back waited until none of them could sign any ' +
      'more, and refuses whatever lies before the present. It signs a block of the present slot:',
  );
  say(`${again.status} ${again.text.slice(0, 80)}…`);
  say(await stage.operator(recovered, management, ['status']));

  heading('In enclaves the master key proves where it comes from: first boot, image upgrade and rotation');
  say(await tellKeyEvidence(custody));

  if (isKept()) {
    await recovered.stop();
    await keepFleet(stage, { management, client: token });
  } else {
    heading('Go on from here');
    say(
      'Keep this world running: make demo-custody KEEP=1\nTry your own ceremony:  bin/strongroom ceremony rehearse ceremony.yaml\nRead:                   docs/architecture.md, docs/reference/operator.md',
    );
  }
} finally {
  await stage.close();
}

/** The first answer that is as wanted. */
async function until<T>(ask: () => Promise<T>, wanted: (answer: T) => boolean): Promise<T> {
  const end = Date.now() + PATIENCE_MS;
  while (Date.now() < end) {
    const answer = await ask();
    if (wanted(answer)) return answer;
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
  throw new Error('the replicas did not follow');
}

// What `make demo-custody KEEP=1` leaves running: two replicas that also manage keys in a table, on ports that stay, so
// that a restart is one of theirs; the settings with which the stand-in for DynamoDB takes a recovery; a TEST keystore
// with its slashing records. What it prints is walked from the first line to the last by a test.

async function keepFleet(
  stage: Stage,
  tokens: { readonly management: string; readonly client: string },
): Promise<void> {
  const keyTable = `${stage.table}-keys`;
  await stage.custody.dynamodb.createTable(keyTableDefinition(keyTable));
  const start = async (earlier?: RunningSigner): Promise<RunningSigner> => {
    await earlier?.stop();
    return stage.startReplica('ready', configuration(stage, keyTable, earlier));
  };
  let replicas = [await start(), await start()] as const;
  const [first, other] = replicas;
  const urls = replicas.map(({ url }) => url);
  const keyAdmin = await keyAdminToken(stage, first, tokens.management);

  rmSync(FOLDER, { recursive: true, force: true });
  const imported = await writeKeystore();
  writeFileSync(AWS, awsSettings(stage), { mode: 0o600 });
  const curl = `curl -s -H "Authorization: Bearer $(cat ${shown(join(FOLDER, 'client-token'))})"`;
  const metrics = replicas.map(({ metricsUrl }) => `--metrics ${new URL(metricsUrl).origin}`).join(' ');
  await keep({
    folder: FOLDER,
    tokens: { 'management-token': tokens.management, 'client-token': tokens.client, 'key-admin-token': keyAdmin },
    profiles: {
      default: { signer_url: first.url, token: 'management-token' },
      other: { signer_url: other.url, token: 'management-token' },
      keys: { signer_url: first.url, token: 'key-admin-token' },
      'other-keys': { signer_url: other.url, token: 'key-admin-token' },
    },
    tries: [
      { what: 'How one replica is', command: 'strongroom operator status' },
      { what: 'The other', command: 'strongroom operator status --profile other' },
      { what: 'Both, live', command: `strongroom operator top --replica keys --replica other-keys ${metrics}` },
      { what: 'Who may do what', command: 'strongroom operator auth policy get --name validator-client' },
      {
        what: 'Another token, known to both replicas',
        command: 'strongroom operator auth token create --policies validator-client',
      },
      { what: 'What a validator client sees', command: `${curl} ${first.url}/api/v1/eth2/publicKeys` },

      {
        what: 'Keys: import a keystore, with the records of what it signed elsewhere',
        command: `strongroom operator keys import ${shown(KEYSTORES)} --storage table --slashing-protection ${shown(RECORDS)} --profile keys`,
      },
      {
        what: 'Make two, each with its mnemonic encrypted to the backup recipients',
        command: `strongroom operator keys generate --count 2 --backups ${shown(join(FOLDER, 'backups'))} --profile keys`,
      },
      {
        what: 'Make one for a deposit of 32 ETH, whose withdrawals go to an address of yours (here: nobody’s)',
        command:
          'strongroom operator keys generate --count 1 --withdrawal-address 0x1111111111111111111111111111111111111111 ' +
          `--output ${shown(join(FOLDER, 'deposit_data.json'))} --profile keys`,
      },
      { what: 'See them, with their sources', command: 'strongroom operator keys list --profile keys' },
      {
        what: 'Delete the imported one, and keep its records',
        command: `strongroom operator keys delete --pubkeys ${imported} --output ${shown(join(FOLDER, 'deleted.json'))} --yes --profile keys`,
      },

      { what: 'Break glass: seal both replicas', command: 'strongroom operator seal --reason "trying it" --yes' },
      {
        what: 'See that the other seals, too, at its next look at the table (exit code 3)',
        command: 'until strongroom operator status --profile other; [ $? = 3 ]; do sleep 1; done',
      },
      { what: 'What recovery takes', command: `strongroom operator recover --table ${stage.table}` },
      {
        what: 'Recovery: delete the latch, with the TEST credentials and the endpoint of aws.env',
        command: `(. ./${shown(AWS)}; strongroom operator recover --table ${stage.table} --yes)`,
      },
      { what: 'Recovery: restart every replica', command: `kill -USR2 $(cat ${shown(join(FOLDER, 'pid'))})` },
      {
        what: 'Recovery: wait until they are ready',
        command: `for url in ${urls.join(' ')}; do curl -sf -o ${shown(join(FOLDER, 'health.json'))} --retry 300 --retry-delay 1 --retry-all-errors $url/healthcheck; done`,
      },
      { what: 'See that it is over', command: 'strongroom operator status' },
    ],
    running: () =>
      replicas.map(({ url, ended }, at) => ({ name: `the replica ${at === 0 ? 'default' : 'other'}, ${url},`, ended })),
    files: 'aws.env (TEST credentials, endpoints), keystores, records.json',
    async restart() {
      replicas = [await start(replicas[0]), await start(replicas[1])];
    },
  });
}

/** @param earlier whose addresses it takes over */
function configuration({ custody }: Stage, table: string, earlier: RunningSigner | undefined): Record<string, unknown> {
  const portOf = (url: string | undefined): number => (url === undefined ? 0 : Number(new URL(url).port));
  const on = { enabled: true };
  return {
    server: { listen_port: portOf(earlier?.url) },
    metrics: { listen_port: portOf(earlier?.metricsUrl) },
    key_sources: { dynamodb: { table } },
    chamber: {
      keys: { generate_keys: on, import: on, generate: on, lifecycle: on, backup: { recipients: [custody.recipient] } },
    },
  };
}

async function keyAdminToken(stage: Stage, replica: RunningSigner, management: string): Promise<string> {
  const run = (...args: string[]): Promise<string> => stage.operator(replica, management, args);
  stage.heading('For whoever manages keys: a policy of a preset, and a token');
  stage.say(await run('auth', 'policy', 'create', '--name', 'key-admin', '--preset', 'key-admin'));
  stage.say(await run('auth', 'policy', 'create', '--name', 'monitoring', '--preset', 'monitoring'));
  const created = await run(...['auth', 'token', 'create', '--policies', 'key-admin,monitoring', '--json']);
  return (JSON.parse(created) as { token: string }).token;
}

/** @returns the public key of the keystore */
async function writeKeystore(): Promise<string> {
  const { secret, publicKey } = testKey(1);
  mkdirSync(KEYSTORES, { recursive: true, mode: 0o700 });
  const [bytes, point] = [secret, publicKey].map((hex) => decodeHex(hex) ?? new Uint8Array());
  const keystore = await create(PASSWORD, bytes ?? new Uint8Array(), point ?? new Uint8Array(), 'm/12381/3600/1/0/0');
  writeFileSync(join(KEYSTORES, 'validator-1.json'), JSON.stringify(keystore), { mode: 0o600 });
  writeFileSync(join(KEYSTORES, 'validator-1.password'), `${PASSWORD}\n`, { mode: 0o600 });
  writeFileSync(RECORDS, JSON.stringify(recordsOf(publicKey), undefined, 2));
  return publicKey;
}

/** EIP-3076: one block, one vote. */
function recordsOf(pubkey: string): object {
  const genesis_validators_root = encodeHex(publicNetwork('mainnet').genesisValidatorsRoot);
  const vote = { source_epoch: '421800', target_epoch: '421801' };
  return {
    metadata: { interchange_format_version: '5', genesis_validators_root },
    data: [{ pubkey, signed_blocks: [{ slot: '13497632' }], signed_attestations: [vote] }],
  };
}

/** For a shell. The user's own AWS settings must not lead to the user's account. */
function awsSettings({ custody }: Stage): string {
  const { AWS_EC2_METADATA_DISABLED: _, ...settings } = custody.environment();
  const lines = Object.entries(settings).map(([name, value]) => `export ${name}=${value}`);
  return `# TEST credentials of a demonstration: its stand-ins on this machine take any, AWS takes none of these.
unset AWS_PROFILE AWS_SESSION_TOKEN AWS_IGNORE_CONFIGURED_ENDPOINT_URLS
export AWS_EC2_METADATA_DISABLED=true
${lines.join('\n')}
`;
}
