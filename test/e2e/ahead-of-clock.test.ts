// One key's future is its own (docs/specification/slashing.md#ahead), over real processes without a state table: what
// lies ahead of the clock is refused by every way in, so that no later start, failover or jump is hindered by it, and
// other keys sign on. TEST keys.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RunningSigner, runStrongroom } from '../../rehearsal/signer.ts';
import { type Deployment, deploy } from '../support/deployment.ts';
import { interchangeOf } from '../support/interchange.ts';
import { encryptKeystore, publicKeyOf, testSecret } from '../support/keys.ts';
import { type PostgresServer, startPostgres } from '../support/postgres.ts';
import { nextEpoch, presentEpoch, QUICK_CHAIN, withTolerance } from '../support/quick-chain.ts';
import { attestation, batchCall, block, call, rootOf, signCall, TEST_TOKEN, testKey } from '../support/requests.ts';

const [OWN, OTHER] = [testKey(0).publicKey, testKey(1).publicKey];
const PASSWORD = 'TEST password of a keystore';
const COMING = publicKeyOf(testSecret(77));
/** One epoch, a day of 225 epochs, for ever. */
const LEADS = [60, 40_000, Number.MAX_SAFE_INTEGER];

const config = {
  ...QUICK_CHAIN,
  http: { key_manager_api: { enabled: true } },
  chamber: { keys: { import: { enabled: true } } },
  static_auth: {
    policies: [{ name: 'all', rules: [{ effect: 'allow' }] }],
    tokens: [{ secret: TEST_TOKEN, policies: ['all'] }],
  },
};

/** The key's own vote of the future, beside another key's of the past, as every way in writes it. */
const fileOf = (key: string, target: number): string => {
  const { metadata, data } = interchangeOf([OTHER]);
  const future = {
    pubkey: key,
    signed_blocks: [],
    signed_attestations: [{ source_epoch: '1', target_epoch: String(target) }],
  };
  return JSON.stringify({ metadata, data: [...data, future] });
};
/** Also of epochs whose slots cannot be written. */
const voteFor = (target: number): Record<string, unknown> => {
  const { attestation: data, ...body } = attestation({ source: 1, target }) as { attestation: object };
  return { ...body, attestation: { ...data, slot: '32' } };
};
const keystoresOf = (file: string): object => ({
  keystores: [JSON.stringify(encryptKeystore(testSecret(77), PASSWORD))],
  passwords: [PASSWORD],
  slashing_protection: file,
});

const WITH_TOKEN = ['--token', 'env:TOKEN', '--allow-plaintext-signer'];

interface Asked {
  readonly signer: RunningSigner;
  readonly file: string;
}

/** Each way says whether it refused, and its words. */
const WAYS: Readonly<Record<string, (asked: Asked) => Promise<{ refused: boolean; said: string }>>> = {
  'POST /api/v1/chamber/slashing-protection': async ({ signer, file }) => {
    const { status, text } = await call(`${signer.url}/api/v1/chamber/slashing-protection`, { body: file });
    return { refused: status === 503, said: text };
  },
  'strongroom operator slashing import': async ({ signer, file }) => {
    const path = join(place.folder, 'file.json');
    writeFileSync(path, file);
    const words = ['operator', 'slashing', 'import', path, '--signer-url', signer.url, ...WITH_TOKEN];
    const { code, stderr } = await runStrongroom(words, { env: { TOKEN: TEST_TOKEN } });
    return { refused: code !== 0, said: stderr };
  },
  'POST /eth/v1/keystores': async ({ signer, file }) => {
    const { status, text } = await call(`${signer.url}/eth/v1/keystores`, { body: keystoresOf(file) });
    return { refused: status === 503, said: text };
  },
  'POST /api/v1/chamber/keys': async ({ signer, file }) => {
    const { status, text } = await call(`${signer.url}/api/v1/chamber/keys`, {
      body: { ...keystoresOf(file), storage: { persist: false } },
    });
    return { refused: status === 503, said: text };
  },
};

let place: Deployment;

describe('a running signer', () => {
  let signer: RunningSigner;
  beforeAll(async () => {
    place = deploy(2, config);
    signer = await place.start();
  });
  afterAll(() => signer.stop());

  it.each(LEADS)('signs no vote and no block %d epochs ahead, alone or in a batch, and records none', async (lead) => {
    const target = Math.min(presentEpoch() + lead, Number.MAX_SAFE_INTEGER);
    const vote = voteFor(target);
    const slot = Math.min(target * 32, Number.MAX_SAFE_INTEGER);
    for (const body of [vote, block({ slot })]) {
      expect((await signCall(signer.url, OWN, body)).json).toMatchObject({ code: 503, reason: 'ahead_of_clock' });
    }
    const { json } = await batchCall(signer.url, [OWN, OTHER], vote);
    expect(JSON.stringify(json)).toMatch(/ahead_of_clock.*ahead_of_clock/);
    const records = await call(`${signer.url}/api/v1/chamber/slashing-protection`);
    expect(records.json['data']).toEqual([]);
  });

  it.each(Object.keys(WAYS))('%s refuses a file of the future as a whole, with key and place', async (way) => {
    const key = way.includes('keys') ? COMING : OWN;
    for (const lead of LEADS) {
      const target = Math.min(presentEpoch() + lead, Number.MAX_SAFE_INTEGER);
      const answer = await WAYS[way]?.({ signer, file: fileOf(key, target) });
      expect(answer).toMatchObject({
        refused: true,
        said: expect.stringMatching(new RegExp(`data\\[1\\], key ${key}, has a vote with target epoch ${target} \\(`)),
      });
    }
    const records = await call(`${signer.url}/api/v1/chamber/slashing-protection`);
    expect(records.json['data']).toEqual([]);
    const listed = await call(`${signer.url}/eth/v1/keystores`);
    expect(JSON.stringify(listed.json)).not.toContain(COMING);
  });

  it('takes a file of the future when its operator says so; other keys sign on', async () => {
    const path = join(place.folder, 'accepted.json');
    writeFileSync(path, fileOf(OWN, presentEpoch() + 40_000));
    const words = [
      'operator',
      'slashing',
      'import',
      path,
      '--accept-future',
      '--signer-url',
      signer.url,
      ...WITH_TOKEN,
    ];
    const imported = await runStrongroom(words, { env: { TOKEN: TEST_TOKEN } });
    expect(imported).toMatchObject({ code: 0 });
    const vote = attestation({ source: presentEpoch() - 1, target: presentEpoch() });
    expect((await signCall(signer.url, OWN, vote)).json).toMatchObject({ code: 412, reason: 'surrounded_vote' });
    expect((await signCall(signer.url, OTHER, vote)).status).toBe(200);
    const path2 = `${signer.url}/api/v1/chamber/slashing-protection?accept_future=yes`;
    expect((await call(path2, { body: fileOf(OWN, 1) })).json).toMatchObject({ reason: 'malformed_parameter' });
  });
});

// The faults that were found: one message or one entry for ONE key, then an end that makes a jump necessary.

let postgres: PostgresServer;
beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres.close());

const STORES = {
  sqlite: async () => undefined,
  postgres: async () => ({ backend: 'postgres', url: postgres.url(await postgres.createDatabase()) }),
} as const;

describe.each(Object.entries(STORES))('over %s, after kill -9', (_name, open) => {
  it.each(['asked to sign', 'told by a file'])(
    'every other key signs on, though one was %s the far future',
    async (how) => {
      const antiSlashing = await open();
      const own = deploy(2, config);
      const anti_slashing = withTolerance(antiSlashing ?? (own.config['anti_slashing'] as object));
      const start = () => own.start({ config: { anti_slashing } });
      let signer = await start();
      const early = attestation({ source: presentEpoch() - 2, target: presentEpoch() - 1 });
      expect((await signCall(signer.url, OTHER, early)).status).toBe(200);
      if (how === 'asked to sign') {
        const far = voteFor(Number.MAX_SAFE_INTEGER);
        expect((await signCall(signer.url, OWN, far)).json['reason']).toBe('ahead_of_clock');
      } else {
        const refused = await call(`${signer.url}/api/v1/chamber/slashing-protection`, {
          body: fileOf(OWN, Number.MAX_SAFE_INTEGER),
        });
        expect(refused.json['reason']).toBe('ahead_of_clock');
      }
      for (let kills = 0; kills < 2; kills++) {
        await signer.kill();
        signer = await start();
        for (const key of [OWN, OTHER]) {
          const target = await nextEpoch();
          expect((await signCall(signer.url, key, attestation({ source: target - 1, target }))).status).toBe(200);
          const other = attestation({ source: target - 1, target, head: rootOf(9) });
          expect((await signCall(signer.url, key, other)).status).toBe(412);
        }
      }
      await signer.stop();
    },
  );
});

it('strongroom slashing import refuses a file of the future as a whole, and takes it with --accept-future', async () => {
  const own = deploy(2, config);
  const path = join(own.folder, 'c.yaml');
  const file = join(own.folder, 'file.json');
  writeFileSync(path, JSON.stringify({ ...QUICK_CHAIN, anti_slashing: own.config['anti_slashing'] }));
  writeFileSync(file, fileOf(OWN, presentEpoch() + 9000));
  const slashing = (...words: readonly string[]) => runStrongroom(['slashing', ...words, '-c', path]);
  expect(await slashing('import', file)).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(
      /data\[1\], key 0x[0-9a-f]{96}, has a vote with target epoch \d+ \(89\d\d epochs ahead\)/,
    ),
  });
  expect((await slashing('status')).stdout).toMatch(/^keys: 0$/m);
  expect(await slashing('import', file, '--accept-future')).toMatchObject({ code: 0 });
  expect((await slashing('status')).stdout).toMatch(/^keys: 2$/m);
});

describe.each(Object.entries(STORES))('over %s, a key that was accepted with records of the future', (_name, open) => {
  it('is named wherever one looks, and comes back by the word of its operator alone', async () => {
    const antiSlashing = await open();
    const own = deploy(2, config);
    const anti_slashing = withTolerance(antiSlashing ?? (own.config['anti_slashing'] as object));
    const path = join(own.folder, 'c.yaml');
    const file = join(own.folder, 'file.json');
    const configuration = { ...own.config, anti_slashing };
    writeFileSync(path, JSON.stringify(configuration));
    writeFileSync(file, fileOf(OWN, presentEpoch() + 9000));
    const slashing = (...words: readonly string[]) => runStrongroom(['slashing', ...words, '-c', path]);
    expect(await slashing('import', file, '--accept-future')).toMatchObject({ code: 0 });

    const named = new RegExp(`${OWN}[^\n]* a vote with target epoch \\d+ \\(\\d+ epochs ahead\\)`);
    expect((await slashing('status')).stdout).toMatch(/^keys ahead of the clock: 1$/m);
    expect((await slashing('status')).stdout).toMatch(named);
    const check = await runStrongroom(['server', '--check', '-c', path]);
    expect((check.stdout + check.stderr).replaceAll(/\n */g, ' ')).toMatch(named);

    let signer = await own.start({ config: { anti_slashing } });
    try {
      await expect
        .poll(async () => (await call(`${signer.url}/healthcheck`)).text)
        .toContain('1 key with records ahead');
      expect((await call(`${signer.url}/healthcheck`)).json).toMatchObject({
        status: 'UP',
        checks: expect.arrayContaining([expect.objectContaining({ id: 'anti_slashing', status: 'DEGRADED' })]),
      });
      const metrics = (await call(signer.metricsUrl)).text;
      expect(metrics).toMatch(/^svc_slashing_keys_ahead\{kind="attestation"\} 1$/m);
      expect(metrics).toMatch(/^svc_slashing_keys_ahead\{kind="block"\} 0$/m);
      const words = ['operator', 'status', '--json', '--signer-url', signer.url, ...WITH_TOKEN];
      expect((await runStrongroom(words, { env: { TOKEN: TEST_TOKEN } })).stdout).toContain(OWN);
      const target = await nextEpoch();
      const vote = attestation({ source: target - 1, target });
      expect((await signCall(signer.url, OTHER, vote)).status).toBe(200);
      expect((await signCall(signer.url, OWN, vote)).status).toBe(412);
    } finally {
      await signer.stop();
    }

    const forget = (confirmed: string, key = OWN) => slashing('reinstate', key, '--unsafe-forget-records', confirmed);
    expect(await forget(OTHER)).toMatchObject({ code: 1, stderr: expect.stringContaining('repeats the one key') });
    expect(await forget(OTHER, OTHER)).toMatchObject({ code: 1, stderr: expect.stringContaining('no records ahead') });
    expect(await forget(OWN)).toMatchObject({ code: 1, stderr: expect.stringContaining('is not retired') });
    expect(await slashing('retire', OWN)).toMatchObject({ code: 0 });
    const done = await forget(OWN);
    expect(done).toMatchObject({ code: 0, stdout: expect.stringMatching(named) });
    expect(done.stdout).toContain(`reinstated: ${OWN} (tenure 2)`);
    expect((await slashing('status')).stdout).toMatch(/^keys ahead of the clock: 0$/m);

    signer = await own.start({ config: { anti_slashing } });
    try {
      const past = attestation({ source: presentEpoch() - 1, target: presentEpoch() });
      expect((await signCall(signer.url, OWN, past)).json['reason']).toMatch(/low_water_mark$/);
      const target = await nextEpoch();
      expect((await signCall(signer.url, OWN, attestation({ source: target - 1, target }))).status).toBe(200);
    } finally {
      await signer.stop();
    }
  });
});
