// Evidence in certificates that anybody can make: what is in the extension, whose key it is bound to, and that no bytes
// at all bring the verification to a fall.

import { X509Certificate } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CMW_EXTENSION_OID, DOCUMENT_MEDIA_TYPE } from '../../../common/attestation/contract.ts';
import { FAILURES } from '../../../common/attestation/failure.ts';
import { parseRegisters } from '../../../common/attestation/reference-file.ts';
import { encodeCbor } from '../../../common/formats/cbor.ts';
import { createAttestedCertificate, generateCertificateKey } from '../../../enclave/ratls/identity.ts';
import { verifyCertificate } from '../../../operator/attestation/certificate-evidence.ts';
import { testPcr } from '../../../rehearsal/nsm/emulator.ts';
import { createNsmPki } from '../../../rehearsal/nsm/pki.ts';
import { sized } from '../../support/scale.ts';
import { makeEnclave } from '../ratls-server.ts';

const NOW = Date.parse('2026-11-21T12:00:00Z');
const MUTATIONS = sized(500, 3_000);

const pki = await createNsmPki({ at: NOW });
const { identity } = await makeEnclave({ pki, clock: { now: () => NOW } });
const der = new X509Certificate(identity.cert).raw;

function judge(certificate: Uint8Array, at = NOW, live = false) {
  return verifyCertificate(certificate, {
    provider: { name: 'the test authority', rootSha256: pki.rootFingerprint },
    at,
    live,
    maxAgeSeconds: 10_800,
    referenceValues: parseRegisters([`0=${testPcr(0).toString('hex')}`]),
  });
}

function codeOf(certificate: Uint8Array, at?: number): string {
  const { verdict } = judge(certificate, at);
  return verdict.expected ? 'expected' : verdict.failures.map(({ code }) => code).join();
}

describe('an attested certificate', () => {
  it('is expected, and names its document, its end and its binding', () => {
    const { verdict, evidence } = judge(der);
    expect(verdict.expected).toBe(true);
    expect(evidence?.document).toEqual(identity.document);
    expect(evidence?.expiresAt).toBe(identity.expiresAt);
  });

  it('is refused outside of its own validity', () => {
    expect(codeOf(der, identity.expiresAt + 1000)).toBe('expired');
    expect(codeOf(der, NOW - 60_001)).toBe('not_yet_valid');
  });

  it('is good for a client whose clock is behind: it is backdated by what clocks may be apart, and takes as much again', async () => {
    expect(new X509Certificate(der).validFromDate.getTime()).toBe(NOW - 300_000);
    expect(judge(der, NOW - 299_000, true).verdict.expected).toBe(true);
    const lateDer = new X509Certificate(await certificateFrom(NOW + 300_000)).raw;
    const codes = (at: number, live: boolean) => judge(lateDer, at, live).verdict.failures.map(({ code }) => code);
    expect(codes(NOW, true)).toEqual(['wrong_key']); // a key of its own: only its validity is looked at here
    expect(codes(NOW - 1000, true)).toEqual(['not_yet_valid']);
    expect(codes(NOW, false)).toEqual(['not_yet_valid']);
  });

  it('is refused when somebody else has signed it, or its content was changed', () => {
    const changed = Buffer.from(der);
    const at = changed.indexOf(identity.document.subarray(0, 32)) + 200;
    changed[at] = (changed[at] ?? 0) ^ 1;
    expect(codeOf(changed)).toBe('broken_chain');
  });

  it('carries its document as the record of RFC 9999', () => {
    const record = encodeCbor([DOCUMENT_MEDIA_TYPE, identity.document, 4]);
    expect(der.includes(record)).toBe(true);
    expect(CMW_EXTENSION_OID).toBe('1.3.6.1.5.5.7.1.35');
  });

  it.each([
    ['nothing', Buffer.alloc(0)],
    ['text', Buffer.from('-----BEGIN CERTIFICATE-----')],
    ['PEM', Buffer.from(identity.cert)],
    ['two of them', Buffer.concat([der, der])],
    ['too much', Buffer.alloc(20_000)],
  ])('is one certificate in DER, not %s', (_, bytes) => {
    expect(codeOf(bytes)).toBe('malformed_certificate');
  });
});

async function certificateFrom(notBefore: number): Promise<string> {
  const key = await generateCertificateKey();
  const { document } = identity;
  return createAttestedCertificate({ key, document, notBefore, notAfter: identity.expiresAt });
}

it(`none of ${MUTATIONS} mutations of it verifies, and none is answered with anything but a verdict`, () => {
  const place = fc.noBias(fc.nat({ max: der.length - 1 }));
  const change = fc.record({ place, byte: fc.nat(255), removed: fc.nat(2), added: fc.uint8Array({ maxLength: 3 }) });
  fc.assert(
    fc.property(change, fc.boolean(), (mutation, sameLength) => {
      const [before, after] = [der.subarray(0, mutation.place), der.subarray(mutation.place)];
      const bytes = sameLength
        ? Buffer.concat([before, Buffer.of(mutation.byte), after.subarray(1)])
        : Buffer.concat([before, mutation.added, after.subarray(mutation.removed)]);
      fc.pre(!bytes.equals(der));
      const { verdict } = judge(bytes);
      expect(verdict.expected).toBe(false);
      for (const { code } of verdict.failures) expect(Object.keys(FAILURES)).toContain(code);
    }),
    { numRuns: MUTATIONS, seed: 20_261_121 },
  );
});
