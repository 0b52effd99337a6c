// Cases of the rules of a chain, each broken by itself: who issued, when, and what for. Importing this collects them.

import { createHash, randomBytes } from 'node:crypto';
import type { Certified, CredentialOptions } from '../../../../rehearsal/nsm/pki.ts';
import { createCredential } from '../../../../rehearsal/nsm/pki.ts';
import { add, again, EXPECTED, type Outcome, refused } from './cases.ts';
import { authorityUnder, field, instance, leaf, leafUnder, leafValidity, NOW, root, validity } from './evidence.ts';
import {
  assemble,
  CRITICAL,
  extension,
  hexBytes,
  OID,
  type Parts,
  partsOf,
  sequence,
  sized,
  tlv,
  withExtension,
} from './raw-certificate.ts';

const chain = (code: string) => refused('chain', code);
const broken = chain('broken_chain');
const misuse = chain('certificate_misuse');

/** The good leaf, with other parts; the instance signs it. */
function altered(change: (parts: Parts) => Partial<Parts>, signer: Certified = instance): Certified {
  const parts = partsOf(leaf.certificate);
  return { ...leaf, certificate: assemble({ ...parts, ...change(parts) }, signer.keys.privateKey) };
}
async function addAltered(
  name: string,
  change: (parts: Parts) => Partial<Parts>,
  outcome: Outcome,
  signer: Certified = instance,
): Promise<void> {
  await add(name, { leaf: altered(change, signer) }, outcome);
}

// Signatures of the chain: everything else is as it should be.
const stranger = await authorityUnder(root, { pathLength: 0 });
await addAltered('a leaf that another key signed', () => ({}), broken, stranger);
const forgedInstance = {
  ...stranger,
  certificate: assemble(partsOf(stranger.certificate), stranger.keys.privateKey),
};
await add(
  'an instance that signed itself, in the name of the root',
  { chain: [root, forgedInstance], leaf: await leafUnder(forgedInstance, {}) },
  broken,
);
const unsignedRoot = { ...root, certificate: assemble(partsOf(root.certificate), stranger.keys.privateKey) };
await add('a root that did not sign itself', { chain: [unsignedRoot, instance] }, broken, {
  root_sha256: createHash('sha256').update(unsignedRoot.certificate).digest('hex'),
});

// Names and key identifiers.
const name = (text: string, tag = 0x0c) =>
  sequence(tlv(0x31, sequence(hexBytes('0603550403'), tlv(tag, Buffer.from(text)))));
const noKeyIds = (parts: Parts): Parts => withExtension(parts, OID.authorityKeyIdentifier, null);
await addAltered('a leaf of another issuer', () => ({ issuer: name('another') }), broken);
await addAltered(
  'a leaf of another issuer, without key identifiers',
  (parts) => ({ ...noKeyIds(parts), issuer: name('another') }),
  broken,
);
const INSTANCE_NAME = 'instance.test.nitro-enclaves';
const plainInstance = {
  ...stranger,
  certificate: assemble({ ...partsOf(stranger.certificate), subject: name(INSTANCE_NAME) }, root.keys.privateKey),
};
async function addNamed(what: string, issuer: Buffer, outcome: Outcome): Promise<void> {
  await add(
    what,
    { chain: [root, plainInstance], leaf: ofPlainInstance((parts) => ({ ...noKeyIds(parts), issuer })) },
    outcome,
  );
}
function ofPlainInstance(change: (parts: Parts) => Partial<Parts>): Certified {
  return altered(change, plainInstance);
}
await addNamed('an issuer with the same bytes', name(INSTANCE_NAME), EXPECTED);
await addNamed('an issuer in another case', name(INSTANCE_NAME.toUpperCase()), broken);
await addNamed('an issuer with a blank more', name(`${INSTANCE_NAME} `), broken);
await addNamed('an issuer in another type of string', name(INSTANCE_NAME, 0x13), broken);
await addNamed('an issuer with a name that is no name', sequence(hexBytes('0101ff')), broken);
await add('a leaf without a name', { leaf: altered(() => ({ subject: sequence() })) }, EXPECTED);
await add('a leaf whose name is no name', { leaf: altered(() => ({ subject: sequence(hexBytes('0500')) })) }, EXPECTED);

const keyId = (bytes: Buffer, ...more: readonly Buffer[]) =>
  extension(OID.authorityKeyIdentifier, sequence(tlv(0x80, bytes), ...more));
const OTHER_ID = randomBytes(20);
const otherIssuer = [tlv(0xa1, tlv(0xa4, name('another'))), tlv(0x82, Buffer.of(9))] as const;
const ids = (value: Buffer | null) => (parts: Parts) => withExtension(parts, OID.authorityKeyIdentifier, value);
await addAltered('another key identifier of the issuer', ids(keyId(OTHER_ID)), broken);
await addAltered('no key identifier of the issuer', ids(null), EXPECTED);
const onlyIssuer = extension(OID.authorityKeyIdentifier, sequence(...otherIssuer));
await addAltered('an issuer and serial number of another one, without a key identifier', ids(onlyIssuer), EXPECTED);
const ownId = (
  partsOf(leaf.certificate)
    .extensions.map((one) => one.toString('hex'))
    .find((one) => one.includes(OID.authorityKeyIdentifier)) ?? ''
).slice(-40);
await addAltered(
  'an issuer and serial number of another one, behind the right key identifier',
  ids(keyId(hexBytes(ownId), ...otherIssuer)),
  EXPECTED,
);
const anonymous = {
  ...stranger,
  certificate: assemble(
    withExtension(partsOf(stranger.certificate), OID.subjectKeyIdentifier, null),
    root.keys.privateKey,
  ),
};
await add(
  'a key identifier of an issuer that has none',
  { chain: [root, anonymous], leaf: altered(ids(keyId(OTHER_ID)), anonymous) },
  EXPECTED,
);
const renamed = {
  ...stranger,
  certificate: assemble(
    withExtension(
      partsOf(stranger.certificate),
      OID.subjectKeyIdentifier,
      extension(OID.subjectKeyIdentifier, tlv(0x04, OTHER_ID)),
    ),
    root.keys.privateKey,
  ),
};
await add(
  'an issuer with another key identifier of its own',
  { chain: [root, renamed], leaf: await leafUnder(renamed, {}) },
  broken,
);

// Time, at its edges: both ends belong to it.
const good = 'a good document';
again('one millisecond after its leaf', good, chain('expired'), {
  at: leafValidity.notAfter + 1,
  max_age_seconds: 20_000,
});
again('one millisecond before its leaf', good, chain('not_yet_valid'), { at: leafValidity.notBefore - 1 });
async function addInstance(what: string, options: Partial<CredentialOptions>, outcome: Outcome): Promise<void> {
  const changed = await authorityUnder(root, { pathLength: 0, ...options });
  await add(what, { chain: [root, changed], leaf: await leafUnder(changed, {}) }, outcome);
}
await addInstance('an instance that ends now', { notAfter: NOW }, EXPECTED);
await addInstance('an instance that begins now', { notBefore: NOW }, EXPECTED);
await addInstance('an instance that begins in a second', { notBefore: NOW + 1000 }, chain('not_yet_valid'));
const lateLeaf = await leafUnder(stranger, { notAfter: NOW - 1000 });
await add(
  'a foreign root over a leaf that has ended',
  { chain: [await foreignRoot(), stranger], leaf: lateLeaf },
  chain('untrusted_root'),
);
const ended = await leafUnder(instance, { notAfter: NOW - 1000, pathLength: 0 });
await add('a leaf that has ended and is an authority', { leaf: ended }, chain('expired'));
function foreignRoot(): Promise<Certified> {
  return createCredential({ name: 'test.nitro-enclaves', pathLength: 'unbounded', ...validity });
}

// Use.
const without = (oid: string) => (parts: Parts) => withExtension(parts, oid, null);
const instead =
  (oid: string, value: Buffer, critical = CRITICAL) =>
  (parts: Parts) =>
    withExtension(parts, oid, extension(oid, value, critical));
function authority(change: (parts: Parts) => Partial<Parts>): Certified {
  const parts = partsOf(stranger.certificate);
  return { ...stranger, certificate: assemble({ ...parts, ...change(parts) }, root.keys.privateKey) };
}
async function addAuthority(what: string, change: (parts: Parts) => Partial<Parts>, outcome: Outcome): Promise<void> {
  const changed = authority(change);
  await add(what, { chain: [root, changed], leaf: altered(ids(null), changed) }, outcome);
}
await addAltered('a leaf without basicConstraints', without(OID.basicConstraints), EXPECTED);
await addAltered('a leaf without keyUsage', without(OID.keyUsage), misuse);
await addAuthority('an instance without basicConstraints', without(OID.basicConstraints), misuse);
await addAuthority('an instance without keyUsage', without(OID.keyUsage), misuse);
await addAuthority(
  'an instance without pathLenConstraint',
  instead(OID.basicConstraints, hexBytes('30030101ff')),
  EXPECTED,
);
await addAuthority('a pathLenConstraint of 127', instead(OID.basicConstraints, hexBytes('30060101ff02017f')), EXPECTED);
await addAltered(
  'a critical extension of the leaf',
  instead(OID.unknown, hexBytes('0500')),
  chain('unknown_critical_extension'),
);
await addAltered(
  'a key identifier that is critical',
  instead(OID.subjectKeyIdentifier, tlv(0x04, OTHER_ID)),
  chain('unknown_critical_extension'),
);
await addAltered(
  'basicConstraints and keyUsage that are not critical',
  (parts) => {
    const usage = withExtension(parts, OID.keyUsage, extension(OID.keyUsage, hexBytes('03020780')));
    return withExtension(usage, OID.basicConstraints, extension(OID.basicConstraints, sequence()));
  },
  EXPECTED,
);
await addAltered('a leaf that may also decipher only', instead(OID.keyUsage, hexBytes('0303078080')), EXPECTED);
await addAltered('a leaf that may only sign certificates', instead(OID.keyUsage, hexBytes('03020204')), misuse);

// The longest chain, and one certificate more. Each authority allows just as many below it as there are.
async function lineOf(count: number): Promise<Certified[]> {
  const line = [root];
  for (let below = count - 2; below >= 0; below--) {
    const above = line.at(-1) ?? root;
    line.push(await authorityUnder(above, { name: `authority ${below}`, pathLength: below }));
  }
  return line;
}
const eight = await lineOf(8);
await add('a bundle of eight', { chain: eight, leaf: await leafUnder(eight.at(-1) ?? root, {}) }, EXPECTED);
const nine = await lineOf(9);
await add(
  'a bundle of nine that is a chain',
  { chain: nine, leaf: await leafUnder(nine.at(-1) ?? root, {}) },
  refused('payload', 'malformed_payload'),
);

// Keys and algorithms.
const P384_HEAD = '3076301006072a8648ce3d020106052b81040022036200';
await addAltered(
  'a key that is no point of the curve',
  () => ({ spki: hexBytes(`${P384_HEAD}04${'11'.repeat(96)}`) }),
  misuse,
);
const point = partsOf(leaf.certificate).spki.subarray(-96);
const compressed = Buffer.concat([
  hexBytes('3046301006072a8648ce3d020106052b81040022033200'),
  Buffer.of(2 + ((point.at(-1) ?? 0) & 1)),
  point.subarray(0, 48),
]);
await addAltered('a key in the compressed form', () => ({ spki: compressed }), misuse);
const hybrid = Buffer.concat([hexBytes(P384_HEAD), Buffer.of(6 + ((point.at(-1) ?? 0) & 1)), point]);
await addAltered('a key in the hybrid form', () => ({ spki: hybrid }), misuse);
const forAgreement = Buffer.from(partsOf(leaf.certificate).spki);
forAgreement[12] = 0x02; // 1.2.840.10045.2.2 in place of id-ecPublicKey
await addAltered('a key of another kind on the same curve', () => ({ spki: forAgreement }), misuse);
const withNull = hexBytes('300c06082a8648ce3d0403030500');
await addAltered('NULL behind both names of the algorithm', () => ({ algorithm: withNull, outer: withNull }), misuse);
const leafOf = (bytes: number): Certified => ({
  ...leaf,
  certificate: sized(partsOf(leaf.certificate), instance.keys.privateKey, bytes),
});
const authorityOf = (bytes: number): Certified => ({
  ...stranger,
  certificate: sized(partsOf(stranger.certificate), root.keys.privateKey, bytes),
});
await add('a certificate of 1,024 bytes', { leaf: leafOf(1024) }, EXPECTED);
await add('a certificate of 1,025 bytes', { leaf: leafOf(1025) }, refused('payload', 'malformed_payload'));
const [thousand, more] = [authorityOf(1024), authorityOf(1025)];
await add('an authority of 1,024 bytes', { chain: [root, thousand], leaf: altered(ids(null), thousand) }, EXPECTED);
await add(
  'an authority of 1,025 bytes',
  { chain: [root, more], leaf: altered(ids(null), more) },
  refused('payload', 'malformed_payload'),
);
await add(
  'a bundle with an empty certificate',
  field('cabundle', [root.certificate, Buffer.alloc(0)]),
  refused('payload', 'malformed_payload'),
);
await add(
  'one byte in place of the certificate',
  field('certificate', Buffer.of(0x30)),
  chain('malformed_certificate'),
);
