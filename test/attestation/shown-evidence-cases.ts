// The evidence of a master key as a status shows it, good and bad, with what people outside have to conclude: which
// links and rows are proven, and what is refused (specification/evidence.md#shown). TEST authorities.

import { type Ceremony, ceremonyDigest, parseCeremony } from '../../ceremony/definition.ts';
import type { DocumentProvider } from '../../common/attestation/contract.ts';
import { type KeyEvidenceFault, sha384Hex } from '../../common/attestation/key-evidence.ts';
import type { ReferenceValues } from '../../common/attestation/policy.ts';
import type { imagesOf, judgeShownEvidence, readShownEvidence } from '../../common/attestation/shown-evidence.ts';
import { createNsmPki } from '../../rehearsal/nsm/pki.ts';
import { RECIPIENT } from '../ceremony/custody.ts';
import { keyArn } from '../config/loading.ts';
import { SHOWN_DEPLOYMENT, SHOWN_IMAGES, SHOWN_TOKEN, type ShownStatus, shownStatus } from './shown-status.ts';

export interface ShownPrograms {
  readonly imagesOf: typeof imagesOf;
  readonly judgeShownEvidence: typeof judgeShownEvidence;
  readonly readShownEvidence: typeof readShownEvidence;
}

interface Terms {
  readonly deployment: { readonly network: string; readonly id: string };
  readonly ceremonies: readonly string[];
  readonly images: ReferenceValues;
}

export interface ShownCase {
  readonly name: string;
  readonly status: unknown;
  /** null: nothing is compared. */
  readonly terms: Terms | null;
  readonly provider: DocumentProvider;
  /** null: it is no status of a signer with custody. */
  readonly judged: {
    readonly links: number;
    readonly rows: readonly string[];
    readonly fault: KeyEvidenceFault | null;
    /** Of the refusal: the row that it is about. */
    readonly row?: string;
  } | null;
}

const CEREMONY = ceremony(1, {});
const ROTATED = ceremony(2, {
  previous_ceremony: digestOf(CEREMONY),
  retired_kms_keys: [{ arns: [keyArn(1)] }],
  retired_kms_threshold: 1,
});
const BOTH = ['root_token', 'seal_removed'];

function ceremony(generation: number, more: object): Ceremony {
  const kms_keys = [{ arns: [keyArn(generation === 2 ? 4 : 1)] }, { arns: [keyArn(2)] }];
  return parseCeremony({ generation, kms_threshold: 2, kms_keys, root_token_recipients: [RECIPIENT], ...more });
}

function digestOf(of: Ceremony): string {
  return ceremonyDigest(of).toString('hex');
}

/** @param of indexes of the images that are accepted */
function referenceOf(...of: readonly number[]): ReferenceValues {
  const images = of.map((index) => SHOWN_IMAGES[index]);
  return new Map(([0, 1, 2] as const).map((pcr) => [pcr, images.map((image) => image?.[`PCR${pcr}`] ?? '')]));
}

function withRegister(pcr: number, values: readonly string[] | undefined): ReferenceValues {
  const others = [...referenceOf(0)].filter(([index]) => index !== pcr);
  return new Map(values === undefined ? others : [...others, [pcr, values]]);
}

function changed(status: ShownStatus, change: (copy: Custody) => unknown): unknown {
  const copy = structuredClone(status) as unknown as { custody: Custody };
  change(copy.custody);
  return copy;
}

interface Custody {
  master_key: { links: Record<string, unknown>[] } & Record<string, unknown>;
  root_token: Record<string, unknown> | null | undefined;
  seal_removal: Record<string, unknown> | null | undefined;
}

export async function makeShownCases(): Promise<readonly ShownCase[]> {
  const pki = await createNsmPki();
  const made = await shownStatus(pki, [CEREMONY]);
  const rotated = await shownStatus(pki, [CEREMONY, ROTATED]);
  const others = await shownStatus(pki, [CEREMONY]);
  const forged = await shownStatus(await createNsmPki(), [CEREMONY]);
  const provider = { name: 'the test authority', rootSha256: pki.rootFingerprint };
  const terms = { deployment: SHOWN_DEPLOYMENT, ceremonies: [digestOf(CEREMONY)], images: referenceOf(0) };
  const later = { ...terms, ceremonies: [digestOf(ROTATED)], images: referenceOf(0, 1) };
  const nothing = { links: 0, rows: [] };
  const proven = { links: 1, rows: BOTH };
  const shown = (
    name: string,
    status: unknown,
    judged: ShownCase['judged'],
    asked: Partial<Terms> | null = {},
  ): ShownCase => ({ name, status, provider, judged, terms: asked === null ? null : { ...terms, ...asked } });
  const custody = (name: string, change: (copy: Custody) => unknown, judged: ShownCase['judged']): ShownCase =>
    shown(name, changed(made, change), judged);

  return [
    shown('made by the image', made, { ...proven, fault: null }),
    shown('wrapped by the next image', rotated, { links: 2, rows: BOTH, fault: null }, later),
    shown('nothing is compared', made, { ...proven, fault: null }, null),
    ...[undefined, null, 1, 'custody', {}, { custody: null }, { custody: 'master_key' }].map((status) =>
      shown(`no status: ${JSON.stringify(status)}`, status, null),
    ),
    shown('a status whose custody is inherited', Object.create(made) as unknown, null),
    custody('links that are text', (copy) => Object.assign(copy.master_key, { links: '[]' }), null),
    custody('no links', (copy) => Reflect.deleteProperty(copy.master_key, 'links'), null),
    custody('a record that is a number', (copy) => Object.assign(copy.master_key, { record: 1 }), null),
    custody('no record', (copy) => Reflect.deleteProperty(copy.master_key, 'record'), null),
    shown('no evidence', { custody: { master_key: null } }, { ...nothing, fault: 'missing' }),
    custody('an empty chain', (copy) => Object.assign(copy.master_key, { links: [] }), {
      ...nothing,
      fault: 'malformed',
    }),
    custody('a link that is text', (copy) => Object.assign(copy.master_key, { links: ['made'] }), {
      ...nothing,
      fault: 'malformed',
    }),
    custody(
      'another generation than its document',
      ({ master_key: { links } }) => links.splice(0, 1, { ...links[0], generation: 2 }),
      {
        ...nothing,
        fault: 'other_statement',
      },
    ),
    shown('another authority', forged, { ...nothing, fault: 'not_authentic' }),
    shown('another authority, nothing is compared', forged, { ...nothing, fault: 'not_authentic' }, null),
    custody('another record than its link', (copy) => Object.assign(copy.master_key, { record: '00'.repeat(48) }), {
      ...nothing,
      fault: 'other_record',
    }),
    custody('members that no evidence has', (copy) => Object.assign(copy.master_key, { more: 1 }), {
      ...proven,
      fault: null,
    }),

    custody('no rows', (copy) => Object.assign(copy, { root_token: undefined, seal_removal: null }), {
      links: 1,
      rows: [],
      fault: null,
    }),
    custody(
      'a root token without its document',
      ({ root_token }) => Object.assign(root_token ?? {}, { document: '' }),
      {
        ...{ links: 1, rows: [], fault: 'not_authentic', row: 'root_token' },
      },
    ),
    custody('a root token that is text', (copy) => Object.assign(copy, { root_token: 'x' }), {
      ...{ links: 1, rows: [], fault: 'malformed', row: 'root_token' },
    }),
    custody(
      'a root token of another master key',
      (copy) => Object.assign(copy, { root_token: others.custody.root_token }),
      {
        ...{ links: 1, rows: [], fault: 'other_record', row: 'root_token' },
      },
    ),
    shown(
      'a root token of another master key, by an image that is not accepted',
      changed(made, (copy) => Object.assign(copy, { root_token: others.custody.root_token })),
      { links: 1, rows: [], fault: 'other_record', row: 'root_token' },
      { images: referenceOf(1) },
    ),
    custody('a root token in the place of a seal', (copy) => Object.assign(copy, { seal_removal: copy.root_token }), {
      ...{ links: 1, rows: ['root_token'], fault: 'other_record', row: 'seal_removed' },
    }),
    custody(
      'another seal than the removed one',
      ({ seal_removal }) => Object.assign(seal_removal ?? {}, { seal: 'other' }),
      {
        ...{ links: 1, rows: ['root_token'], fault: 'other_record', row: 'seal_removed' },
      },
    ),
    custody(
      'a removed seal that is not shown',
      ({ seal_removal }) => Reflect.deleteProperty(seal_removal ?? {}, 'seal'),
      {
        ...proven,
        fault: null,
      },
    ),
    custody('a seal that is no text', ({ seal_removal }) => Object.assign(seal_removal ?? {}, { seal: 1 }), {
      ...proven,
      fault: null,
    }),

    shown('an image that is not accepted', made, { ...proven, fault: 'other_image' }, { images: referenceOf(1) }),
    shown(
      'wrapped by an image that is not accepted',
      rotated,
      { links: 2, rows: BOTH, fault: 'other_image' },
      {
        ...later,
        images: referenceOf(0),
      },
    ),
    shown('wrapped by the second of two images', made, { ...proven, fault: null }, { images: referenceOf(1, 0) }),
    ...[0, 1, 2].map((pcr) =>
      shown(
        `another PCR${pcr}`,
        made,
        { ...proven, fault: 'other_image' },
        { images: withRegister(pcr, ['00'.repeat(48)]) },
      ),
    ),
    ...[1, 2].map((pcr) =>
      shown(
        `no reference value of PCR${pcr}`,
        made,
        { ...proven, fault: null },
        { images: withRegister(pcr, undefined) },
      ),
    ),
    shown(
      'no reference value of PCR0',
      made,
      { ...proven, fault: 'other_image' },
      { images: withRegister(0, undefined) },
    ),
    shown('another ceremony', made, { ...proven, fault: 'other_ceremony' }, { ceremonies: [digestOf(ROTATED)] }),
    shown(
      'the ceremony before',
      made,
      { ...proven, fault: null },
      { ceremonies: [digestOf(ROTATED), digestOf(CEREMONY)] },
    ),
    shown(
      'another deployment',
      made,
      { ...proven, fault: 'other_record' },
      {
        deployment: { ...SHOWN_DEPLOYMENT, id: 'other' },
      },
    ),
    shown(
      'another network',
      made,
      { ...proven, fault: 'other_record' },
      {
        deployment: { ...SHOWN_DEPLOYMENT, network: `0x${'00'.repeat(32)}` },
      },
    ),
  ];
}

/** As the case states it; undefined: it is. Otherwise what was concluded. */
export function judgedOtherwise(one: ShownCase, programs: ShownPrograms): unknown {
  const { status, provider, terms, judged } = one;
  const shown = programs.readShownEvidence(status);
  if (shown === undefined) return judged === null ? undefined : 'no status';
  if (judged === null) return shown;
  const asked = terms === null ? undefined : { ...terms, accepts: programs.imagesOf(terms.images) };
  const { links, rows, refusal } = programs.judgeShownEvidence(shown, provider, asked);
  const row = refusal === undefined ? undefined : /^(\w+): /.exec(refusal.detail)?.[1];
  const found = {
    links: links.length,
    rows: rows.map(({ purpose }) => purpose),
    fault: refusal?.fault ?? null,
    ...(judged.row === undefined ? {} : { row }),
  };
  const isTokenShown = rows.every(
    ({ purpose, content }) => purpose !== 'root_token' || content === sha384Hex(SHOWN_TOKEN),
  );
  return isTokenShown && JSON.stringify(found) === JSON.stringify(judged) ? undefined : found;
}
