// The chain of a document (specification/evidence.md#checks, step 3): whose it is, when it is valid, and what its
// certificates may be.

import 'reflect-metadata';
import { Extension, KeyUsageFlags } from '@peculiar/x509';
import { describe, expect, it } from 'vitest';
import { AWS_NITRO } from '../../../common/attestation/contract.ts';
import { describeChain } from '../../../operator/attestation/report.ts';
import { type CredentialOptions, createCredential, createNsmPki } from '../../../rehearsal/nsm/pki.ts';
import {
  documentOf,
  HOUR_MS,
  leafUnder,
  NOW,
  outcome,
  pki,
  refusal,
  verify,
  withField,
  withInstance,
  withLeaf,
} from './made-documents.ts';

describe('3: the chain', () => {
  it('ends in the root of the provider, whatever the bundle begins with', async () => {
    const foreign = await createNsmPki({ at: NOW });
    expect(await refusal({ pki: foreign })).toBe('chain untrusted_root');
    expect(await refusal({}, { provider: AWS_NITRO })).toBe('chain untrusted_root');
    // The true root put first over a chain that does not lead to it.
    const grafted = { ...foreign, chain: [pki.root, ...foreign.chain.slice(1)] };
    expect(await refusal({ pki: grafted })).toBe('chain broken_chain');
    const prefixed = { ...foreign, chain: [pki.root, ...foreign.chain] };
    expect(await refusal({ pki: prefixed })).toBe('chain broken_chain');
  });

  it('is valid at the chosen time, every certificate of it', async () => {
    const document = await documentOf();
    const at = (time: number) => outcome(verify(document, { at: time, maxAgeSeconds: 1e9 }));
    expect(at(NOW + 3 * HOUR_MS)).toBe('expected');
    expect(at(NOW + 3 * HOUR_MS + 1)).toBe('chain expired');
    expect(at(NOW - 3000)).toBe('expected');
    expect(at(NOW - 3001)).toBe('chain not_yet_valid');
    expect(await refusal(await withInstance({ notAfter: NOW - 1000 }))).toBe('chain expired');
  });

  it('judged now may begin as much later as clocks may be apart, and ends no later than it says', async () => {
    const leaf = async (options: Partial<CredentialOptions>) => documentOf(await withLeaf(options));
    const live = (document: Buffer, at = NOW) => outcome(verify(document, { at, live: true, maxAgeSeconds: 1e9 }));
    expect(live(await leaf({ notBefore: NOW + 300_000 }))).toBe('expected');
    expect(live(await leaf({ notBefore: NOW + 301_000 }))).toBe('chain not_yet_valid');
    expect(await refusal(await withLeaf({ notBefore: NOW + 1000 }))).toBe('chain not_yet_valid');
    const document = await documentOf();
    expect(live(document, NOW - 300_000)).toBe('expected');
    expect(live(document, NOW - 300_001)).toBe('freshness from_the_future');
    expect(live(document, NOW + 3 * HOUR_MS + 1)).toBe('chain expired');
  });

  it('is made of authorities, and ends in a certificate for signatures', async () => {
    const noAuthority = await withInstance({});
    expect(await refusal(noAuthority)).toBe('expected');
    const wrong = [
      await withInstance({ keyUsages: KeyUsageFlags.digitalSignature }),
      await withLeaf({ pathLength: 0 }),
      await withLeaf({ keyUsages: KeyUsageFlags.keyAgreement }),
      // One more authority than the instance's path length allows.
      { pki: { ...pki, ...(await belowInstance()) } },
    ];
    for (const options of wrong) expect(await refusal(options)).toBe('chain certificate_misuse');
  });

  it('has no authority that is none', async () => {
    const zone = pki.chain[2];
    const validity = { notBefore: NOW - HOUR_MS, notAfter: NOW + 24 * HOUR_MS };
    const usages = KeyUsageFlags.digitalSignature | KeyUsageFlags.keyCertSign;
    const plain = await createCredential({
      ...{ name: 'no authority', keyUsages: usages, ...validity },
      ...(zone === undefined ? {} : { issuer: zone }),
    });
    const chain = [...pki.chain.slice(0, 3), plain];
    const options = { pki: { ...pki, chain, issueLeaf: (_: string, at: number) => leafUnder(plain, at) } };
    expect(await refusal(options)).toBe('chain certificate_misuse');
  });

  it('may have a certificate without a name, which is judged like any other', async () => {
    expect(await refusal(await withLeaf({ name: '' }))).toBe('expected');
    const foreign = await createCredential({ name: '', notBefore: NOW - HOUR_MS, notAfter: NOW + HOUR_MS });
    const cabundle = [foreign.certificate, ...pki.chain.slice(1).map(({ certificate }) => certificate)];
    expect(await refusal(withField('cabundle', cabundle))).toBe('chain untrusted_root');
    const [root] = describeChain({ certificate: foreign.certificate, cabundle: [] } as never);
    expect(root?.name).toBe('a certificate without a name');
  });

  it('has no critical extension that nobody handles', async () => {
    const unknown = (critical: boolean) => new Extension('1.3.6.1.4.1.99999.1', critical, Buffer.from('0500', 'hex'));
    expect(await refusal(await withLeaf({ extensions: [unknown(false)] }))).toBe('expected');
    const critical = await withInstance({ extensions: [unknown(true)] });
    expect(await refusal(critical)).toBe('chain unknown_critical_extension');
  });

  it('is of certificates in DER, nothing else and nothing more', async () => {
    const [root] = pki.chain;
    const der = root?.certificate ?? Buffer.alloc(0);
    const pem = Buffer.from(`-----BEGIN CERTIFICATE-----\n${der.toString('base64')}\n-----END CERTIFICATE-----\n`);
    for (const bytes of [pem, Buffer.concat([der, Buffer.of(0)]), Buffer.from('x')]) {
      const cabundle = [bytes, ...pki.chain.slice(1).map(({ certificate }) => certificate)];
      expect(await refusal(withField('cabundle', cabundle))).toBe('chain malformed_certificate');
    }
  });

  it('is whole, and in order', async () => {
    const bundle = (...order: number[]) =>
      withField(
        'cabundle',
        order.map((at) => pki.chain[at]?.certificate ?? null),
      );
    expect(await refusal(bundle(0, 1, 2, 3))).toBe('expected');
    expect(await refusal(bundle(0, 2, 3))).toBe('chain broken_chain');
    expect(await refusal(bundle(0, 1, 2))).toBe('chain broken_chain');
    expect(await refusal(bundle(0, 2, 1, 3))).toBe('chain certificate_misuse'); // the path lengths are out of order too
    expect(await refusal(bundle(3, 2, 1, 0))).toBe('chain untrusted_root');
  });
});

/** A chain with an authority below the instance's, which has path length 0. */
async function belowInstance(): Promise<Pick<typeof pki, 'chain' | 'issueLeaf'>> {
  const instance = pki.chain.at(-1);
  const validity = { notBefore: NOW - HOUR_MS, notAfter: NOW + 24 * HOUR_MS };
  const below = await createCredential({
    ...{ name: 'below', pathLength: 0, ...validity },
    ...(instance === undefined ? {} : { issuer: instance }),
  });
  return { chain: [...pki.chain, below], issueLeaf: (_, at) => leafUnder(below, at) };
}
