// A parent that writes a master key of its own before the first boot of an enclave, with all that its role may do then;
// and a fleet whose key is made, opened by an upgraded image and wrapped by a rotation, in processes of their own. What
// the attested status shows of the key is judged by verify_key.py alone.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CeremonyBlock, ceremonyDigest, parseCeremony } from '../../ceremony/definition.ts';
import { sha384Hex } from '../../common/attestation/key-evidence.ts';
import { createNsmEmulator, testPcr } from '../../rehearsal/nsm/emulator.ts';
import { type ChamberStatus, chamberStatusSchema } from '../../signer/api/chamber.ts';
import { bootReplica, NETWORK } from '../chamber/replicas.ts';
import { runWithRoot } from '../operator/run-operator.ts';
import { attested, registersOf } from '../support/attested-client.ts';
import { type EnclaveWorld, startEnclaveWorld } from '../support/enclave-world.ts';
import { findPython } from '../support/needs.ts';

const PROGRAM = fileURLToPath(new URL('../../docs/examples/verify_key.py', import.meta.url));
const UNSIGNED = Buffer.alloc(48);
/** The registers of the two images, as their pcrs.json say. */
const FIRST = { 0: testPcr(0), 1: testPcr(1), 2: testPcr(2), 8: UNSIGNED };
const UPGRADED = { 0: testPcr(30), 1: testPcr(31), 2: testPcr(32), 8: UNSIGNED };
const python = findPython('cryptography');

type Registers = typeof FIRST;
type Custody = NonNullable<ChamberStatus['custody']>;

interface Told {
  /** As `operator status --json` prints it. */
  readonly status: unknown;
  readonly origin: Origin;
}
type Origin = NonNullable<Custody['master_key']> & Pick<Custody, 'root_token' | 'seal_removal'>;

function pcrsOf(registers: Registers) {
  const hex = (index: 0 | 1 | 2): string => registers[index].toString('hex');
  return { PCR0: hex(0), PCR1: hex(1), PCR2: hex(2) };
}

function digestOf(ceremony: CeremonyBlock): string {
  return ceremonyDigest(parseCeremony(ceremony)).toString('hex');
}

describe('a master key that the parent planted before the first boot', () => {
  let world: EnclaveWorld;
  beforeAll(async () => {
    world = await startEnclaveWorld();
  });
  afterAll(() => world.close());

  it('is refused before a custody key is asked for a share, and no root token is made', async () => {
    const { custody, stateTable, ceremony } = world;
    await bootReplica(custody, { table: stateTable, ceremony });
    await custody.deleteRow(stateTable, 'ROOT_TOKEN_BOOTSTRAP');
    const before = custody.kms.calls.length;
    const parent = await world.startParent();
    const enclave = await world.startEnclave();
    expect(await enclave.exited).not.toBe(0);
    expect(enclave.console()).toContain(
      'does not prove that an accepted enclave made its key: its evidence is refused',
    );
    expect(custody.kms.calls.length).toBe(before);
    expect(await custody.row(stateTable, 'ROOT_TOKEN_BOOTSTRAP')).toBeUndefined();
    await parent.close();
  });
});

describe('the life of a master key', () => {
  let world: EnclaveWorld;
  beforeAll(async () => {
    world = await startEnclaveWorld();
  });
  afterAll(() => world.close());

  /** What the start of an image says of its key over an attested connection; it ends again. */
  async function originAt(registers: Registers, ceremony: CeremonyBlock, nitro: object = {}): Promise<Told> {
    const { endpoints } = world;
    const yaml = world.yaml({
      tee: { platform: 'nitro', nitro: { egress: { endpoints }, unsafe_parent_writes_tables: true, ...nitro } },
    });
    const parent = await world.startParent(yaml);
    const nsm = await createNsmEmulator({ pki: world.pki, pcrs: registers });
    const enclave = await world.startEnclave({ nsm, ceremony });
    await parent.said('ready');
    const client = await attested(parent.tlsUrl, world.pki, registersOf(enclave.nsm));
    try {
      const token = await world.custody.rootToken(world.stateTable);
      const status: unknown = (await client.call('/api/v1/chamber/status', { token })).json;
      const { custody } = chamberStatusSchema.parse(status);
      if (custody?.master_key == null) throw new Error('the status says nothing of the key');
      const { root_token, seal_removal } = custody;
      return { status, origin: { ...custody.master_key, root_token, seal_removal } };
    } finally {
      await client.close();
      await enclave.kill();
      await parent.close();
    }
  }

  /** What verify_key.py says of a status, which is what `operator verify` says; null: as expected. */
  async function verdictOf(
    status: unknown,
    { images, ceremony }: { images: readonly Registers[]; ceremony: CeremonyBlock },
  ): Promise<string | null> {
    const folder = mkdtempSync(join(tmpdir(), 'strongroom-key-'));
    const written = (name: string, value: unknown): string => {
      writeFileSync(join(folder, name), JSON.stringify(value));
      return join(folder, name);
    };
    try {
      const file = written('status.json', status);
      const place = ['--deployment', world.stateTable, '--network', NETWORK];
      const each = images.map((image, at) => written(`pcrs-${at}.json`, { measurements: pcrsOf(image) }));
      const { previous_ceremony: previous } = ceremony;
      const digests = [digestOf(ceremony), ...(previous === undefined ? [] : [previous])];
      const theirs = spawnSync(
        python ?? '',
        [
          ...[PROGRAM, file, ...place, '--test-root', world.pki.rootFingerprint],
          ...each.flatMap((name) => ['--pcrs', name]),
          ...digests.flatMap((digest) => ['--ceremony', digest]),
        ],
        { encoding: 'utf8', env: { PATH: process.env['PATH'] ?? '', PYTHONDONTWRITEBYTECODE: '1' } },
      );
      const accepted = images.flatMap((image) =>
        Object.entries(pcrsOf(image)).flatMap(([name, value]) => ['--pcr', `${name.slice(3)}=${value}`]),
      );
      const block = written('ceremony.yaml', ceremony);
      const ours = await runWithRoot(['verify', file, ...accepted, '--ceremony', block, ...place], {
        rootFingerprint: world.pki.rootFingerprint,
      });
      expect(theirs.status).toBe(ours.code);
      if (theirs.status === 0) return null;
      const [fault = ''] = theirs.stdout.split(':');
      expect(ours.stderr).toContain(fault);
      return fault;
    } finally {
      rmSync(folder, { recursive: true });
    }
  }

  it.runIf(python !== undefined)('is told and proven from the first boot over an upgrade to a rotation', async () => {
    const { ceremony, custody } = world;
    const first = await originAt(FIRST, ceremony);
    expect(first.origin).toMatchObject({ made_by_this_start: true, links: [{ purpose: 'made', generation: 1 }] });
    expect(first.origin.links[0]?.measurements['0']).toBe(FIRST[0].toString('hex'));
    expect(await verdictOf(first.status, { images: [FIRST], ceremony })).toBeNull();
    expect(await verdictOf(first.status, { images: [UPGRADED], ceremony })).toBe('other_image');
    const ciphertext = (await custody.row(world.stateTable, 'ROOT_TOKEN_BOOTSTRAP'))?.['value']?.S ?? '';
    expect(first.origin.root_token?.content).toBe(sha384Hex(ciphertext));

    const accepted = { accepted_images: [pcrsOf(FIRST)] };
    const upgraded = await originAt(UPGRADED, ceremony, accepted);
    expect(upgraded.origin).toEqual({ ...first.origin, made_by_this_start: false });

    const next = {
      ...custody.createCeremony(),
      generation: 2,
      retired_kms_keys: ceremony.kms_keys,
      previous_ceremony: digestOf(ceremony),
    };
    const rotated = await originAt(UPGRADED, next, accepted);
    expect(rotated.origin.links).toMatchObject([{ counter: 1 }, { counter: 2, purpose: 'wrapped', generation: 2 }]);
    const images = [FIRST, UPGRADED];
    expect(await verdictOf(rotated.status, { images, ceremony })).toBe('other_ceremony');
    expect(await verdictOf(rotated.status, { images, ceremony: next })).toBeNull();
    expect(await verdictOf(rotated.status, { images: [FIRST], ceremony: next })).toBe('other_image');
  });
});
