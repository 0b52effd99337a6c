// Evidence of master keys, good and bad: what both verifiers judge (common/attestation/key-evidence.ts,
// docs/examples/verify_key.py), with the fault that each case has. It is made under a test authority whose keys end
// with the process. `node test/attestation/key-evidence-cases.ts FILE` writes the vectors.

import { writeFileSync } from 'node:fs';
import {
  type KeyEvidenceFault,
  type KeyLink,
  type KeyStatement,
  keyStatementBinding,
  MAX_KEY_LINKS,
  placeAfter,
  serializeKeyEvidence,
  sha384Hex,
  withKeyLink,
} from '../../common/attestation/key-evidence.ts';
import {
  type RowEvidence,
  type RowPurpose,
  type RowStatement,
  rowStatementBinding,
  serializeRowEvidence,
} from '../../common/attestation/row-evidence.ts';
import { extendedOnce } from '../../common/formats/register.ts';
import { createNsm } from '../../enclave/nsm/client.ts';
import { createNsmEmulator, type NsmEmulatorOptions, testPcr } from '../../rehearsal/nsm/emulator.ts';
import { createNsmPki } from '../../rehearsal/nsm/pki.ts';

interface Terms {
  /** Of the evidence of a row; without it a master key is judged. */
  readonly purpose?: RowPurpose;
  /** Hex: SHA-384 of the content of a row, and of the document that made the master key. */
  readonly content?: string;
  readonly origin?: string;
  readonly deployment: KeyStatement['deployment'];
  readonly generation: number;
  readonly record: string;
  readonly ceremonies: readonly string[];
  /** Registers by name, hex. */
  readonly images: readonly Readonly<Record<'PCR0' | 'PCR1' | 'PCR2', string>>[];
  /** PCR8 of the verifier's own image, hex; null: none. */
  readonly signature: string | null;
}

export interface KeyEvidenceCase {
  readonly name: string;
  readonly evidence: string | null;
  readonly terms?: Partial<Terms>;
  readonly fault: KeyEvidenceFault | null;
}

export interface KeyEvidenceVectors {
  readonly root_sha256: string;
  readonly terms: Terms;
  readonly cases: readonly KeyEvidenceCase[];
}

const hex = (index: number): string => testPcr(index).toString('hex');
const IMAGE = { PCR0: hex(0), PCR1: hex(1), PCR2: hex(2) };
const DEPLOYMENT = { network: `0x${'4b'.repeat(32)}`, id: 'strongroom-state' };
const CEREMONY = sha384Hex('the first ceremony');
const LATER = sha384Hex('the next ceremony');
const RECORD = sha384Hex('the first record');
const LATER_RECORD = sha384Hex('the next record');
const FIRST = { deployment: DEPLOYMENT, generation: 1, ceremony: CEREMONY, record: RECORD };
const SECOND = { deployment: DEPLOYMENT, generation: 2, ceremony: LATER, record: LATER_RECORD };
const SECOND_TERMS = { generation: 2, record: LATER_RECORD, ceremonies: [LATER] };

export async function makeKeyEvidenceVectors(): Promise<KeyEvidenceVectors> {
  const [pki, stranger] = [await createNsmPki(), await createNsmPki()];

  async function documentOf(userData: Buffer, ceremony: string, options: NsmEmulatorOptions = {}): Promise<Buffer> {
    const register = extendedOnce(Buffer.from(ceremony, 'hex'));
    const emulator = await createNsmEmulator({ pki, ...options, pcrs: { 17: register, ...options.pcrs } });
    const nsm = createNsm(emulator.exchange);
    await nsm.lockPcr(17);
    return nsm.attest({ userData });
  }
  async function attest(statement: KeyStatement, options: NsmEmulatorOptions = {}): Promise<KeyLink> {
    const document = await documentOf(keyStatementBinding(statement), statement.ceremony, options);
    return { ...statement, document };
  }
  async function attestRow(statement: RowStatement, options: NsmEmulatorOptions = {}): Promise<RowEvidence> {
    const document = await documentOf(rowStatementBinding(statement), statement.ceremony, options);
    return { ...statement, document };
  }
  const made = await attest({ ...FIRST, ...placeAfter([]) });
  const wrapped = await attest({ ...SECOND, ...placeAfter([made]) });
  const another = await attest({ ...FIRST, ...placeAfter([]) });
  const full = await fullChain(attest);
  const one = serializeKeyEvidence([made]);
  const two = serializeKeyEvidence([made, wrapped]);
  const only = async (statement: Partial<KeyStatement>, options?: NsmEmulatorOptions): Promise<string> =>
    serializeKeyEvidence([await attest({ ...FIRST, ...placeAfter([]), ...statement }, options)]);
  const behind = async (statement: Partial<KeyStatement>, options?: NsmEmulatorOptions): Promise<string> =>
    serializeKeyEvidence([made, await attest({ ...SECOND, ...placeAfter([made]), ...statement }, options)]);
  const altered = (change: Partial<KeyLink>): string => serializeKeyEvidence([{ ...made, ...change }]);
  const flipped = Buffer.from(made.document);
  flipped.writeUInt8(flipped.readUInt8(flipped.length - 1) ^ 1, flipped.length - 1);
  const zero = Buffer.alloc(48);
  const unsigned = { signature: '00'.repeat(48) };

  const cases: KeyEvidenceCase[] = [
    { name: 'made by this image', evidence: one, fault: null },
    { name: 'wrapped for the next ceremony', evidence: two, terms: SECOND_TERMS, fault: null },
    { name: 'of the ceremony before', evidence: one, terms: { ceremonies: [LATER, CEREMONY] }, fault: null },
    { name: 'a full chain', evidence: full.text, terms: full.terms, fault: null },
    { name: 'none', evidence: null, fault: 'missing' },
    { name: 'empty', evidence: '', fault: 'malformed' },
    { name: 'no link', evidence: '{"version":1,"links":[]}', fault: 'malformed' },
    { name: 'a blank', evidence: one.replace(',', ', '), fault: 'malformed' },
    { name: 'another version', evidence: one.replace('"version":1', '"version":2'), fault: 'malformed' },
    { name: 'a version in quotes', evidence: one.replace('"version":1', '"version":"1"'), fault: 'malformed' },
    { name: 'an unknown member', evidence: one.replace('"counter"', '"more":1,"counter"'), fault: 'malformed' },
    {
      name: 'another order',
      evidence: one.replace('"purpose":"made","counter":1', '"counter":1,"purpose":"made"'),
      fault: 'malformed',
    },
    ...[
      ['a list', '[]'],
      ['a number', '1'],
      ['a version that is true', one.replace('"version":1', '"version":true')],
      ['a version that is 1.0', one.replace('"version":1', '"version":1.0')],
      ['no version', one.replace('"version":1,', '')],
      ['a member more', one.replace('"version":1', '"version":1,"more":1')],
      ['links in front', `{"links":[],"version":1}`],
      ['links that are null', '{"version":1,"links":null}'],
      ['links that are an object', '{"version":1,"links":{"0":1}}'],
      ['a link that is a number', '{"version":1,"links":[1]}'],
      ['a link that is text', '{"version":1,"links":["made"]}'],
      ['no JSON', one.slice(1)],
      ['a member twice', one.replace('"counter":1', '"counter":1,"counter":1')],
      ['a counter of text', one.replace('"counter":1', '"counter":"1"')],
      ['a counter that is true', one.replace('"counter":1', '"counter":true')],
      ['a counter of 2^53', one.replace('"counter":1', '"counter":9007199254740992')],
      ['a generation of zero', altered({ generation: 0 })],
      ['a generation of 1.5', altered({ generation: 1.5 })],
      ['a deployment that is null', one.replace(/"deployment":\{[^}]*\}/, '"deployment":null')],
      ['a deployment that is a list', one.replace(/"deployment":\{[^}]*\}/, '"deployment":["a","b"]')],
      ['a deployment without its network', one.replace(/"network":"[^"]*",/, '')],
      ['a deployment with a number', one.replace(/"id":"[^"]*"/, '"id":1')],
      ['a deployment in another order', one.replace(/("network":"[^"]*"),("id":"[^"]*")/, '$2,$1')],
      ['a ceremony of text', altered({ ceremony: 'x' })],
      ['a ceremony that is a number', one.replace(/"ceremony":"[^"]*"/, '"ceremony":1')],
      ['a digest with a line after it', altered({ record: `${RECORD}\n` })],
      ['an origin of text', altered({ origin: 'x' })],
      ['an origin that is a number', one.replace('"origin":null', '"origin":1')],
      ['a previous of text', altered({ previous: 'x' })],
      ['a document that is a number', one.replace(/"document":"[^"]*"/, '"document":1')],
      ['a document that is no base64', one.replace(/"document":"/, '"document":"*')],
      ['a document with other bits behind its end', `${two.slice(0, two.indexOf('"document":"'))}"document":"AB=="}]}`],
      ['a document of 12,289 bytes', altered({ document: Buffer.alloc(12_289) })],
    ].map(([name = '', evidence = '']): KeyEvidenceCase => ({ name, evidence, fault: 'malformed' })),
    {
      name: 'a document of 12,288 bytes',
      evidence: altered({ document: Buffer.alloc(12_288) }),
      fault: 'not_authentic',
    },
    {
      name: 'a counter of 2^53 - 1',
      evidence: altered({ counter: Number.MAX_SAFE_INTEGER }),
      fault: 'other_statement',
    },
    { name: 'a counter of zero', evidence: altered({ counter: 0 }), fault: 'malformed' },
    { name: 'an unknown purpose', evidence: one.replace('"made"', '"found"'), fault: 'malformed' },
    { name: 'a digest in upper case', evidence: altered({ record: RECORD.toUpperCase() }), fault: 'malformed' },
    { name: 'a digest of 95 characters', evidence: altered({ record: RECORD.slice(1) }), fault: 'malformed' },
    { name: 'one link too many', evidence: full.tooLong, terms: full.terms, fault: 'malformed' },
    { name: 'no document', evidence: altered({ document: Buffer.alloc(0) }), fault: 'not_authentic' },
    {
      name: 'a document that is cut off',
      evidence: altered({ document: made.document.subarray(1) }),
      fault: 'not_authentic',
    },
    { name: 'another signature', evidence: altered({ document: flipped }), fault: 'not_authentic' },
    { name: 'another root', evidence: await only({}, { pki: stranger }), fault: 'not_authentic' },
    {
      name: 'a second link under another root',
      evidence: await behind({}, { pki: stranger }),
      terms: SECOND_TERMS,
      fault: 'not_authentic',
    },
    { name: 'debug mode', evidence: await only({}, { debugMode: true }), fault: 'debug' },
    {
      name: 'debug mode in the second link',
      evidence: await behind({}, { debugMode: true }),
      terms: SECOND_TERMS,
      fault: 'debug',
    },
    ...(
      [
        ['another counter', { counter: 2 }],
        ['another purpose', { purpose: 'wrapped' }],
        ['another deployment', { deployment: { ...DEPLOYMENT, id: 'other' } }],
        ['another network', { deployment: { ...DEPLOYMENT, network: `0x${'00'.repeat(32)}` } }],
        ['another generation', { generation: 2 }],
        ['another ceremony', { ceremony: LATER }],
        ['another record', { record: LATER_RECORD }],
        ['an origin', { origin: RECORD }],
        ['a previous document', { previous: RECORD }],
        ['the document of another statement', { document: wrapped.document }],
      ] satisfies [string, Partial<KeyLink>][]
    ).map(([what, change]) => ({
      name: `stated: ${what}`,
      evidence: altered(change),
      fault: 'other_statement' as const,
    })),
    {
      name: 'PCR17 of another ceremony',
      evidence: await only({}, { pcrs: { 17: extendedOnce(Buffer.from(LATER, 'hex')) } }),
      fault: 'other_statement',
    },
    {
      name: 'attested: a first link that is wrapped',
      evidence: await only({ purpose: 'wrapped' }),
      fault: 'broken_chain',
    },
    { name: 'attested: a first link with the counter 2', evidence: await only({ counter: 2 }), fault: 'broken_chain' },
    { name: 'attested: a first link with an origin', evidence: await only({ origin: RECORD }), fault: 'broken_chain' },
    {
      name: 'attested: a first link with one before it',
      evidence: await only({ previous: RECORD }),
      fault: 'broken_chain',
    },
    {
      name: 'the second link alone',
      evidence: serializeKeyEvidence([wrapped]),
      terms: SECOND_TERMS,
      fault: 'broken_chain',
    },
    {
      name: 'another first link',
      evidence: serializeKeyEvidence([another, wrapped]),
      terms: SECOND_TERMS,
      fault: 'broken_chain',
    },
    { name: 'the first link twice', evidence: serializeKeyEvidence([made, made]), fault: 'broken_chain' },
    { name: 'links in another order', evidence: serializeKeyEvidence([wrapped, made]), fault: 'broken_chain' },
    {
      name: 'attested: a second link that is made',
      evidence: await behind({ purpose: 'made' }),
      terms: SECOND_TERMS,
      fault: 'broken_chain',
    },
    {
      name: 'attested: a gap in a chain that is not full',
      evidence: await behind({ counter: 3 }),
      terms: SECOND_TERMS,
      fault: 'broken_chain',
    },
    {
      name: 'attested: another origin',
      evidence: await behind({ origin: RECORD }),
      terms: SECOND_TERMS,
      fault: 'broken_chain',
    },
    {
      name: 'attested: another previous',
      evidence: await behind({ previous: RECORD }),
      terms: SECOND_TERMS,
      fault: 'broken_chain',
    },
    {
      name: 'attested: the same generation',
      evidence: await behind({ generation: 1 }),
      terms: { ...SECOND_TERMS, generation: 1 },
      fault: 'broken_chain',
    },
    {
      name: 'attested: the same record',
      evidence: await behind({ record: RECORD }),
      terms: { ...SECOND_TERMS, record: RECORD },
      fault: 'broken_chain',
    },
    {
      name: 'a full chain whose second link names another one before it, without a gap',
      evidence: full.noGap,
      terms: full.noGapTerms,
      fault: 'broken_chain',
    },
    { name: 'a full chain without its third link', evidence: full.gap, terms: full.terms, fault: 'broken_chain' },
    {
      name: 'a full chain with another first link',
      evidence: full.forged(another),
      terms: full.terms,
      fault: 'broken_chain',
    },
    {
      name: 'of another deployment',
      evidence: one,
      terms: { deployment: { ...DEPLOYMENT, id: 'other' } },
      fault: 'other_record',
    },
    {
      name: 'of another network',
      evidence: one,
      terms: { deployment: { ...DEPLOYMENT, network: `0x${'00'.repeat(32)}` } },
      fault: 'other_record',
    },
    {
      name: 'attested: a second link of another deployment',
      evidence: await behind({ deployment: { ...DEPLOYMENT, id: 'other' } }),
      terms: SECOND_TERMS,
      fault: 'other_record',
    },
    { name: 'of another record', evidence: one, terms: { record: LATER_RECORD }, fault: 'other_record' },
    { name: 'of another generation', evidence: one, terms: { generation: 2 }, fault: 'other_record' },
    { name: 'of the record before', evidence: two, terms: { ...SECOND_TERMS, record: RECORD }, fault: 'other_record' },
    { name: 'of another ceremony', evidence: one, terms: { ceremonies: [LATER] }, fault: 'other_ceremony' },
    {
      name: 'of the ceremony before the one before',
      evidence: two,
      terms: { ...SECOND_TERMS, ceremonies: [CEREMONY] },
      fault: 'other_ceremony',
    },
    ...[0, 1, 2].map((index): KeyEvidenceCase => {
      const images = [{ ...IMAGE, [`PCR${index}`]: hex(20) }];
      return {
        name: `by an image with another PCR${index}`,
        evidence: one,
        terms: { images, ...unsigned },
        fault: 'other_image',
      };
    }),
    {
      name: 'by the second of two accepted images',
      evidence: one,
      terms: { images: [{ ...IMAGE, PCR0: hex(20) }, IMAGE], ...unsigned },
      fault: null,
    },
    {
      name: 'by another image with the same certificate',
      evidence: one,
      terms: { images: [], signature: hex(8) },
      fault: null,
    },
    {
      name: 'by another image with another certificate',
      evidence: one,
      terms: { images: [], signature: hex(9) },
      fault: 'other_image',
    },
    {
      name: 'by an unsigned image, judged by an unsigned image',
      evidence: await only({}, { pcrs: { 8: zero } }),
      terms: { images: [], ...unsigned },
      fault: 'other_image',
    },
    {
      name: 'a second link by another image',
      evidence: await behind({}, { pcrs: { 0: testPcr(20) } }),
      terms: SECOND_TERMS,
      fault: 'other_image',
    },
  ];
  cases.push(...(await rowCases(made, attestRow, stranger)));
  const terms = {
    deployment: DEPLOYMENT,
    generation: 1,
    record: RECORD,
    ceremonies: [CEREMONY],
    images: [IMAGE],
    signature: null,
  };
  return { root_sha256: pki.rootFingerprint, terms, cases };
}

/** What an enclave writes beside the key: the root token's ciphertext, and that a seal was removed. */
async function rowCases(
  made: KeyLink,
  attestRow: (statement: RowStatement, options?: NsmEmulatorOptions) => Promise<RowEvidence>,
  stranger: NsmEmulatorOptions['pki'],
): Promise<readonly KeyEvidenceCase[]> {
  const [content, origin] = [sha384Hex('the ciphertext of a root token'), sha384Hex(made.document)];
  const statement = { deployment: DEPLOYMENT, generation: 1, ceremony: CEREMONY, origin, content } as const;
  const token = await attestRow({ purpose: 'root_token', ...statement });
  const removal = await attestRow({ purpose: 'seal_removed', ...statement });
  const terms = { purpose: 'root_token', content, origin } as const;
  const one = serializeRowEvidence(token);
  const unsigned = { images: [{ ...IMAGE, PCR0: hex(20) }], signature: '00'.repeat(48) };
  const altered = (change: Partial<RowEvidence>): string => serializeRowEvidence({ ...token, ...change });
  const row = (
    name: string,
    evidence: string | null,
    fault: KeyEvidenceFault | null,
    others: Partial<Terms> = {},
  ): KeyEvidenceCase => ({ name: `row: ${name}`, evidence, terms: { ...terms, ...others }, fault });
  const attested = async (change: Partial<RowStatement>, options?: NsmEmulatorOptions): Promise<string> =>
    serializeRowEvidence(await attestRow({ purpose: 'root_token', ...statement, ...change }, options));
  return [
    row('a root token', one, null),
    row('a removed seal', serializeRowEvidence(removal), null, { purpose: 'seal_removed' }),
    row('a root token of a later ceremony', await attested({ generation: 2, ceremony: LATER }), null),
    row('none', null, 'missing'),
    row('empty', '', 'malformed'),
    row('a list', '[]', 'malformed'),
    row('a blank', one.replace(',', ', '), 'malformed'),
    row('another version', one.replace('"version":1', '"version":2'), 'malformed'),
    row('no version', one.replace('"version":1,', ''), 'malformed'),
    row('a member more', one.replace('"origin"', '"more":1,"origin"'), 'malformed'),
    row('the purpose of a master key', one.replace('"root_token"', '"made"'), 'malformed'),
    row('an origin of text', altered({ origin: 'x' }), 'malformed'),
    row('an origin that is null', one.replace(/"origin":"[^"]*"/, '"origin":null'), 'malformed'),
    row('a content of text', altered({ content: 'x' }), 'malformed'),
    row('a generation of zero', altered({ generation: 0 }), 'malformed'),
    row('evidence of a master key', serializeKeyEvidence([made]), 'malformed'),
    row('32,768 characters', padded(one, 32_768), 'other_statement'),
    row('32,769 characters', padded(one, 32_769), 'malformed'),
    row('no document', altered({ document: Buffer.alloc(0) }), 'not_authentic'),
    row('another root', await attested({}, stranger === undefined ? {} : { pki: stranger }), 'not_authentic'),
    row('debug mode', await attested({}, { debugMode: true }), 'debug'),
    row('the document of another statement', altered({ document: removal.document }), 'other_statement'),
    row('the document of a master key', altered({ document: made.document }), 'other_statement'),
    row('stated: another content', altered({ content: RECORD }), 'other_statement', { content: RECORD }),
    row('stated: another purpose', altered({ purpose: 'seal_removed' }), 'other_statement', {
      purpose: 'seal_removed',
    }),
    row(
      'PCR17 of another ceremony',
      await attested({}, { pcrs: { 17: extendedOnce(Buffer.from(LATER, 'hex')) } }),
      'other_statement',
    ),
    row('of another content', one, 'other_record', { content: RECORD }),
    row('of another purpose', serializeRowEvidence(removal), 'other_record'),
    row('of another deployment', one, 'other_record', { deployment: { ...DEPLOYMENT, id: 'other' } }),
    row('of another network', one, 'other_record', { deployment: { ...DEPLOYMENT, network: '0x00' } }),
    row('of another master key', one, 'other_record', { origin: RECORD }),
    row('by another image', one, 'other_image', unsigned),
    row('by another image with the same certificate', one, null, { images: [], signature: hex(8) }),
  ];
}

function padded(evidence: string, characters: number): string {
  return evidence.replace('"id":"', `"id":"${'x'.repeat(characters - evidence.length)}`);
}

async function fullChain(attest: (statement: KeyStatement) => Promise<KeyLink>) {
  let links: readonly KeyLink[] = [];
  let dropped: KeyLink | undefined;
  for (let generation = 1; generation <= MAX_KEY_LINKS + 2; generation++) {
    const record = sha384Hex(`record ${generation}`);
    const statement = { deployment: DEPLOYMENT, generation, ceremony: CEREMONY, record };
    const link = await attest({ ...statement, ...placeAfter(links) });
    dropped = links[1];
    links = withKeyLink(links, link);
  }
  const [first, ...others] = links;
  // Sixteen links, none of them dropped; only `previous` of the second is of another document.
  let straight: readonly KeyLink[] = first === undefined ? [] : [first];
  for (let generation = 2; generation <= MAX_KEY_LINKS; generation++) {
    const statement = {
      deployment: DEPLOYMENT,
      generation,
      ceremony: CEREMONY,
      record: sha384Hex(`record ${generation}`),
    };
    const wrong = generation === 2 ? { previous: RECORD } : {};
    straight = [...straight, await attest({ ...statement, ...placeAfter(straight), ...wrong })];
  }
  if (first === undefined || dropped === undefined) throw new Error('the chain is not full');
  return {
    text: serializeKeyEvidence(links),
    tooLong: serializeKeyEvidence([first, dropped, ...others]),
    gap: serializeKeyEvidence([first, dropped, ...others.slice(1)]),
    forged: (link: KeyLink): string => serializeKeyEvidence([link, ...others]),
    noGap: serializeKeyEvidence(straight),
    noGapTerms: { generation: MAX_KEY_LINKS, record: straight.at(-1)?.record ?? '' },
    terms: { generation: MAX_KEY_LINKS + 2, record: others.at(-1)?.record ?? '' },
  };
}

if (import.meta.main) {
  const [, , file = ''] = process.argv;
  writeFileSync(file, `${JSON.stringify(await makeKeyEvidenceVectors(), null, 1)}\n`);
}
