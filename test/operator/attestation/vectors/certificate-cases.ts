// Cases of attested TLS certificates: what is refused before there is a document, and the binding. Importing this
// collects them.

import { X509Certificate } from 'node:crypto';
import { CMW_EXTENSION_OID, DOCUMENT_MEDIA_TYPE, keyBinding } from '../../../../common/attestation/contract.ts';
import { type CborValue, encodeCbor } from '../../../../common/formats/cbor.ts';
import { createAttestedCertificate, generateCertificateKey } from '../../../../enclave/ratls/identity.ts';
import { createDeviantCertificate } from '../deviant-certificate.ts';
import { again, certify, EXPECTED, refused } from './cases.ts';
import { document, field, HOUR_MS, NOW } from './evidence.ts';

// 6: binding, in a TLS certificate
const tlsKey = await generateCertificateKey();
const binding = keyBinding(tlsKey.spki);
const bound = await document({ fields: { user_data: binding, nonce: null } });
const tlsValidity = { notBefore: NOW - 300_000, notAfter: NOW + HOUR_MS };

async function attested(inside: Buffer, options: Partial<typeof tlsValidity> = {}): Promise<Buffer> {
  const pem = await createAttestedCertificate({ key: tlsKey, document: inside, ...tlsValidity, ...options });
  return new X509Certificate(pem).raw;
}
function deviant(options: Partial<Parameters<typeof createDeviantCertificate>[0]>): Promise<Buffer> {
  return createDeviantCertificate({
    key: tlsKey,
    ...tlsValidity,
    extensions: [[CMW_EXTENSION_OID, record(bound)]],
    ...options,
  });
}
function record(
  inside: Buffer,
  { type = DOCUMENT_MEDIA_TYPE, rest = [4] }: { type?: string; rest?: CborValue[] } = {},
): Buffer {
  const content = encodeCbor([type, inside, ...rest]);
  const length = Buffer.alloc(2);
  length.writeUInt16BE(content.length);
  return Buffer.concat([Buffer.of(0x04, 0x82), length, content]);
}

const goodCertificate = 'a good certificate';
await certify(goodCertificate, attested(bound), EXPECTED);
const before = (code: string) => refused(null, code);
again('after the end of the TLS certificate', goodCertificate, before('expired'), { at: tlsValidity.notAfter + 1000 });
again('before the begin of the TLS certificate', goodCertificate, before('not_yet_valid'), {
  at: tlsValidity.notBefore - 1000,
});
again('no reference value of the ceremony', goodCertificate, EXPECTED, { reference_values: 'rollout' });
again('no reference value of the configuration', goodCertificate, EXPECTED, {
  ...{ reference_values: 'without_configuration', any_configuration: true },
});
again('a certificate of another image', goodCertificate, ['not_expected', 'policy', 'wrong_pcr'], {
  reference_values: 'another_image',
});
const wrongKey = refused('binding', 'wrong_key');
const stranger = await generateCertificateKey();
const strangerBinding = keyBinding(stranger.spki);
await certify(
  'the document of another TLS key',
  attested(await document(field('user_data', strangerBinding))),
  wrongKey,
);
await certify('a document without user data', attested(await document()), wrongKey);
const hashAlone = binding.subarray(-48);
await certify('user data without its tag', attested(await document(field('user_data', hashAlone))), wrongKey);
await certify('a certificate without evidence', deviant({ extensions: [] }), before('no_evidence'));
const twice: [string, Buffer] = [CMW_EXTENSION_OID, record(bound)];
await certify('evidence twice', deviant({ extensions: [twice, twice] }), before('malformed_certificate'));
await certify('signed by another key', deviant({ signingKey: stranger }), before('broken_chain'));
const noRecord = before('malformed_evidence');
const cmw = (value: Buffer) => deviant({ extensions: [[CMW_EXTENSION_OID, value]] });
await certify('another media type', cmw(record(bound, { type: 'application/eat+cwt' })), noRecord);
await certify('another indicator', cmw(record(bound, { rest: [2] })), noRecord);
await certify('no indicator', cmw(record(bound, { rest: [] })), noRecord);
await certify('a fourth member of the record', cmw(record(bound, { rest: [4, 0] })), noRecord);
await certify('the record without its OCTET STRING', cmw(record(bound).subarray(4)), noRecord);
await certify('a byte after the OCTET STRING', cmw(Buffer.concat([record(bound), Buffer.of(0)])), noRecord);
await certify('no certificate', Promise.resolve(Buffer.from('nothing of the kind')), before('malformed_certificate'));
