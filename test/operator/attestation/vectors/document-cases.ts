// Cases of documents by themselves, in the order of the steps: cose, payload, chain, signature, freshness, debug and
// policy. Importing this collects them.

import { BasicConstraintsExtension, Extension, KeyUsageFlags } from '@peculiar/x509';
import { type CborValue, encodeCbor } from '../../../../common/formats/cbor.ts';
import { testPcr } from '../../../../rehearsal/nsm/emulator.ts';
import { type CredentialOptions, createCredential } from '../../../../rehearsal/nsm/pki.ts';
import { add, again, EXPECTED, type Outcome, refused } from './cases.ts';
import {
  authorityUnder,
  document,
  field,
  hex,
  instance,
  leaf,
  leafUnder,
  leafValidity,
  NONCE,
  NOW,
  payloadOf,
  rawDocument,
  registers,
  root,
  validity,
  ZERO,
} from './evidence.ts';

const [BAD_TAG, BAD_HEAD] = [0xd1, 0x98];

const good = await document();

// 0: good ones, and other circumstances
await add('a good document', good, EXPECTED);
const goodOne = 'a good document';
await add('tag 18', Buffer.concat([Buffer.of(0xd2), good]), EXPECTED);
await add('a payload of indefinite length', { indefinite: true }, EXPECTED);
await add(
  'without the fields that nobody asked for',
  { fields: { public_key: undefined, user_data: undefined } },
  EXPECTED,
);
again('with the nonce that was asked for', goodOne, EXPECTED, { nonce: hex(NONCE) });
again('one of several accepted values; upper case', goodOne, EXPECTED, { reference_values: 'rollout' });
again('at the last moment of its leaf', goodOne, EXPECTED, { at: leafValidity.notAfter, max_age_seconds: 20_000 });
again('at the first moment of its leaf', goodOne, EXPECTED, { at: leafValidity.notBefore });

// 1: cose
const malformed = refused('cose', 'malformed_document');
await add('one byte more', Buffer.concat([good, Buffer.of(0)]), malformed);
await add('one byte less', good.subarray(0, -1), malformed);
await add('the tag twice', Buffer.concat([Buffer.of(0xd2, 0xd2), good]), malformed);
await add('another tag', Buffer.concat([Buffer.of(BAD_TAG), good]), malformed);
await add('the tag in two bytes', Buffer.concat([Buffer.of(0xd8, 18), good]), malformed);
await add('a longer head', Buffer.concat([Buffer.of(BAD_HEAD, 4), good.subarray(1)]), malformed);
await add(
  'an array of indefinite length',
  Buffer.concat([Buffer.of(0x9f), good.subarray(1), Buffer.of(0xff)]),
  malformed,
);
const emptyMap = good.indexOf(0xa0);
const withHeader = [good.subarray(0, emptyMap), Buffer.of(0xa1, 4, 0x41, 0), good.subarray(emptyMap + 1)];
await add('an unprotected header', Buffer.concat(withHeader), malformed);
await add('more than the security module answers', Buffer.alloc(0x3001), malformed);
const es256 = encodeCbor(new Map([[1, -7]]));
await add('ES256 in the protected header', { protectedHeader: es256 }, refused('cose', 'wrong_algorithm'));
const withKeyId = encodeCbor(new Map<number, CborValue>([...[[1, -35] as const], [4, Buffer.from('key')]]));
await add(
  'a second member in the protected header',
  { protectedHeader: withKeyId },
  refused('cose', 'wrong_algorithm'),
);

// 2: payload
for (const [name, made] of [
  ['module_id is missing', field('module_id', undefined)],
  ['digest is SHA256', field('digest', 'SHA256')],
  ['timestamp is 0', field('timestamp', 0)],
  ['timestamp is text', field('timestamp', '1')],
  ['no registers', field('pcrs', new Map())],
  ['register 32', field('pcrs', new Map([[32, ZERO]]))],
  ['a register of 32 bytes', field('pcrs', new Map([[0, Buffer.alloc(32)]]))],
  ['an empty certificate', field('certificate', Buffer.alloc(0))],
  ['an empty bundle', field('cabundle', [])],
  [
    'a bundle of nine',
    field(
      'cabundle',
      Array.from({ length: 9 }, () => Buffer.of(0)),
    ),
  ],
  ['an empty public key', field('public_key', Buffer.alloc(0))],
  ['user data of 1,025 bytes', field('user_data', Buffer.alloc(1025))],
  ['a nonce that is text', field('nonce', 'text')],
  ['a field that is not known', field('another_field', 1)],
] as const)
  await add(name, made, refused('payload', 'malformed_payload'));

const payload = encodeCbor(payloadOf({}));
const [MAP_HEAD, DIGEST] = [payload.subarray(0, 1), Buffer.concat([encodeCbor('digest'), encodeCbor('SHA384')])];
const twice = Buffer.concat([Buffer.of(MAP_HEAD.readUInt8() + 1), payload.subarray(1), DIGEST]);
await add('a field twice', await rawDocument(twice), refused('payload', 'malformed_payload'));
const trailing = Buffer.concat([payload, Buffer.of(0)]);
await add('a byte after the payload', await rawDocument(trailing), refused('payload', 'malformed_payload'));

// 3: chain
const chain = (code: string) => refused('chain', code);
const foreignRoot = await createCredential({ name: 'test.nitro-enclaves', pathLength: 'unbounded', ...validity });
const foreignInstance = await authorityUnder(foreignRoot, { pathLength: 0 });
const foreignLeaf = await leafUnder(foreignInstance, {});
await add('a foreign root', { chain: [foreignRoot, foreignInstance], leaf: foreignLeaf }, chain('untrusted_root'));
await add(
  'the true root over a foreign chain',
  { chain: [root, foreignInstance], leaf: foreignLeaf },
  chain('broken_chain'),
);
await add('the bundle turned round', { chain: [instance, root] }, chain('untrusted_root'));
await add('the instance is missing', { chain: [root] }, chain('broken_chain'));
again('a second after its leaf', goodOne, chain('expired'), {
  at: leafValidity.notAfter + 1000,
  max_age_seconds: 20_000,
});
again('a second before its leaf', goodOne, chain('not_yet_valid'), { at: leafValidity.notBefore - 1000 });

async function addAuthority(name: string, options: Partial<CredentialOptions>, outcome: Outcome): Promise<void> {
  const changed = await authorityUnder(root, { pathLength: 0, ...options });
  await add(name, { chain: [root, changed], leaf: await leafUnder(changed, {}) }, outcome);
}
async function addLeaf(name: string, options: Partial<CredentialOptions>, outcome: Outcome): Promise<void> {
  await add(name, { leaf: await leafUnder(instance, options) }, outcome);
}
const misuse = chain('certificate_misuse');
const unknownExtension = (critical: boolean) =>
  new Extension('1.3.6.1.4.1.99999.1', critical, Buffer.from('0500', 'hex'));
await addAuthority('the instance has ended', { notAfter: NOW - 1000 }, chain('expired'));
await addAuthority('the instance may not sign certificates', { keyUsages: KeyUsageFlags.digitalSignature }, misuse);
await addAuthority(
  'a critical extension of the instance',
  { extensions: [unknownExtension(true)] },
  chain('unknown_critical_extension'),
);
const noAuthority = await createCredential({
  ...{ name: 'no authority', ...validity, issuer: root },
  keyUsages: KeyUsageFlags.digitalSignature | KeyUsageFlags.keyCertSign,
});
await add(
  'an instance that is no authority',
  { chain: [root, noAuthority], leaf: await leafUnder(noAuthority, {}) },
  misuse,
);
const below = await authorityUnder(instance, { name: 'below', pathLength: 0 });
await add('one authority too many', { chain: [root, instance, below], leaf: await leafUnder(below, {}) }, misuse);
await addLeaf('a leaf that is an authority', { pathLength: 0 }, misuse);
await addLeaf('a leaf not for signatures', { keyUsages: KeyUsageFlags.keyAgreement }, misuse);
await addLeaf('a leaf signed with SHA-256', { hash: 'SHA-256' }, misuse);
await add('a leaf with a key of P-256', { leaf: await leafUnder(instance, { curve: 'P-256' }), signer: leaf }, misuse);
await addLeaf('an extension that is not critical', { extensions: [unknownExtension(false)] }, EXPECTED);
await addLeaf(
  'an extension twice',
  { extensions: [new BasicConstraintsExtension(false, undefined, true)] },
  chain('malformed_certificate'),
);
const longer = Buffer.concat([leaf.certificate, Buffer.of(0)]);
await add('a certificate with a byte after it', { ...field('certificate', longer) }, chain('malformed_certificate'));

// 4: signature
const badSignature = refused('signature', 'bad_signature');
await add('signed with another key', { signer: await leafUnder(instance, {}) }, badSignature);
const flipped = Buffer.from(good);
flipped[flipped.length - 1] = (flipped.at(-1) ?? 0) ^ 1;
await add('a bit of the signature turned', flipped, badSignature);
const payloadFlipped = Buffer.from(good);
const inPcr0 = good.indexOf(testPcr(0));
payloadFlipped[inPcr0] = (payloadFlipped[inPcr0] ?? 0) ^ 1;
await add('a bit of PCR0 turned', payloadFlipped, badSignature);

// 5: freshness
const fresh = (code: string) => refused('freshness', code);
again('as old as accepted', goodOne, EXPECTED, { max_age_seconds: 60 });
again('older than accepted', goodOne, fresh('stale'), { max_age_seconds: 59 });
await add('made 300 s later', field('timestamp', NOW + 300_000), EXPECTED);
await add('made 301 s later', field('timestamp', NOW + 301_000), fresh('from_the_future'));
again('another nonce', goodOne, fresh('nonce_mismatch'), { nonce: hex(NONCE.toReversed()) });
await add('no nonce where one was asked for', field('nonce', null), fresh('nonce_mismatch'), { nonce: hex(NONCE) });

// 7 and 8: authentic, and not expected
const debug = ['not_expected', 'debug', 'debug'] as const;
await add('debug mode', field('pcrs', registers({ 0: ZERO, 1: ZERO, 2: ZERO })), debug);
await add('only PCR1 is zero', field('pcrs', registers({ 1: ZERO })), debug);
await add('PCR2 is missing', field('pcrs', registers({ 2: undefined })), debug);
again('debug mode, without reference values', 'debug mode', debug, { reference_values: null });
again('no reference values', goodOne, ['no_reference_values', 'policy', 'no_reference_values'], {
  reference_values: null,
});
for (const [table, ...codes] of [
  ['another_image', 'wrong_pcr'],
  ['another_configuration_and_ceremony', 'wrong_pcr', 'wrong_pcr'],
  ['the_digest_in_place_of_the_register', 'wrong_pcr'],
  ['a_register_that_is_not_there', 'wrong_pcr'],
] as const)
  again(table.replaceAll('_', ' '), goodOne, ['not_expected', 'policy', ...codes], { reference_values: table });
