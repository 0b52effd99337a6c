// Where a master key comes from: an enclave asks no custody key for a share before the MASTER_KEY row proves that an
// accepted enclave wrote exactly this record. The parent of these tests may write every row, encrypt under every
// custody key, and run images of its own on modules of the same authority.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { generateAgeIdentity } from '../../ceremony/age-identity.ts';
import { type CeremonyBlock, ceremonyDigest, deploymentOf, parseCeremony } from '../../ceremony/definition.ts';
import { keyStatementBinding, serializeKeyEvidence, sha384Hex } from '../../common/attestation/key-evidence.ts';
import { measureOnce, readMeasurements } from '../../enclave/measure.ts';
import { createNsm } from '../../enclave/nsm/client.ts';
import { type CustodyWorld, startCustody } from '../../rehearsal/custody.ts';
import { createNsmEmulator, type NsmEmulatorOptions, testPcr } from '../../rehearsal/nsm/emulator.ts';
import { createNsmPki, type NsmPki } from '../../rehearsal/nsm/pki.ts';
import { bootReplica, fingerprint, NETWORK, openTable, type Replica, type ReplicaOptions, said } from './replicas.ts';

const CEREMONY_PCR = 17;
/** Another image, as its registers say. */
const UPGRADED = { 0: testPcr(20), 1: testPcr(21), 2: testPcr(22) };
const UNSIGNED = { 8: Buffer.alloc(48) };
const FIRST_IMAGE = {
  PCR0: testPcr(0).toString('hex'),
  PCR1: testPcr(1).toString('hex'),
  PCR2: testPcr(2).toString('hex'),
};

let pki: NsmPki;
let world: CustodyWorld;

beforeAll(async () => {
  pki = await createNsmPki();
  world = await startCustody();
});
afterAll(() => world.close());

type Enclave = NonNullable<ReplicaOptions['provenance']>;

async function startOf(ceremony: CeremonyBlock, options: NsmEmulatorOptions = {}): Promise<Enclave> {
  const nsm = createNsm((await createNsmEmulator({ pki, ...options })).exchange);
  await measureOnce(nsm, CEREMONY_PCR, ceremonyDigest(parseCeremony(ceremony)));
  const documents = { name: 'the tests', rootSha256: pki.rootFingerprint };
  return { nsm, documents, measurements: await readMeasurements(nsm) };
}

interface BootOptions extends NsmEmulatorOptions {
  readonly acceptedImages?: Enclave['acceptedImages'];
}

async function boot(
  table: string,
  ceremony: CeremonyBlock,
  { acceptedImages = [], ...options }: BootOptions = {},
): Promise<Replica> {
  const provenance = { ...(await startOf(ceremony, options)), acceptedImages };
  return bootReplica(world, { table, ceremony, kms: { maxAttempts: 1 }, provenance });
}

/** A service outside an enclave, and so everything that a parent's role may do. */
function plant(table: string, ceremony: CeremonyBlock): Promise<Replica> {
  return bootReplica(world, { table, ceremony, kms: { maxAttempts: 1 } });
}

/** A record of another master key for the same deployment, in place of the row that is there. */
async function plantOver(table: string, ceremony: CeremonyBlock): Promise<void> {
  const elsewhere = await world.createTable();
  await bootReplica(world, { table: elsewhere, ceremony, terms: { deployment: deploymentOf(NETWORK, table) } });
  await world.putRow(table, (await world.row(elsewhere, 'MASTER_KEY')) ?? {});
}

async function evidenceIn(table: string): Promise<string> {
  return (await world.row(table, 'MASTER_KEY'))?.['evidence']?.S ?? '';
}

async function setEvidence(table: string, evidence: string): Promise<void> {
  await world.putRow(table, { ...(await world.row(table, 'MASTER_KEY')), evidence: { S: evidence } });
}

/** The start refuses the row with these words, and no custody key was asked for anything. */
async function expectRefusal(start: () => Promise<unknown>, fault: string): Promise<void> {
  const before = world.kms.calls.length;
  await expect(start()).rejects.toMatchObject({
    startupFailure: 9,
    message: expect.stringContaining(`its evidence is refused (${fault})`),
  });
  expect(world.kms.calls.length).toBe(before);
}

function originOf({ booted }: Replica) {
  return booted.kind === 'sealed' ? undefined : booted.origin?.links;
}

function rowsOf({ booted }: Replica) {
  return booted.kind === 'sealed' ? undefined : booted.origin;
}

function next(ceremony: CeremonyBlock): CeremonyBlock {
  return {
    ...world.createCeremony(),
    generation: ceremony.generation + 1,
    retired_kms_keys: ceremony.kms_keys,
    previous_ceremony: ceremonyDigest(parseCeremony(ceremony)).toString('hex'),
  };
}

describe('an enclave', () => {
  it('proves the key that it makes, and later starts of its image verify that', async () => {
    const [table, ceremony] = [await world.createTable(), world.createCeremony()];
    const first = await boot(table, ceremony);
    expect(said(first, 'initialised')).toBe(true);
    const second = await boot(table, ceremony);
    expect(fingerprint(second)).toBe(fingerprint(first));
    const record = sha384Hex((await world.row(table, 'MASTER_KEY'))?.['record']?.S ?? '');
    expect(originOf(second)).toMatchObject([{ purpose: 'made', counter: 1, generation: 1, record, origin: null }]);
    expect(originOf(second)).toEqual(originOf(first));
  });

  it('refuses a key that was planted before its first boot', async () => {
    const [table, ceremony] = [await world.createTable(), world.createCeremony()];
    await plant(table, ceremony);
    await expectRefusal(() => boot(table, ceremony), 'missing');
  });

  it.each([
    ['nothing', ''],
    ['no list', '{"version":1,"links":[]}'],
    ['another spelling', '{"version": 1}'],
  ])('refuses %s in place of evidence', async (_what, text) => {
    const [table, ceremony] = [await world.createTable(), world.createCeremony()];
    await plant(table, ceremony);
    await setEvidence(table, text);
    await expectRefusal(() => boot(table, ceremony), 'malformed');
  });

  it('refuses evidence that is of another record, though of its own image, deployment and ceremony', async () => {
    const [table, ceremony] = [await world.createTable(), world.createCeremony()];
    await boot(table, ceremony);
    const evidence = await evidenceIn(table);
    await plantOver(table, ceremony);
    await setEvidence(table, evidence);
    await expectRefusal(() => boot(table, ceremony), 'other_record');
  });

  it('refuses the evidence of another deployment', async () => {
    const [table, other, ceremony] = [await world.createTable(), await world.createTable(), world.createCeremony()];
    await plant(table, ceremony);
    await boot(other, ceremony);
    await setEvidence(table, await evidenceIn(other));
    await expectRefusal(() => boot(table, ceremony), 'other_record');
  });

  it('refuses evidence under another root', async () => {
    const [table, ceremony] = [await world.createTable(), world.createCeremony()];
    const stranger = await createNsmPki();
    const own = await startOf(ceremony, { pki: stranger });
    const documents = { name: 'a stranger', rootSha256: stranger.rootFingerprint };
    await bootReplica(world, { table, ceremony, provenance: { ...own, documents } });
    await expectRefusal(() => boot(table, ceremony), 'not_authentic');
  });

  it('refuses a document that says something else than its link', async () => {
    const [table, ceremony] = [await world.createTable(), world.createCeremony()];
    await boot(table, ceremony);
    const { links } = JSON.parse(await evidenceIn(table)) as { links: { generation: number }[] };
    await setEvidence(table, JSON.stringify({ version: 1, links: links.map((link) => ({ ...link, counter: 2 })) }));
    await expectRefusal(() => boot(table, ceremony), 'other_statement');
  });

  it('makes no key in debug mode', async () => {
    const [table, ceremony] = [await world.createTable(), world.createCeremony()];
    await expect(boot(table, ceremony, { debugMode: true })).rejects.toThrow('its evidence is refused (debug)');
    expect(await world.row(table, 'MASTER_KEY')).toBeUndefined();
  });
});

describe('the ciphertext of the root token', () => {
  it('is proven from the first boot on, and again when it is made anew', async () => {
    const [table, ceremony] = [await world.createTable(), world.createCeremony()];
    const first = await boot(table, ceremony);
    const content = sha384Hex((await world.row(table, 'ROOT_TOKEN_BOOTSTRAP'))?.['value']?.S ?? '');
    const origin = sha384Hex(originOf(first)?.[0]?.document ?? '');
    expect(rowsOf(first)?.rootToken).toMatchObject({ purpose: 'root_token', generation: 1, content, origin });
    await world.deleteRow(table, 'ROOT_TOKEN_BOOTSTRAP');
    const second = await boot(table, ceremony);
    const renewed = sha384Hex((await world.row(table, 'ROOT_TOKEN_BOOTSTRAP'))?.['value']?.S ?? '');
    expect(renewed).not.toBe(content);
    expect(rowsOf(second)?.rootToken?.content).toBe(renewed);
    expect(rowsOf(await boot(table, ceremony))?.rootToken).toEqual(rowsOf(second)?.rootToken);
  });

  it.each(['missing', 'other_record'])('that was put there is refused: %s', async (fault) => {
    const [table, elsewhere, ceremony] = [await world.createTable(), await world.createTable(), world.createCeremony()];
    await boot(table, ceremony);
    await bootReplica(world, { table: elsewhere, ceremony });
    const planted = (await world.row(elsewhere, 'ROOT_TOKEN_BOOTSTRAP')) ?? {};
    const evidence = (await world.row(table, 'ROOT_TOKEN_BOOTSTRAP'))?.['evidence'];
    await world.putRow(table, fault === 'missing' || evidence === undefined ? planted : { ...planted, evidence });
    await expectRefusal(() => boot(table, ceremony), fault);
  });

  it('outlives rotations: it names the document that made the key', async () => {
    const [table, ceremony] = [await world.createTable(), world.createCeremony()];
    const first = await boot(table, ceremony);
    const second = next(ceremony);
    await boot(table, second);
    const third = next(second);
    expect(rowsOf(await boot(table, third))?.rootToken).toEqual(rowsOf(first)?.rootToken);
  });
});

describe('a seal', () => {
  const REASON = 'a drill';

  async function sealed(table: string): Promise<void> {
    using state = openTable(world, table);
    await state.writeLatch({ reason: REASON, accessor: 'acc_1', sealedAt: '2026-01-02T03:04:05.000Z' });
  }

  it('whose latch somebody deleted leaves a trace that the start has attested, and that later starts verify', async () => {
    const [table, ceremony] = [await world.createTable(), world.createCeremony()];
    const first = await boot(table, ceremony);
    await sealed(table);
    expect((await boot(table, ceremony)).booted.kind).toBe('sealed');
    await world.deleteRow(table, 'SEAL_OVERRIDE');
    const after = await boot(table, ceremony);
    expect(said(after, 'SEAL_OVERRIDE was removed since the last seal')).toBe(true);
    expect(fingerprint(after)).toBe(fingerprint(first));
    const removal = rowsOf(after)?.sealRemoval;
    expect(removal).toMatchObject({ purpose: 'seal_removed', content: sha384Hex(removal?.seal ?? '') });
    expect(JSON.parse(removal?.seal ?? '')).toMatchObject({ reason: REASON, accessor: 'acc_1' });
    const later = await boot(table, ceremony);
    expect(said(later, 'SEAL_OVERRIDE was removed')).toBe(false);
    expect(rowsOf(later)?.sealRemoval).toEqual(removal);
    expect(rowsOf(await boot(table, next(ceremony)))?.sealRemoval).toEqual(removal);
  });

  it('cannot be said to have been another one', async () => {
    const [table, ceremony] = [await world.createTable(), world.createCeremony()];
    await boot(table, ceremony);
    await sealed(table);
    await world.deleteRow(table, 'SEAL_OVERRIDE');
    await boot(table, ceremony);
    const row = await world.row(table, 'MASTER_KEY');
    await world.putRow(table, { ...row, removed_seal: { S: '{"sealed_at":null,"reason":null,"accessor":null}' } });
    await expectRefusal(() => boot(table, ceremony), 'other_record');
    const { removal: _, ...without } = row ?? {};
    await world.putRow(table, without);
    await expectRefusal(() => boot(table, ceremony), 'malformed');
  });

  it('that is written while a start wraps the key again stops that start', async () => {
    const [table, ceremony] = [await world.createTable(), world.createCeremony()];
    await boot(table, ceremony);
    using state = openTable(world, table);
    const before = await state.readMasterKey();
    await sealed(table);
    if (before === undefined) throw new Error('there is a row');
    expect(await state.replaceMasterKey(before, { ...before, record: '{}' })).toBe('condition_failed');
  });

  it('seals also where there is no row that could keep it', async () => {
    const table = await world.createTable();
    await sealed(table);
    expect(await world.row(table, 'MASTER_KEY')).toBeUndefined();
    expect((await boot(table, world.createCeremony())).booted.kind).toBe('sealed');
  });
});

describe('another image', () => {
  it('opens nothing', async () => {
    const [table, ceremony] = [await world.createTable(), world.createCeremony()];
    await boot(table, ceremony, { pcrs: UNSIGNED });
    await expectRefusal(() => boot(table, ceremony, { pcrs: { ...UPGRADED, ...UNSIGNED } }), 'other_image');
  });

  it.each([0, 1, 2] as const)('opens nothing when PCR%i alone differs', async (index) => {
    const [table, ceremony] = [await world.createTable(), world.createCeremony()];
    await boot(table, ceremony, { pcrs: UNSIGNED });
    const pcrs = { [index]: UPGRADED[index], ...UNSIGNED };
    await expectRefusal(() => boot(table, ceremony, { pcrs }), 'other_image');
  });

  it('that the same certificate signed opens the key, and one that another signed does not', async () => {
    const [table, ceremony] = [await world.createTable(), world.createCeremony()];
    const first = await boot(table, ceremony);
    expect(fingerprint(await boot(table, ceremony, { pcrs: UPGRADED }))).toBe(fingerprint(first));
    await expectRefusal(() => boot(table, ceremony, { pcrs: { ...UPGRADED, 8: testPcr(9) } }), 'other_image');
  });

  it('that lists the first one opens the key', async () => {
    const [table, ceremony] = [await world.createTable(), world.createCeremony()];
    const first = await boot(table, ceremony, { pcrs: UNSIGNED });
    const acceptedImages = [FIRST_IMAGE];
    const upgraded = await boot(table, ceremony, { pcrs: { ...UPGRADED, ...UNSIGNED }, acceptedImages });
    expect(fingerprint(upgraded)).toBe(fingerprint(first));
    const almost = [{ ...FIRST_IMAGE, PCR2: testPcr(9).toString('hex') }];
    const start = () => boot(table, ceremony, { pcrs: { ...UPGRADED, ...UNSIGNED }, acceptedImages: almost });
    await expectRefusal(start, 'other_image');
  });
});

describe('a ceremony', () => {
  it('names the one before it, and a rotation keeps the evidence before its own', async () => {
    const [table, ceremony] = [await world.createTable(), world.createCeremony()];
    const first = await boot(table, ceremony);
    const second = next(ceremony);
    const rotated = await boot(table, second);
    expect(said(rotated, 'rotated')).toBe(true);
    expect(fingerprint(rotated)).toBe(fingerprint(first));
    const [made, wrapped] = originOf(rotated) ?? [];
    expect(made).toEqual(originOf(first)?.[0]);
    const origin = sha384Hex(made?.document ?? '');
    expect(wrapped).toMatchObject({ purpose: 'wrapped', counter: 2, generation: 2, origin, previous: origin });
    expect(originOf(await boot(table, second))).toEqual(originOf(rotated));
  });

  it('that does not name the one before it opens nothing of that one', async () => {
    const [table, ceremony] = [await world.createTable(), world.createCeremony()];
    await boot(table, ceremony);
    const { previous_ceremony: _, ...nameless } = next(ceremony);
    await expectRefusal(() => boot(table, nameless), 'other_ceremony');
  });

  it('opens nothing of a ceremony that is older than the one before it', async () => {
    const [table, ceremony] = [await world.createTable(), world.createCeremony()];
    await boot(table, ceremony);
    const second = next(ceremony);
    const third = { ...next(second), retired_kms_keys: ceremony.kms_keys };
    await expectRefusal(() => boot(table, third), 'other_ceremony');
  });

  it('of other participants in the same generation opens nothing, whatever the link claims', async () => {
    const [table, ceremony] = [await world.createTable(), world.createCeremony()];
    await boot(table, { ...ceremony, root_token_recipients: [(await generateAgeIdentity()).recipient] });
    const { links } = JSON.parse(await evidenceIn(table)) as { links: object[] };
    await expectRefusal(() => boot(table, ceremony), 'other_ceremony');
    const digest = ceremonyDigest(parseCeremony(ceremony)).toString('hex');
    const claimed = links.map((link) => ({ ...link, ceremony: digest }));
    await setEvidence(table, JSON.stringify({ version: 1, links: claimed }));
    await expectRefusal(() => boot(table, ceremony), 'other_statement');
  });
});

describe('a chain of re-wraps', () => {
  it('whose first link is cut off, repeated or put elsewhere is refused', async () => {
    const [table, ceremony] = [await world.createTable(), world.createCeremony()];
    await boot(table, ceremony);
    const second = next(ceremony);
    await boot(table, second);
    const { links } = JSON.parse(await evidenceIn(table)) as { links: object[] };
    const [made, wrapped] = links;
    for (const forged of [[wrapped], [made, made, wrapped], [wrapped, made], [made, wrapped, wrapped]]) {
      await setEvidence(table, JSON.stringify({ version: 1, links: forged }));
      await expectRefusal(() => boot(table, second), 'broken_chain');
    }
    await setEvidence(table, JSON.stringify({ version: 1, links: [made] }));
    await expectRefusal(() => boot(table, second), 'other_record');
  });

  it('that an image of the parent made behind a genuine link is refused, though its document is authentic', async () => {
    const [table, ceremony] = [await world.createTable(), world.createCeremony()];
    await boot(table, ceremony, { pcrs: UNSIGNED });
    const genuine = JSON.parse(await evidenceIn(table)) as { links: [{ document: string }] };
    const second = next(ceremony);
    await plantOver(table, second);
    const hostile = await startOf(second, { pcrs: { ...UPGRADED, ...UNSIGNED } });
    const before = sha384Hex(Buffer.from(genuine.links[0].document, 'base64'));
    const statement = {
      ...({ purpose: 'wrapped', counter: 2, generation: 2, origin: before, previous: before } as const),
      deployment: { network: NETWORK, id: table },
      ceremony: ceremonyDigest(parseCeremony(second)).toString('hex'),
      record: sha384Hex((await world.row(table, 'MASTER_KEY'))?.['record']?.S ?? ''),
    };
    const document = await hostile.nsm.attest({ userData: keyStatementBinding(statement) });
    const [forged] = (JSON.parse(serializeKeyEvidence([{ ...statement, document }])) as { links: object[] }).links;
    await setEvidence(table, JSON.stringify({ version: 1, links: [...genuine.links, forged] }));
    await expectRefusal(() => boot(table, second, { pcrs: UNSIGNED }), 'other_image');
  });

  it('of a plain service in between is none: an enclave refuses what it wrote', async () => {
    const [table, ceremony] = [await world.createTable(), world.createCeremony()];
    await boot(table, ceremony);
    const second = next(ceremony);
    await plant(table, second);
    await expectRefusal(() => boot(table, second), 'missing');
  });

  it('keeps its first link and its newest ones when it is full', async () => {
    const table = await world.createTable();
    let ceremony = world.createCeremony();
    const first = await boot(table, ceremony);
    let last = first;
    for (let generation = 2; generation <= 18; generation++) {
      ceremony = { ...next(ceremony), kms_keys: ceremony.kms_keys, retired_kms_keys: [] };
      last = await boot(table, ceremony);
    }
    expect(fingerprint(last)).toBe(fingerprint(first));
    expect(originOf(last)?.map(({ counter }) => counter)).toEqual([
      1,
      ...Array.from({ length: 15 }, (_, at) => at + 4),
    ]);
    expect(fingerprint(await boot(table, ceremony))).toBe(fingerprint(first));
    const { links } = JSON.parse(await evidenceIn(table)) as { links: object[] };
    await setEvidence(table, JSON.stringify({ version: 1, links: [links[0], ...links.slice(2)] }));
    await expectRefusal(() => boot(table, ceremony), 'broken_chain');
  });
});
