// A fleet as a person may build it by mistake: two signers with the same keys and a SQLite file each. Before signers
// were bound to one store both signed, a double vote and a double block. Real processes on one state table. TEST keys.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { CeremonyBlock } from '../../ceremony/definition.ts';
import { type CustodyWorld, startCustody } from '../../rehearsal/custody.ts';
import { type RunningSigner, startSigner } from '../../rehearsal/signer.ts';
import { LONGEST_WAIT_MS } from '../support/patience.ts';
import { attestation, block, call, randaoReveal, rootOf, signCall, testKey } from '../support/requests.ts';

/** A signer takes over 12 seconds after the last sign of life of the other; more on a busy machine. */
const WAIT = { timeout: LONGEST_WAIT_MS, interval: 250 };

let world: CustodyWorld;
let folder: string;
let table: string;
let ceremony: CeremonyBlock;
let first: RunningSigner;
let second: RunningSigner;
let token: string;

beforeAll(async () => {
  world = await startCustody();
  folder = mkdtempSync(join(tmpdir(), 'strongroom-fleet-'));
  mkdirSync(join(folder, 'keys'));
  writeFileSync(join(folder, 'keys/key.yaml'), `type: file-raw\nprivateKey: "${testKey(0).secret}"\n`);
  table = await world.createTable();
  ceremony = world.createCeremony();
  first = await startReplica('first');
  const root = await world.rootToken(table);
  await call(`${first.url}/api/v1/auth/policies`, { token: root, body: { name: 'all', rules: [{ effect: 'allow' }] } });
  const made = await call(`${first.url}/api/v1/auth/tokens`, { token: root, body: { policies: ['all'] } });
  token = String(made.json['token']);
  second = await startReplica('second');
});
afterAll(async () => {
  await Promise.all([first.kill(), second.kill()]);
  await world.close();
  rmSync(folder, { recursive: true, force: true });
});

function startReplica(name: string): Promise<RunningSigner> {
  return startSigner({
    config: {
      ...world.configuration(table, ceremony),
      key_sources: { filesystem: { paths: [join(folder, 'keys')] } },
      anti_slashing: { backend: 'sqlite', path: join(folder, `${name}.sqlite`) },
    },
    env: world.environment(),
  });
}

const ask = (signer: RunningSigner, body: unknown) => signCall(signer.url, testKey(0).publicKey, body, { token });
const reasonOf = async (signer: RunningSigner, body: unknown) => (await ask(signer, body)).json['reason'];

describe('two signers of one state table with a SQLite file each', () => {
  it('the second signs nothing while the first is alive, and says which replica uses which store', async () => {
    await vi.waitFor(async () => expect((await ask(first, attestation())).status).toBe(200), WAIT);
    expect((await ask(first, block({ slot: 1000 }))).status).toBe(200);
    // A jump of a later signer raises its store to the present: nothing beyond it may have been signed.
    expect(await reasonOf(first, attestation({ source: 20, target: 4_000_000_000 }))).toBe('ahead_of_clock');
    expect(await reasonOf(first, block({ slot: 4_000_000_000 }))).toBe('ahead_of_clock');
    for (const body of [attestation({ head: rootOf(7) }), block({ slot: 1000, body: rootOf(8) }), randaoReveal()]) {
      expect(await reasonOf(second, body)).toBe('slashing_unbound');
    }
    const line = second.log.find(({ msg }) => String(msg).startsWith('NOTHING IS SIGNED'));
    expect(line).toMatchObject({
      other_replica: expect.any(String),
      other_store: expect.stringMatching(/^[0-9a-f]{32}$/),
    });
    expect(String(line?.['msg'])).toContain('postgres or dynamodb');
  });

  it('the second says and takes nothing of its own record, over any route', async () => {
    const path = `${second.url}/api/v1/chamber/slashing-protection`;
    const metadata = { interchange_format_version: '5', genesis_validators_root: rootOf(0) };
    expect((await call(path, { token })).json['reason']).toBe('slashing_unbound');
    expect((await call(`${path}?pubkeys=${testKey(0).publicKey}`, { token })).json['reason']).toBe('slashing_unbound');
    expect((await call(path, { token, body: { metadata, data: [] } })).json['reason']).toBe('slashing_unbound');
    expect((await call(`${first.url}/api/v1/chamber/slashing-protection`, { token })).status).toBe(200);
  });

  it('takes over when the first shows no life, with a jump; the first signs nothing when it wakes', async () => {
    process.kill(first.pid, 'SIGSTOP');
    // Asked of a process that is stopped: it answers when it wakes.
    const late = reasonOf(first, attestation({ source: 20, target: 21 }));
    await vi.waitFor(async () => {
      expect(await reasonOf(second, attestation({ head: rootOf(7) }))).toBe('source_below_low_water_mark');
    }, WAIT);
    expect(await reasonOf(second, block({ slot: 1000, body: rootOf(8) }))).toBe('block_below_low_water_mark');
    expect((await call(second.metricsUrl)).text).toMatch(/^svc_slashing_jumps_total\{cause="other_store"\} 1$/m);
    process.kill(first.pid, 'SIGCONT');
    // It has lost sight of the table, too, until it has looked again.
    expect(['slashing_unbound', 'state_stale']).toContain(await late);
    await vi.waitFor(async () => {
      expect(await reasonOf(first, attestation({ source: 21, target: 22 }))).toBe('slashing_unbound');
    }, WAIT);
  });

  it('gives the fleet back to a replica that comes back with its file, when the other is gone', async () => {
    await second.stop();
    await vi.waitFor(async () => {
      expect(await reasonOf(first, attestation({ source: 30, target: 31 }))).toBe('source_below_low_water_mark');
    }, WAIT);
  });
});
