// Where the master key comes from, in an enclave (specification/evidence.md#master-key): who can write the table and
// encrypt under the custody keys could put a master key there that it knows.

import { type Ceremony, ceremonyDigest } from '../../ceremony/definition.ts';
import { foreignRemoval, foreignRootToken, noProvenance } from '../../ceremony/refusals.ts';
import { type AcceptedImage, type DocumentProvider, SIGNATURE_PCR } from '../../common/attestation/contract.ts';
import {
  type KeyLink,
  type KeyStatement,
  keyStatementBinding,
  placeAfter,
  serializeKeyEvidence,
  sha384Hex,
  type VerifiedKeyLink,
  verifyKeyEvidence,
  withKeyLink,
} from '../../common/attestation/key-evidence.ts';
import { IMAGE_PCRS } from '../../common/attestation/policy.ts';
import {
  type RowPurpose,
  rowStatementBinding,
  serializeRowEvidence,
  type VerifiedRow,
  verifyRowEvidence,
} from '../../common/attestation/row-evidence.ts';
import type { AttestationFields, Measurements } from '../tee/nsm.ts';
import { CustodyFailure } from './startup-failures.ts';
import type { MasterKeyRow, RootTokenRow } from './state-rows.ts';

export interface KeyOrigin {
  readonly links: readonly VerifiedKeyLink[];
  /** The ciphertext of the root token; undefined when there is none. */
  readonly rootToken: VerifiedRow | undefined;
  readonly sealRemoval: (VerifiedRow & { readonly seal: string }) | undefined;
}

interface ProvenRows {
  readonly masterKey: MasterKeyRow;
  readonly rootToken: Pick<RootTokenRow, 'value' | 'evidence'> | undefined;
}

export type KeyProvenance = ReturnType<typeof keyProvenance>;

export interface KeyProvenanceParts {
  readonly nsm: { attest(fields: AttestationFields): Promise<Buffer> };
  readonly documents: DocumentProvider;
  readonly measurements: Measurements;
  readonly acceptedImages: readonly AcceptedImage[];
  readonly ceremony: Ceremony;
  readonly deployment: KeyStatement['deployment'];
}

export function keyProvenance(parts: KeyProvenanceParts) {
  const { nsm, documents: provider, deployment, ceremony } = parts;
  const digest = ceremonyDigest(ceremony).toString('hex');
  const ceremonies = [digest, ...(ceremony.previousCeremony === undefined ? [] : [ceremony.previousCeremony])];
  const accepts = imagePolicy(parts);

  function verifyKey({ generation, record, evidence }: MasterKeyRow): readonly VerifiedKeyLink[] {
    const terms = { provider, deployment, generation, record: sha384Hex(record), ceremonies, accepts };
    const judged = verifyKeyEvidence(evidence, terms);
    if (judged.ok) return judged.links;
    throw new CustodyFailure(noProvenance(`its evidence is refused (${judged.fault}): ${judged.detail}`));
  }

  function verifyRow(
    purpose: RowPurpose,
    row: { readonly content: string; readonly evidence: string | undefined },
    links: readonly KeyLink[],
  ): VerifiedRow {
    const terms = { provider, deployment, accepts, purpose, content: sha384Hex(row.content), origin: originOf(links) };
    const judged = verifyRowEvidence(row.evidence, terms);
    if (judged.ok) return judged.row;
    const problem = `its evidence is refused (${judged.fault}): ${judged.detail}`;
    throw new CustodyFailure(purpose === 'root_token' ? foreignRootToken(problem) : foreignRemoval(problem));
  }

  /** @throws CustodyFailure (startup failure 9) when the rows do not prove where key and root token come from */
  function verify({ masterKey, rootToken }: ProvenRows): KeyOrigin {
    const links = verifyKey(masterKey);
    const { removal } = masterKey;
    return {
      links,
      rootToken: rootToken && verifyRow('root_token', { ...rootToken, content: rootToken.value }, links),
      sealRemoval: removal && {
        ...verifyRow('seal_removed', { ...removal, content: removal.seal }, links),
        seal: removal.seal,
      },
    };
  }

  return {
    verify,
    /** Verified as a later start verifies it. @throws NsmError; CustodyFailure when it would not be believed */
    async attest({ generation, record }: Pick<MasterKeyRow, 'generation' | 'record'>, before: readonly KeyLink[]) {
      const place = placeAfter(before);
      const statement = { ...place, deployment, generation, ceremony: digest, record: sha384Hex(record) };
      const document = await nsm.attest({ userData: keyStatementBinding(statement) });
      const evidence = serializeKeyEvidence(withKeyLink(before, { ...statement, document }));
      verifyKey({ generation, record, evidence });
      return evidence;
    },
    /** @throws NsmError; CustodyFailure as `attest` */
    async attestRow(purpose: RowPurpose, content: string, { links }: Pick<KeyOrigin, 'links'>) {
      const { generation } = ceremony;
      const statement = { purpose, deployment, generation, ceremony: digest, origin: originOf(links) };
      const whole = { ...statement, content: sha384Hex(content) };
      const document = await nsm.attest({ userData: rowStatementBinding(whole) });
      const evidence = serializeRowEvidence({ ...whole, document });
      verifyRow(purpose, { content, evidence }, links);
      return evidence;
    },
  };
}

/** The document that made the key, which no chain ever drops. */
function originOf([first]: readonly KeyLink[]): string {
  return sha384Hex(first?.document ?? '');
}

/** This image, an image that the same certificate signed, or one that the measured configuration lists. */
export function imagePolicy({
  measurements,
  acceptedImages,
}: Pick<KeyProvenanceParts, 'measurements' | 'acceptedImages'>) {
  const registerOf = (pcrs: ReadonlyMap<number, Buffer>, index: number): string | undefined =>
    pcrs.get(index)?.toString('hex');
  const own: AcceptedImage = {
    PCR0: measurements['0'] ?? '',
    PCR1: measurements['1'] ?? '',
    PCR2: measurements['2'] ?? '',
  };
  const signature = measurements[SIGNATURE_PCR] ?? '';
  const isSigned = /^[0-9a-f]{96}$/.test(signature) && !/^0+$/.test(signature);
  return (pcrs: ReadonlyMap<number, Buffer>): boolean => {
    if (isSigned && registerOf(pcrs, SIGNATURE_PCR) === signature) return true;
    return [own, ...acceptedImages].some((image) =>
      IMAGE_PCRS.every((index) => registerOf(pcrs, index) === image[`PCR${index}` as keyof AcceptedImage]),
    );
  };
}
