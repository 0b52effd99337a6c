// `strongroom migrate`: from each client's folder, with its record first. What contradicts the record is refused by the
// signer that starts with what was written; nothing starts with a migration that failed or was cut; a client that is
// not stopped is refused as far as it can be seen.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { parse } from 'yaml';
import { runStrongroom, startSigner, tracked } from '../../rehearsal/signer.ts';
import { CLIENT_FOLDERS, MIGRATED } from '../../service/first/client-folders.ts';
import { makeClientFolder, QUIET } from '../support/client-folder.ts';
import { interchangeOf } from '../support/interchange.ts';
import { publicKeyOf, testSecret } from '../support/keys.ts';
import { MAINNET_ROOT, rootOf } from '../support/messages.ts';
import { lacking } from '../support/needs.ts';
import { LONGEST_WAIT_MS } from '../support/patience.ts';
import { type PostgresServer, startPostgres } from '../support/postgres.ts';
import { latestEpoch } from '../support/present.ts';
import { atTerminal } from '../support/pseudo-terminal.ts';
import { attestation, block, signCall } from '../support/requests.ts';
import { createWeb3SignerDatabase } from '../support/web3signer-database.ts';

const PROGRAM = join(import.meta.dirname, '../../bin/strongroom');
const HOODI_ROOT = '0x212f13fc4df078b6cb7db228f1c8307566dcecf900867401a92023d7ba99cb5f';

interface Moved {
  readonly cwd: string;
  readonly args: readonly string[];
}

const migrate = ({ cwd, args }: Moved, ...more: readonly string[]) =>
  runStrongroom(['migrate', ...args, '--stopped', ...more], { cwd });

/** The ports of the file are one machine's, and tests run beside each other. */
const FOR_TESTS = {
  logging: { level: 'info', format: 'json' },
  server: { listen_address: '127.0.0.1', listen_port: 0 },
  metrics: { listen_address: '127.0.0.1', listen_port: 0 },
};

async function startMigrated(cwd: string) {
  const config = parse(readFileSync(join(cwd, 'strongroom/strongroom.yaml'), 'utf8')) as Record<string, unknown>;
  const token = readFileSync(join(cwd, 'strongroom/tokens/validator-client'), 'utf8').trim();
  const signer = await startSigner({ config: { ...config, ...FOR_TESTS } });
  const sign = async (publicKey: string, message: Record<string, unknown>) => {
    const { status, json } = await signCall(signer.url, publicKey, message, { token });
    return status === 200 ? status : [status, json['reason']];
  };
  return { signer, sign };
}

/** Files of the folder of the signer; none when there is no such folder. */
function written(cwd: string): readonly string[] {
  return namesBelow(join(cwd, 'strongroom'));
}

function namesBelow(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort() : [];
}

describe.each(MIGRATED)('from %s', (client) => {
  it('the record comes first: what contradicts it is refused, what is new is signed', async () => {
    const made = makeClientFolder(client);
    const before = namesBelow(made.cwd);
    const { code, stdout, stderr } = await migrate(made);
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(stdout).toContain(`\n  2 keys in client\n`);
    expect(stdout).toContain(`  ${CLIENT_FOLDERS[client].name} must never sign with these keys again.`);
    expect(namesBelow(made.cwd)).toEqual(expect.arrayContaining(before));
    const open = written(made.cwd).filter((name) => (statSync(join(made.cwd, 'strongroom', name)).mode & 0o077) !== 0);
    expect(open.filter((name) => !name.startsWith('records/'))).toEqual([]);
    const { signer, sign } = await startMigrated(made.cwd);
    for (const key of made.publicKeys) {
      expect(await sign(key, attestation({ source: 20, target: 21, head: rootOf(7) }))).toEqual([
        412,
        expect.any(String),
      ]);
      expect(await sign(key, attestation({ source: 19, target: 22 }))).toEqual([412, expect.any(String)]);
      expect(await sign(key, block({ slot: 2000 }))).toEqual([412, expect.any(String)]);
      expect(await sign(key, attestation({ source: 21, target: 22 }))).toBe(200);
    }
    await signer.stop();
  });
});

describe('without a record', () => {
  it.each([
    [
      'lighthouse',
      /\n {4}lighthouse account validator slashing-protection export .* --network mainnet --datadir \/.*client\n/,
    ],
    ['teku', /\n {4}teku slashing-protection export --data-path=\/.*client --to=slashing_protection\.json\n/],
    ['prysm', /\n {4}validator slashing-protection-history export --mainnet --datadir=\/.*client --slashing-/],
    ['nimbus', /\n {4}nimbus_beacon_node slashingdb export slashing_protection\.json --data-dir=\/.*client\n/],
    ['lodestar', /\n {4}lodestar validator slashing-protection export --network mainnet --dataDir \/.*client --file /],
    ['web3signer', /--record env:WEB3SIGNER_DB/],
  ] as const)('%s: nothing is written, and the command of its own export is printed', async (client, command) => {
    const { cwd, args } = makeClientFolder(client);
    if (client === 'teku') rmSync(join(cwd, 'client/validator/slashprotection'), { recursive: true });
    const words = client === 'teku' ? args : args.slice(0, args.indexOf('--record'));
    const { code, stderr } = await migrate({ cwd, args: words });
    expect(code).toBe(1);
    expect(stderr).toMatch(/^strongroom migrate: the record of what \w+ has signed is needed/);
    expect(stderr).toMatch(command);
    expect(written(cwd)).toEqual([]);
  });

  it('teku: a record that cannot be read is named, with its own export', async () => {
    const made = makeClientFolder('teku');
    writeFileSync(made.written, 'lastSignedAttestationTargetEpoch: many\n');
    utimesSync(made.written, QUIET, QUIET);
    const { code, stderr } = await migrate(made);
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/\.yml is not the record .*\n.*teku slashing-protection/),
    ]);
    expect(written(made.cwd)).toEqual([]);
  });

  it('keys that the record does not name are put aside, and none when it names no key', async () => {
    const made = makeClientFolder('nimbus', 3);
    const [first = '', second = '', third = ''] = made.publicKeys;
    writeFileSync(join(made.cwd, 'slashing_protection.json'), JSON.stringify(interchangeOf([first, second])));
    const { code, stdout } = await migrate(made);
    expect([code, stdout]).toEqual([0, expect.stringContaining('Of 1 key the record says nothing.')]);
    expect(readdirSync(join(made.cwd, 'strongroom/keys'))).toEqual([first, second].map((key) => `${key}.json`).sort());
    expect(readdirSync(join(made.cwd, 'strongroom/without-record/keys'))).toEqual([`${third}.json`]);

    const other = makeClientFolder('nimbus');
    writeFileSync(join(other.cwd, 'slashing_protection.json'), JSON.stringify(interchangeOf([third])));
    const refused = await migrate(other);
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('the record names none of these keys')]);
    expect(written(other.cwd)).toEqual([]);
  });

  it('prysm without a backup of its keys: its command', async () => {
    const { cwd } = makeClientFolder('prysm');
    const { code, stderr } = await migrate({ cwd, args: ['--from', 'prysm', 'client'] });
    expect([code, stderr]).toEqual([1, expect.stringContaining('\n    validator accounts backup --wallet-dir=WALLET')]);
  });
});

describe('a client that is not stopped', () => {
  it('is asked for: without a terminal --stopped says it', async () => {
    const { cwd, args } = makeClientFolder('lighthouse');
    const { code, stderr } = await runStrongroom(['migrate', ...args], { cwd });
    expect([code, stderr]).toEqual([
      7,
      expect.stringMatching(/no terminal to ask on\n(?:.*\n)*?.*add --stopped when it is\n/),
    ]);
    expect(written(cwd)).toEqual([]);
  });

  it.skipIf(lacking('Linux'))(
    'a process of its name that runs is refused, unless its operator takes it upon himself',
    async () => {
      const made = makeClientFolder('lighthouse');
      const child = tracked(
        spawn(process.execPath, ['-e', 'setInterval(() => {}, 1e6)', 'vc'], { argv0: 'lighthouse' }),
      );
      await once(child, 'spawn');
      try {
        const { code, stderr } = await migrate(made);
        expect([code, stderr]).toEqual([
          1,
          expect.stringContaining(`Lighthouse runs here: process ${child.pid} (lighthouse)`),
        ]);
        expect(written(made.cwd)).toEqual([]);
        expect((await migrate(made, '--unsafe-ignore-processes')).code).toBe(0);
      } finally {
        child.kill();
        await once(child, 'exit');
      }
    },
  );

  it.skipIf(lacking('Linux'))('so is any process that has its record open', async () => {
    const made = makeClientFolder('nimbus');
    const held = openSync(made.written, 'r');
    const { code, stderr } = await migrate(made);
    closeSync(held);
    expect([code, stderr]).toEqual([1, expect.stringContaining(`Nimbus runs here: process ${process.pid} (`)]);
  });

  it.each([
    ['lighthouse', '/usr/bin/lighthouse vc --network mainnet', true],
    ['lighthouse', 'lighthouse --debug-level info validator_client', true],
    ['lighthouse', '/usr/bin/lighthouse bn --network mainnet', false],
    ['lighthouse', 'less /var/log/lighthouse vc', false],
    ['teku', '/opt/java/bin/java -Xmx5g tech.pegasys.teku.Teku --data-path=/data', true],
    ['teku', 'tail -f tech.pegasys.teku.log', false],
    ['prysm', '/usr/local/bin/validator --datadir=/data', true],
    ['prysm', '/opt/validator-v6.0.0-linux-amd64 --mainnet', true],
    ['prysm', 'bash ./prysm.sh validator --mainnet', true],
    ['prysm', '/usr/local/bin/beacon-chain --datadir=/data', false],
    ['nimbus', '/opt/nimbus_beacon_node --data-dir=/data', true],
    ['nimbus', '/opt/nimbus_validator_client', true],
    [
      'lodestar',
      'node --max-old-space-size=4096 /usr/app/packages/cli/bin/lodestar.js validator --network mainnet',
      true,
    ],
    ['lodestar', 'node /usr/app/packages/cli/bin/lodestar.js beacon', false],
    ['web3signer', 'java -cp /opt/lib/* tech.pegasys.web3signer.Web3SignerApp eth2', true],
    ['web3signer', 'node /opt/strongroom/bin/strongroom.ts web3signer eth2', false],
  ] as const)('of %s: %s', (client, commandLine, isOne) => {
    expect(CLIENT_FOLDERS[client].process.test(commandLine)).toBe(isOne);
  });

  it('wrote its record less than two epochs ago: refused, with the time until when', async () => {
    const made = makeClientFolder('lodestar');
    utimesSync(made.written, new Date(), new Date());
    const { code, stderr } = await migrate(made);
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/Lodestar wrote its record at .*\n.*repeat this command after 20/),
    ]);
    expect(written(made.cwd)).toEqual([]);
  });

  it('wrote after its export: the record may lack what was signed', async () => {
    const made = makeClientFolder('lighthouse');
    utimesSync(made.written, new Date('2026-02-01T00:00:00Z'), new Date('2026-02-01T00:00:00Z'));
    const { code, stderr } = await migrate(made);
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(
        /the record is of 2026-01-01.*, and Lighthouse wrote at 2026-02-01.*\n(?:.*\n)*?.*slashing-protection export/,
      ),
    ]);
  });

  it('voted in the last two epochs, by its record: no configuration is written', async () => {
    const made = makeClientFolder('nimbus');
    const epoch = latestEpoch() - 1;
    const record = JSON.parse(JSON.stringify(interchangeOf(made.publicKeys)));
    record.data[0].signed_attestations.push({ source_epoch: String(epoch - 1), target_epoch: String(epoch) });
    writeFileSync(join(made.cwd, 'slashing_protection.json'), JSON.stringify(record));
    const { code, stderr } = await migrate(made);
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/Nimbus signed for the time up to .* less than 2 epochs ago\n/),
    ]);
    expect(written(made.cwd)).toEqual([]);
  });
});

describe('what fails leaves no configuration', () => {
  it('a wrong password: the keystore is named, and nothing is written', async () => {
    const made = makeClientFolder('lodestar');
    const [key = ''] = made.publicKeys;
    writeFileSync(join(made.cwd, 'client/secrets', key), 'another');
    const { code, stderr } = await migrate(made);
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /^strongroom migrate: 1 key of 2 cannot be used\n.*voting-keystore\.json: the password does not open/,
    );
    expect(stderr).not.toContain('another');
    expect(written(made.cwd)).toEqual([]);
  });

  it('a record of another network is refused as slashing import refuses it', async () => {
    const made = makeClientFolder('lighthouse');
    writeFileSync(
      join(made.cwd, 'slashing_protection.json'),
      JSON.stringify(interchangeOf(made.publicKeys, HOODI_ROOT)),
    );
    const { code, stderr } = await migrate(made);
    expect([code, stderr]).toEqual([2, expect.stringContaining('of another network, hoodi, not of mainnet')]);
    expect(written(made.cwd)).toEqual([]);
  });

  it('a record with slashable messages: they are named, and no key is written', async () => {
    const made = makeClientFolder('nimbus');
    const record = JSON.parse(JSON.stringify(interchangeOf(made.publicKeys)));
    record.data[0].signed_attestations.push({ source_epoch: '20', target_epoch: '21', signing_root: rootOf(9) });
    writeFileSync(join(made.cwd, 'slashing_protection.json'), JSON.stringify(record));
    const { code, stderr } = await migrate(made);
    expect([code, stderr]).toEqual([
      9,
      expect.stringMatching(/1 slashable message; [^$]*\nNo key and no configuration was written\.\n$/),
    ]);
    expect(written(made.cwd).filter((name) => !name.startsWith('records'))).toEqual([]);
  });

  it('a keystore that is damaged, and a key under the name of another', async () => {
    const made = makeClientFolder('nimbus');
    const [first = '', second = ''] = made.publicKeys;
    const file = (key: string) => join(made.cwd, 'client/validators', key, 'keystore.json');
    writeFileSync(file(first), '{"crypto":{}}');
    const keystore = JSON.parse(readFileSync(file(second), 'utf8'));
    writeFileSync(file(second), JSON.stringify({ ...keystore, pubkey: publicKeyOf(testSecret(50)).slice(2) }));
    const { code, stderr } = await migrate(made);
    expect([code, stderr]).toEqual([1, expect.stringContaining('2 keys of 2 cannot be used')]);
    expect(stderr).toContain('its key is not the one that it names');
    expect(written(made.cwd)).toEqual([]);
  });

  it('an empty folder, and one of init, which is not touched', async () => {
    const { cwd, args } = makeClientFolder('lighthouse');
    mkdirSync(join(cwd, 'empty'));
    const empty = await migrate({ cwd, args: ['--from', 'lighthouse', 'empty'] });
    expect([empty.code, empty.stderr]).toEqual([
      1,
      expect.stringMatching(/no key of Lighthouse in .*\n.*validators: name/),
    ]);
    await runStrongroom(['init'], { cwd });
    const before = readFileSync(join(cwd, 'strongroom/strongroom.yaml'), 'utf8');
    const refused = await migrate({ cwd, args });
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('nothing is overwritten')]);
    expect(readFileSync(join(cwd, 'strongroom/strongroom.yaml'), 'utf8')).toBe(before);
  });
});

describe('run again', () => {
  it.each(['records/slashing_protection.sqlite', 'keys', 'passwords', 'tokens/operator', 'strongroom.yaml.new'])(
    'cut when %s is there, it ends whole',
    async (place) => {
      const made = makeClientFolder('lighthouse', 4);
      const child = tracked(spawn(PROGRAM, ['migrate', ...made.args, '--stopped'], { cwd: made.cwd, stdio: 'ignore' }));
      const ended = once(child, 'exit');
      const look = setInterval(() => {
        if (existsSync(join(made.cwd, 'strongroom', place))) child.kill('SIGKILL');
      }, 1);
      await ended;
      clearInterval(look);
      const isWhole = existsSync(join(made.cwd, 'strongroom/strongroom.yaml'));
      const again = await migrate(made);
      expect({ ...again, isWhole }).toMatchObject({ code: isWhole ? 1 : 0 });
      const keys = made.publicKeys.map((key) => `${key}.json`).sort();
      expect(readdirSync(join(made.cwd, 'strongroom/keys'))).toEqual(keys);
      const { signer, sign } = await startMigrated(made.cwd);
      for (const key of made.publicKeys)
        expect(await sign(key, attestation({ source: 20, target: 21, head: rootOf(7) }))).toEqual([
          412,
          expect.any(String),
        ]);
      await signer.stop();
    },
  );

  it('after half of the files, one of them not yet in its place', async () => {
    const made = makeClientFolder('lighthouse', 3);
    await migrate(made);
    const folder = join(made.cwd, 'strongroom');
    const [first = '', second = ''] = readdirSync(join(folder, 'passwords'));
    const token = readFileSync(join(folder, 'tokens/validator-client'), 'utf8');
    for (const name of ['strongroom.yaml', 'tokens/operator', `passwords/${first}`]) rmSync(join(folder, name));
    renameSync(join(folder, 'passwords', second), join(folder, 'passwords', `${second}.new`));
    const { code } = await migrate(made);
    expect(code).toBe(0);
    expect(written(made.cwd).filter((name) => name.endsWith('.new'))).toEqual([]);
    expect(readFileSync(join(folder, 'tokens/validator-client'), 'utf8')).toBe(token);
    const { signer, sign } = await startMigrated(made.cwd);
    const answers = await Promise.all(made.publicKeys.map((key) => sign(key, attestation({ source: 21, target: 22 }))));
    expect(answers).toEqual([200, 200, 200]);
    await signer.stop();
  });

  it.each(MIGRATED)(
    'says whether %s still has keys, and after the commands that it printed that it has none',
    async (client) => {
      const made = makeClientFolder(client);
      const { name } = CLIENT_FOLDERS[client];
      const { stdout } = await migrate(made);
      const there = await migrate(made);
      expect([there.code, there.stderr]).toEqual([1, expect.stringContaining(`${name} still has 2 keys in `)]);
      const commands = stdout.split('\n').flatMap((line) => (/^ {4}(?:mv|mkdir) /.test(line) ? [line.trim()] : []));
      for (const command of commands) await once(spawn('sh', ['-c', command], { cwd: made.cwd }), 'exit');
      const gone = await migrate(made);
      expect([gone.code, gone.stdout]).toEqual([0, expect.stringContaining(`there is no key of ${name} in `)]);
      if (client !== 'lighthouse') return;
      const token = readFileSync(join(made.cwd, 'strongroom/tokens/validator-client'), 'utf8').trim();
      const list = parse(readFileSync(join(made.cwd, 'client/validators/validator_definitions.yml'), 'utf8'));
      expect(list).toEqual(
        made.publicKeys.map((key) => ({
          enabled: true,
          voting_public_key: key,
          description: '',
          suggested_fee_recipient: '0x00000000219ab540356cbb839cbe05303d7705fa',
          type: 'web3signer',
          url: `http://any:${token}@127.0.0.1:9000`,
        })),
      );
    },
  );
});

describe.skipIf(lacking('Linux', 'script'))('at a terminal', () => {
  it('asks whether the client is stopped, and once for the one password, which does not appear', async () => {
    const { cwd, args } = makeClientFolder('prysm');
    const flags = args.filter((word) => word !== '--passwords' && word !== 'password.txt').join(' ');
    const word = { prompt: 'anything else to end: ', answer: 'stopped' };
    const asked = [word, { prompt: '(not shown): ', answer: 'open sesame' }];
    const { code, shown } = await atTerminal(`${PROGRAM} migrate ${flags}`, asked, { cwd });
    expect({ code, shown }).toMatchObject({ code: 0 });
    expect(shown).not.toContain('open sesame');
    const refused = await atTerminal(`${PROGRAM} migrate ${flags} --to other`, [{ ...word, answer: 'yes' }], {
      cwd,
    });
    expect([refused.code, existsSync(join(cwd, 'other'))]).toEqual([7, false]);
  });
});

describe("Web3Signer's database", () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server?.close());

  it('is merged, and the keys that it does not name are put aside', async () => {
    const { cwd, args, publicKeys } = makeClientFolder('web3signer');
    const [, key = ''] = publicKeys;
    const database = await createWeb3SignerDatabase(server, { genesisValidatorsRoot: MAINNET_ROOT });
    const [{ id } = { id: 0 }] = await database.query('INSERT INTO validators (public_key) VALUES ($1) RETURNING id', [
      Buffer.from(key.slice(2), 'hex'),
    ]);
    const vote = 'INSERT INTO signed_attestations (validator_id, source_epoch, target_epoch) VALUES ($1, 20, 21)';
    await database.query(vote, [id]);
    const listed = 'SELECT FROM pg_stat_activity WHERE datname = $1 AND usesysid IS NOT NULL';
    // A session that was closed is still listed for a moment.
    await vi.waitUntil(
      async () => (await server.query('postgres', listed, [database.name])).length === 0,
      LONGEST_WAIT_MS,
    );
    const words = [...args.slice(0, args.indexOf('--record')), '--record', 'env:WEB3SIGNER_RECORD', '--stopped'];
    const env = { WEB3SIGNER_RECORD: server.url(database.name) };
    const { code, stdout, stderr } = await runStrongroom(['migrate', ...words], { cwd, env });
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(stdout).toContain('Of 1 key the record says nothing.');
    const { signer, sign } = await startMigrated(cwd);
    expect(await sign(key, attestation({ source: 20, target: 21, head: rootOf(7) }))).toEqual([
      412,
      expect.any(String),
    ]);
    expect(await sign(key, attestation({ source: 21, target: 22 }))).toBe(200);
    await signer.stop();
  });
});
