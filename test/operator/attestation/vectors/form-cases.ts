// Cases of the one form of a certificate (docs/specification/evidence.md#certificates), in the leaf of a document and
// in TLS certificates. The instance signs each leaf, so nothing but its form is wrong. Importing this collects them.

import { generateKeyPairSync, KeyObject, sign } from 'node:crypto';
import { DOCUMENT_MEDIA_TYPE, keyBinding } from '../../../../common/attestation/contract.ts';
import { encodeCbor } from '../../../../common/formats/cbor.ts';
import { generateCertificateKey } from '../../../../enclave/ratls/identity.ts';
import { createDeviantCertificate } from '../deviant-certificate.ts';
import { add, again, certify, EXPECTED, type Outcome, refused } from './cases.ts';
import { document, HOUR_MS, instance, leaf, NOW } from './evidence.ts';
import {
  assemble,
  extension,
  hexBytes,
  membersOf,
  OID,
  type Parts,
  partsOf,
  sequence,
  signedPart,
  sized,
  tlv,
  withExtension,
} from './raw-certificate.ts';

const malformed = refused('chain', 'malformed_certificate');
const parts = partsOf(leaf.certificate);
const issuerKey = instance.keys.privateKey;

async function addLeaf(name: string, change: Partial<Parts>, outcome: Outcome = malformed): Promise<void> {
  await addBytes(name, assemble({ ...parts, ...change }, issuerKey), outcome);
}
async function addBytes(name: string, certificate: Buffer, outcome: Outcome = malformed): Promise<void> {
  await add(name, { leaf: { ...leaf, certificate } }, outcome);
}
await addLeaf('a leaf that was put together from its parts', {}, EXPECTED);

const version = (number: number) => tlv(0xa0, tlv(0x02, Buffer.of(number)));
await addLeaf('no version', { version: null });
await addLeaf('version 2', { version: version(1) });
await addLeaf('version 4', { version: version(3) });
await addLeaf('version 34', { version: version(33) });
await addLeaf('version 1, as a number', { version: version(0) });
await addLeaf('version 3 in two bytes', { version: tlv(0xa0, tlv(0x02, Buffer.of(0, 2))) });
await addLeaf('a serial number that is text', { serial: tlv(0x0c, Buffer.from('1')) });
await addLeaf('a serial number of 40 bytes', { serial: tlv(0x02, Buffer.alloc(40, 1)) }, EXPECTED);
await addLeaf('an issuer that is a SET', { issuer: tlv(0x31) });
await addLeaf('a unique identifier', { after: tlv(0x81, Buffer.of(0, 1)) });
await addLeaf('extensions twice', { after: tlv(0xa3, sequence()) });
await addLeaf('a member with another tag in place of extensions', { extensions: [], after: tlv(0xa4, sequence()) });
const withNull = hexBytes('300c06082a8648ce3d0403030500');
await addLeaf('NULL behind the algorithm inside', { algorithm: withNull });
await addLeaf('NULL behind the algorithm outside', { outer: withNull });
await addLeaf('another algorithm inside', { algorithm: hexBytes('300a06082a8648ce3d040302') });
await addLeaf('a signature with unused bits', { unusedBits: 1 });
const [signed = parts.serial, outer = parts.outer, bits = parts.serial] = membersOf(leaf.certificate);
await addBytes('a fourth member of the certificate', sequence(signed, outer, bits, tlv(0x05)));
await addBytes('no signature', sequence(signed, outer));
await addBytes('a signature that is an OCTET STRING', sequence(signed, outer, tlv(0x04, bits.subarray(2))));
await addBytes('a certificate that is a SET', Buffer.concat([Buffer.of(0x31), leaf.certificate.subarray(1)]));
await addBytes('a certificate that is cut off', leaf.certificate.subarray(0, -1));

const plain = signedPart(parts);
const contents = plain.subarray(4); // 30 82 xx xx
const digits = plain.subarray(2, 4);
const lengths: [string, Buffer][] = [
  ['a length in more digits than it needs', Buffer.concat([hexBytes('308300'), digits, contents])],
  ['an indefinite length', Buffer.concat([hexBytes('3080'), contents, hexBytes('0000')])],
];
const asSet = Buffer.concat([Buffer.of(0x31), plain.subarray(1)]);
lengths.push(['a signed part that is a SET', asSet]);
for (const [name, whole] of lengths) await addBytes(name, assemble(parts, issuerKey, 'sha384', whole));
const short = (digitsOf: string) => Buffer.concat([hexBytes(`02${digitsOf}`), Buffer.of(1)]);
await addLeaf('a length of 1 in the form of 128', { serial: short('8101') });
await addLeaf('a length of 1 in two digits', { serial: short('820001') });
await addLeaf('a length of 127 in the form of 128', {
  serial: Buffer.concat([hexBytes('02817f'), Buffer.alloc(127, 1)]),
});
await addLeaf('a length of 128', { serial: Buffer.concat([hexBytes('028180'), Buffer.alloc(128, 1)]) }, EXPECTED);
await addLeaf('a length of 128 in one byte', { serial: Buffer.concat([hexBytes('0280'), Buffer.alloc(128, 1)]) });
await addLeaf('a length of 127', { serial: Buffer.concat([hexBytes('027f'), Buffer.alloc(127, 1)]) }, EXPECTED);
await addLeaf('a length of 255 in two digits', { serial: Buffer.concat([hexBytes('028200ff'), Buffer.alloc(255, 1)]) });
await addLeaf('a length of 256', { serial: Buffer.concat([hexBytes('02820100'), Buffer.alloc(256, 1)]) }, EXPECTED);

const time = (text: string, tag = text.length > 13 ? 0x18 : 0x17) => tlv(tag, Buffer.from(text));
const [begin = parts.serial, end = parts.serial] = membersOf(parts.validity);
const from = (value: Buffer) => ({ validity: sequence(value, end) });
const until = (value: Buffer) => ({ validity: sequence(begin, value) });
await addLeaf('GeneralizedTime', from(time('20261122115900Z')), EXPECTED);
await addLeaf('GeneralizedTime that is over', until(time('20261122115959Z')), refused('chain', 'expired'));
await addLeaf('the year 50 is 1950', from(time('500101000000Z')), EXPECTED);
await addLeaf('the year 49 is 2049', from(time('491231235959Z')), refused('chain', 'not_yet_valid'));
await addLeaf('GeneralizedTime of 1950', from(time('19500101000000Z')), EXPECTED);
for (const [name, text] of [
  ['GeneralizedTime of 1949', '19491231235959Z'],
  ['GeneralizedTime with a fraction', '20261122115900.0Z'],
  ['a time without seconds', '2611221159Z'],
  ['a time of another zone', '261122115900+0000'],
  ['a time without a zone', '261122115900'],
  ['30 February', '260230000000Z'],
  ['a month 0', '260022000000Z'],
  ['an hour 24', '261121240000Z'],
  ['a second 60', '261121235960Z'],
  ['a time with a blank', '2611221159 0Z'],
  ['a time with a sign', '2611221159+0Z'],
  ['29 February of another year', '250229000000Z'],
  ['29 February 2100', '21000229000000Z'],
  ['31 April', '260431000000Z'],
  ['a month 13', '251301000000Z'],
  ['a day 0', '261100000000Z'],
  ['a day 32', '251232000000Z'],
  ['a minute 60', '261122116000Z'],
] as const)
  await addLeaf(name, from(time(text, /^(?:19|20|21)\d{6}/.test(text) && text.length > 13 ? 0x18 : 0x17)));
for (const [name, text] of [
  ['29 February', '240229000000Z'],
  ['29 February 2000', '20000229000000Z'],
  ['30 April', '260430000000Z'],
  ['the first second of a year', '260101000000Z'],
  ['the last second of a year', '251231235959Z'],
] as const)
  await addLeaf(name, from(time(text)), EXPECTED);
await addLeaf('UTCTime in the form of GeneralizedTime', from(time('20261122115900Z', 0x17)));
await addLeaf('GeneralizedTime in the form of UTCTime', from(time('261122115900Z', 0x18)));
await addLeaf('a time that is text', from(time('261122115900Z', 0x0c)));
await addLeaf('a time that is text, in the form of GeneralizedTime', from(time('20261122115900Z', 0x0c)));
await addLeaf('one time', { validity: sequence(begin) });
await addLeaf('three times', { validity: sequence(begin, end, end) });

const addExtension = (name: string, value: Buffer, outcome: Outcome = malformed) =>
  addLeaf(name, { extensions: [...parts.extensions, value] }, outcome);
const unknown = (flag: string) => extension(OID.unknown, hexBytes('0500'), flag);
await addExtension('a critical that is false', unknown('010100'));
await addExtension('a critical that is 1', unknown('010101'));
await addExtension('a critical that is an INTEGER', unknown('0201ff'));
await addExtension('an extension of four members', sequence(tlv(6, hexBytes(OID.unknown)), tlv(4), tlv(4), tlv(4)));
await addExtension('an extension without a value', sequence(tlv(6, hexBytes(OID.unknown))));
await addExtension('an extension that is a SET', tlv(0x31, tlv(6, hexBytes(OID.unknown)), tlv(4)));
await addExtension('an extension whose value is text', sequence(tlv(6, hexBytes(OID.unknown)), tlv(0x0c)));
await addExtension('an extension whose name is text', sequence(tlv(0x0c, hexBytes(OID.unknown)), tlv(4)));
await addExtension('an unknown extension twice', Buffer.concat([unknown(''), unknown('')]));
await addExtension('an extension that no parser can read', extension('2b06010505070101', hexBytes('ffff')), EXPECTED);
for (const [name, oid] of [
  ['subject alternative names', '551d11'],
  ['name constraints', '551d1e'],
  ['an extended key usage', '551d25'],
  ['certificate timestamps', '2b06010401d679020402'],
] as const)
  await addExtension(`${name} that no parser can read`, extension(oid, hexBytes('ffff')), EXPECTED);
await addLeaf('two lists of extensions', {
  extensions: [],
  after: tlv(0xa3, sequence(...parts.extensions), sequence()),
});
const instead = (oid: string, value: string) => withExtension(parts, oid, extension(oid, hexBytes(value)));
for (const [name, oid, value] of [
  ['basicConstraints that is a SET', OID.basicConstraints, '3100'],
  ['basicConstraints with a byte behind it', OID.basicConstraints, '300000'],
  ['basicConstraints with a FALSE', OID.basicConstraints, '3003010100'],
  ['basicConstraints with a TRUE that is no BOOLEAN', OID.basicConstraints, '30030401ff'],
  ['basicConstraints with a TRUE of 1', OID.basicConstraints, '3003010101'],
  ['basicConstraints with pathLenConstraint alone', OID.basicConstraints, '3003020100'],
  ['basicConstraints of three members', OID.basicConstraints, '30090101ff020100020100'],
  ['a pathLenConstraint of 128', OID.basicConstraints, '30070101ff02020080'],
  ['a pathLenConstraint below 0', OID.basicConstraints, '30060101ff0201ff'],
  ['a pathLenConstraint of -128', OID.basicConstraints, '30060101ff020180'],
  ['a pathLenConstraint without a byte', OID.basicConstraints, '30050101ff0200'],
  ['a pathLenConstraint that is text', OID.basicConstraints, '30060101ff0c0100'],
  ['keyUsage that is an OCTET STRING', OID.keyUsage, '04020780'],
  ['keyUsage without bits', OID.keyUsage, '030100'],
  ['keyUsage of nothing', OID.keyUsage, '0300'],
  ['keyUsage with a zero at its end', OID.keyUsage, '03020680'],
  ['keyUsage with a bit among the unused', OID.keyUsage, '03020781'],
  ['keyUsage with eight unused bits', OID.keyUsage, '03020880'],
  ['keyUsage with 32 unused bits', OID.keyUsage, '03022081'],
  ['keyUsage of three bytes of bits', OID.keyUsage, '030407808080'],
  ['keyUsage whose last byte is zero', OID.keyUsage, '0303008000'],
  ['a subject key identifier that is a BIT STRING', OID.subjectKeyIdentifier, '03020001'],
  ['a subject key identifier with a byte behind it', OID.subjectKeyIdentifier, '04010100'],
  ['an authority key identifier that is an OCTET STRING', OID.authorityKeyIdentifier, '040101'],
  ['an authority key identifier that is cut off', OID.authorityKeyIdentifier, '30038002ff'],
] as const)
  await addLeaf(name, instead(oid, value));
await addLeaf('an empty authority key identifier', instead(OID.authorityKeyIdentifier, '3000'), EXPECTED);

// TLS certificates: P-256 and SHA-256, self-signed.
const before = (code: string) => refused(null, code);
const tlsKey = await generateCertificateKey();
const bound = await document({ fields: { user_data: keyBinding(tlsKey.spki), nonce: null } });
const cmwRecord = encodeCbor([DOCUMENT_MEDIA_TYPE, bound, 4]);
const tlsValidity = { notBefore: NOW - 300_000, notAfter: NOW + HOUR_MS };
const tls = partsOf(
  await createDeviantCertificate({
    key: tlsKey,
    ...tlsValidity,
    extensions: [['1.3.6.1.5.5.7.1.35', tlv(4, cmwRecord)]],
  }),
);
const own = tlsKey.pair.privateKey;
async function addTls(name: string, change: Partial<Parts>, outcome: Outcome): Promise<void> {
  await certify(name, Promise.resolve(assemble({ ...tls, ...change }, own, 'sha256')), outcome);
}
const addCmw = (name: string, value: Buffer, outcome: Outcome, critical = '') =>
  addTls(name, { extensions: [extension(OID.cmw, value, critical)] }, outcome);
const assembled = 'a TLS certificate that was put together from its parts';
await addTls(assembled, {}, EXPECTED);
again('at the last moment of the TLS certificate', assembled, EXPECTED, { at: tlsValidity.notAfter });
again('at the first moment of the TLS certificate', assembled, before('not_yet_valid'), {
  at: tlsValidity.notBefore - 1,
});
again('one millisecond after the TLS certificate', assembled, before('expired'), { at: tlsValidity.notAfter + 1 });
again('a TLS certificate of a debugged enclave is judged before its image', assembled, before('expired'), {
  at: tlsValidity.notAfter + 1,
  reference_values: null,
});
await certify('a TLS certificate of 16,384 bytes', Promise.resolve(sized(tls, own, 16_384, 'sha256')), EXPECTED);
await certify(
  'a TLS certificate of 16,385 bytes',
  Promise.resolve(sized(tls, own, 16_385, 'sha256')),
  before('malformed_certificate'),
);
await addTls('a TLS certificate without extensions', { extensions: [] }, before('no_evidence'));
await addTls('a TLS certificate of version 1', { version: null, extensions: [] }, before('malformed_certificate'));
const behind = Buffer.concat([assemble(tls, own, 'sha256'), Buffer.of(0)]);
await certify('a TLS certificate with a byte behind it', Promise.resolve(behind), before('malformed_certificate'));
await addTls('a TLS certificate of another issuer', { issuer: sequence() }, EXPECTED);
await addTls(
  'a critical extension of a TLS certificate',
  { extensions: [...tls.extensions, extension(OID.unknown, hexBytes('0500'), '0101ff')] },
  EXPECTED,
);
await addTls('evidence that is critical', { extensions: [extension(OID.cmw, tlv(4, cmwRecord), '0101ff')] }, EXPECTED);
await addTls('a TLS certificate signed with SHA-384, as it says', sha384(), before('certificate_misuse'));
function sha384(): Partial<Parts> {
  return { algorithm: parts.algorithm, outer: parts.outer };
}
await certify(
  'a TLS certificate whose signature is of SHA-384, though it says SHA-256',
  Promise.resolve(assemble(tls, own, 'sha384')),
  before('broken_chain'),
);
for (const [name, made] of [
  ['RSA', generateKeyPairSync('rsa', { modulusLength: 2048 })],
  ['Ed25519', generateKeyPairSync('ed25519')],
  ['P-384', generateKeyPairSync('ec', { namedCurve: 'P-384' })],
] as const) {
  const spki = made.publicKey.export({ type: 'spki', format: 'der' });
  const body = signedPart({ ...tls, spki });
  const signature = sign(name === 'Ed25519' ? null : 'sha256', body, made.privateKey);
  const der = sequence(body, tls.outer, tlv(3, Buffer.of(0), signature));
  await certify(`a TLS certificate with a key of ${name}`, Promise.resolve(der), before('certificate_misuse'));
}
const noPoint = Buffer.concat([tlsKey.spki.subarray(0, 27), Buffer.alloc(64, 0x11)]);
await addTls('a TLS key that is no point of the curve', { spki: noPoint }, before('certificate_misuse'));
const flipped = KeyObject.from(own);
const wrong = sign('sha256', Buffer.concat([signedPart(tls), Buffer.of(0)]), flipped);
await certify(
  'a TLS certificate whose signature is of other bytes',
  Promise.resolve(sequence(signedPart(tls), tls.outer, tlv(3, Buffer.of(0), wrong))),
  before('broken_chain'),
);

// The record in the extension: an OCTET STRING in the OCTET STRING that every extension has.
const noRecord = before('malformed_evidence');
const long = tlv(4, cmwRecord);
await addCmw(
  'an OCTET STRING with a length in more digits than it needs',
  Buffer.concat([hexBytes('048300'), long.subarray(2)]),
  noRecord,
);
await addCmw(
  'an OCTET STRING of indefinite length',
  Buffer.concat([hexBytes('2480'), long, hexBytes('0000')]),
  noRecord,
);
await addCmw('an OCTET STRING in an OCTET STRING', tlv(4, long), noRecord);
await addCmw('a BIT STRING in place of the OCTET STRING', tlv(3, cmwRecord), noRecord);
await addCmw('two OCTET STRINGs', Buffer.concat([long, tlv(4)]), noRecord);
await addCmw('an OCTET STRING that is cut off', long.subarray(0, -1), noRecord);
await addCmw('an empty extension', Buffer.alloc(0), noRecord);
await addCmw('a byte after the record', tlv(4, cmwRecord, Buffer.of(0)), noRecord);
await addCmw('a record in a longer form', tlv(4, hexBytes('9803'), cmwRecord.subarray(1)), EXPECTED);
await addCmw('a record of indefinite length', tlv(4, hexBytes('9f'), cmwRecord.subarray(1), hexBytes('ff')), EXPECTED);
await addCmw('a media type in bytes', tlv(4, encodeCbor([Buffer.from(DOCUMENT_MEDIA_TYPE), bound, 4])), noRecord);
await addCmw(
  'a media type in another case',
  tlv(4, encodeCbor([DOCUMENT_MEDIA_TYPE.toUpperCase(), bound, 4])),
  noRecord,
);
await addCmw('a document in text', tlv(4, encodeCbor([DOCUMENT_MEDIA_TYPE, 'text', 4])), noRecord);
await addCmw('an indicator in text', tlv(4, encodeCbor([DOCUMENT_MEDIA_TYPE, bound, '4'])), noRecord);
await addCmw('an indicator that is 5', tlv(4, encodeCbor([DOCUMENT_MEDIA_TYPE, bound, 5])), noRecord);
await addCmw('a map in place of the record', tlv(4, encodeCbor(new Map([[1, bound]]))), noRecord);
await addCmw('a number in place of the record', tlv(4, encodeCbor(4)), noRecord);
await addCmw('a record that is tagged', tlv(4, hexBytes('d2'), cmwRecord), noRecord);
const misbound = async (userData: Buffer) =>
  encodeCbor([DOCUMENT_MEDIA_TYPE, await document({ fields: { user_data: userData, nonce: null } }), 4]);
const binding = keyBinding(tlsKey.spki);
const wrongKey = refused('binding', 'wrong_key');
await addCmw('user data with a byte more', tlv(4, await misbound(Buffer.concat([binding, Buffer.of(0)]))), wrongKey);
await addCmw('user data with a byte less', tlv(4, await misbound(binding.subarray(0, -1))), wrongKey);
await addCmw('user data that is empty', tlv(4, await misbound(Buffer.alloc(0))), wrongKey);
