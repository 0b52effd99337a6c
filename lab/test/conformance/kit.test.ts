// The conformance kit: it finds each planted fault of a naive signer, has nothing against that signer without one but
// what it does not know, and finds this signer right, as `make conformance` prints it.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SecretKey } from '@chainsafe/blst';
import { beforeAll, describe, expect, it } from 'vitest';
import { publicNetwork } from '../../../signer/sign/networks.ts';
import { deploy } from '../../../test/support/deployment.ts';
import { FULL_SCRYPT, publicKeyOf, testSecret, writeKeystore } from '../../../test/support/keys.ts';
import { runMake } from '../../../test/support/make.ts';
import { chainOf } from '../../../test/support/networks.ts';
import { TEST_TOKEN, testKey } from '../../../test/support/requests.ts';
import { someOf } from '../../../test/support/scale.ts';
import { vectorPath } from '../../../test/support/vectors.ts';
import { askDoor } from '../../conformance/door.ts';
import { runConformance } from '../../conformance/run.ts';
import { FAULTS, type Fault, startNaiveSigner } from './naive-signer.ts';

const CHAIN = chainOf(publicNetwork('sepolia'));
const KEYS = Array.from({ length: 8 }, (_, index) => testKey(index));
const SECRETS = new Map(KEYS.map(({ publicKey, secret }) => [publicKey, SecretKey.fromHex(secret)]));
const VECTORS = vectorPath('') ?? '';

async function reportOf(fault?: Fault) {
  const { url, server } = await startNaiveSigner(SECRETS, CHAIN, fault);
  try {
    const keys = KEYS.map(({ publicKey }) => publicKey);
    const target = { network: 'sepolia', keyCount: keys.length, bids: false };
    return await runConformance({ url, keys, headers: {}, chain: CHAIN, target }, VECTORS);
  } finally {
    server.close();
  }
}

const namesOf = (report: Awaited<ReturnType<typeof reportOf>>) =>
  new Set(report.findings.filter(({ verdict }) => verdict !== 'right').map(({ group, name }) => `${group}: ${name}`));

describe('the kit', () => {
  let withoutFault: Awaited<ReturnType<typeof reportOf>>;
  beforeAll(async () => {
    withoutFault = await reportOf();
  });

  // Four: one of each group.
  it.each(someOf(Object.entries(FAULTS) as [Fault, string][], 4))(
    'finds that a signer %s, by its %s',
    async (fault, group) => {
      const [without, planted] = [namesOf(withoutFault), namesOf(await reportOf(fault))];
      const found = [...planted].filter((name) => !without.has(name));
      expect(found.some((name) => name.startsWith(`${group}: `))).toBe(true);
    },
  );

  it('has nothing against that signer without a fault', () => {
    const { findings } = withoutFault;
    // A later fork is none of its schedule: what is of it may be refused.
    const isOfLaterFork = (name: string) => name.includes('of a later fork');
    const others = findings.filter(({ verdict, name }) => verdict !== 'right' && !isOfLaterFork(name));
    expect(others).toEqual([]);
    expect(findings.length).toBeGreaterThan(200);
  });

  it('finds this signer right in everything, as make conformance prints it', async () => {
    const scopes = ['sign', 'public_keys', 'reload'];
    const deployment = deploy(KEYS.length, {
      network: 'sepolia',
      static_auth: {
        policies: [{ name: 'kit', rules: [{ effect: 'allow', scopes }] }],
        tokens: [{ secret: TEST_TOKEN, policies: ['kit'] }],
      },
    });
    const signer = await deployment.start();
    try {
      const file = join(deployment.folder, 'conformance.json');
      const headers = { authorization: `Bearer ${TEST_TOKEN}` };
      writeFileSync(
        file,
        JSON.stringify({ network: 'sepolia', keys: KEYS.map(({ publicKey }) => publicKey), headers }),
      );
      const { code, stdout, stderr } = await runMake('conformance', `URL=${signer.url}`, `FILE=${file}`);
      expect(stderr).toBe('');
      expect(stdout).not.toMatch(/^(wrong|refused):/m);
      expect(stdout).toMatch(/^door +[1-9][0-9] +0 +0 +1$/m); // a restart is asked below
      expect(stdout).toMatch(/^EIP-3076 +17 +0 +0 +1$/m);
      expect(stdout).toMatch(/^client faults +[1-9][0-9]+ +0 +0 +0$/m);
      expect(code).toBe(0);
    } finally {
      await signer.stop();
    }
  });

  it('finds the list of this signer whole or not there while it restarts with keystores that take seconds', async () => {
    const deployment = deploy(1);
    const [key] = deployment.keys;
    writeKeystore(join(deployment.folder, 'keys'), 'slow', testSecret(99), 'TEST password', FULL_SCRYPT);
    const fixed = await deployment.start();
    const port = Number(new URL(fixed.url).port);
    await fixed.stop();
    const server = { listen_address: '127.0.0.1', listen_port: port };
    const file = join(deployment.folder, 'pid');
    const running = await deployment.start({ config: { server } });
    const restart = join(deployment.folder, 'restart.sh');
    const program = join(import.meta.dirname, '../../../bin/strongroom');
    const config = join(deployment.folder, 'strongroom.yaml');
    writeFileSync(
      restart,
      [
        `kill ${running.pid}`,
        `while kill -0 ${running.pid} 2>/dev/null; do sleep 0.05; done`,
        `${program} server -c ${config} >${deployment.folder}/log 2>&1 & echo $! >${file}`,
        `until curl -sf -o ${deployment.folder}/health http://127.0.0.1:${port}/healthcheck; do sleep 0.05; done`,
      ].join('\n'),
    );
    try {
      const { findings, skipped } = await askDoor({
        url: `http://127.0.0.1:${port}`,
        keys: [key?.publicKey ?? '', publicKeyOf(testSecret(99))],
        headers: { authorization: `Bearer ${TEST_TOKEN}` },
        restart: ['sh', restart],
      });
      expect(findings.filter(({ says }) => says !== '')).toEqual([]);
      expect(findings.map(({ name }) => name)).toContain('the list of keys during a restart');
      expect(skipped.map(({ what }) => what)).toEqual(['POST /reload']); // its token has no scope for it
    } finally {
      const pid = Number(readFileSync(file, 'utf8'));
      process.kill(pid);
      await running.ended;
    }
  });
});
