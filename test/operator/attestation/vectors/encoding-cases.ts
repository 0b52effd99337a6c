// Cases of the encoding of a document and of the limits of its members, at each edge and one past it. Importing this
// collects them.

import { type CborValue, encodeCbor } from '../../../../common/formats/cbor.ts';
import { testPcr } from '../../../../rehearsal/nsm/emulator.ts';
import { add, again, EXPECTED, type Outcome, refused } from './cases.ts';
import { document, field, hex, leaf, NONCE, NOW, payloadOf, rawDocument, registers, ZERO } from './evidence.ts';

const malformed = refused('cose', 'malformed_document');
const badPayload = refused('payload', 'malformed_payload');
const hexBytes = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex');
const ES384 = hexBytes('a1013822');

// The structure around the payload.
const good = await document();
const payload = encodeCbor(payloadOf({}));
const signature = good.subarray(-96);
const cose = (...parts: readonly CborValue[]) => encodeCbor(parts);
const empty = new Map<string, CborValue>();
await add('a document put together from its parts', cose(ES384, empty, payload, signature), EXPECTED);
await add('an empty document', Buffer.alloc(0), malformed);
await add('a number', encodeCbor(0), malformed);
await add('three parts', cose(ES384, empty, payload), malformed);
await add('five parts', cose(ES384, empty, payload, signature, signature), malformed);
await add('a map of parts', encodeCbor(new Map([[1, payload]])), malformed);
await add('a protected header that is text', cose(ES384.toString('latin1'), empty, payload, signature), malformed);
await add('an unprotected header that is a list', cose(ES384, [], payload, signature), malformed);
await add('an unprotected header that is null', cose(ES384, null, payload, signature), malformed);
await add('no payload', cose(ES384, empty, null, signature), malformed);
await add('a payload that is text', cose(ES384, empty, 'text', signature), malformed);
await add('a signature that is null', cose(ES384, empty, payload, null), malformed);
await add('a signature of 95 bytes', cose(ES384, empty, payload, signature.subarray(1)), malformed);
await add('a signature of 97 bytes', cose(ES384, empty, payload, Buffer.concat([Buffer.of(0), signature])), malformed);
await add('a signature of zeros', cose(ES384, empty, payload, Buffer.alloc(96)), refused('signature', 'bad_signature'));
await add(
  'a signature of ones',
  cose(ES384, empty, payload, Buffer.alloc(96, 0xff)),
  refused('signature', 'bad_signature'),
);
await add(
  'an empty protected header',
  cose(Buffer.alloc(0), empty, payload, signature),
  refused('cose', 'wrong_algorithm'),
);
await add(
  'a protected header in a longer form',
  cose(hexBytes('b801013822'), empty, payload, signature),
  refused('cose', 'wrong_algorithm'),
);
await add(
  'another header and a short signature',
  cose(hexBytes('a10126'), empty, payload, Buffer.alloc(1)),
  refused('cose', 'wrong_algorithm'),
);
const [array, rest] = [good.subarray(0, 1), good.subarray(1)];
const replace = (from: Buffer, to: Buffer): Buffer => {
  const at = good.indexOf(from);
  return Buffer.concat([good.subarray(0, at), to, good.subarray(at + from.length)]);
};
await add(
  'a protected header behind a longer head',
  replace(hexBytes('44a1013822'), hexBytes('5804a1013822')),
  malformed,
);
await add(
  'an unprotected header of indefinite length',
  replace(hexBytes('a1013822a0'), hexBytes('a1013822bfff')),
  malformed,
);
await add('a signature behind a longer head', replace(hexBytes('5860'), hexBytes('590060')), malformed);
await add(
  'a tag of COSE_Sign1 in eight bytes',
  Buffer.concat([hexBytes('db0000000000000012'), array, rest]),
  malformed,
);
const ofSize = async (bytes: number): Promise<Buffer> => {
  const filled = (filling: number) => rawDocument(encodeCbor(new Map([['filling', Buffer.alloc(filling)]])));
  return filled(bytes - (await filled(12_000)).length + 12_000);
};
// The payload's own head in its shortest form, at the edges of it.
for (const bytes of [0, 23, 24, 255, 256]) {
  await add(`a payload of ${bytes} bytes`, await rawDocument(Buffer.alloc(bytes)), badPayload);
}
await add('a document of 12,288 bytes', await ofSize(12_288), badPayload);
await add('a document of 12,289 bytes', await ofSize(12_289), malformed);
const tagged = Buffer.concat([Buffer.of(0xd2), await ofSize(12_288)]);
await add('a document of 12,288 bytes behind a tag', tagged, malformed);

// Members, at the edges of their limits.
const wrongPcr = ['not_expected', 'policy', 'wrong_pcr'] as const;
const edges: readonly (readonly [string, string, CborValue | undefined, Outcome])[] = [
  ['module_id is empty', 'module_id', '', badPayload],
  ['module_id of one character', 'module_id', 'i', EXPECTED],
  ['module_id of 23 characters', 'module_id', 'i'.repeat(23), EXPECTED],
  ['module_id of 24 characters', 'module_id', 'i'.repeat(24), EXPECTED],
  ['module_id of 256 characters', 'module_id', 'i'.repeat(256), EXPECTED],
  ['module_id of 257 characters', 'module_id', 'i'.repeat(257), badPayload],
  ['module_id of 256 characters beyond 16 bits', 'module_id', '\u{1f511}'.repeat(256), EXPECTED],
  ['module_id of 257 characters beyond 16 bits', 'module_id', '\u{1f511}'.repeat(257), badPayload],
  ['module_id in bytes', 'module_id', Buffer.from('i'), badPayload],
  ['module_id is null', 'module_id', null, badPayload],
  ['digest is missing', 'digest', undefined, badPayload],
  ['digest in bytes', 'digest', Buffer.from('SHA384'), badPayload],
  ['digest in lower case', 'digest', 'sha384', badPayload],
  ['timestamp is missing', 'timestamp', undefined, badPayload],
  ['timestamp is 1', 'timestamp', 1, refused('freshness', 'stale')],
  ['timestamp is -1', 'timestamp', -1, badPayload],
  ['timestamp is true', 'timestamp', true, badPayload],
  ['timestamp at the end of the year 9999', 'timestamp', 253_402_300_799_999, refused('freshness', 'from_the_future')],
  ['timestamp of the year 10000', 'timestamp', 253_402_300_800_000, badPayload],
  ['timestamp beyond 53 bits', 'timestamp', 2n ** 53n, badPayload],
  ['timestamp of 64 bits', 'timestamp', 2n ** 64n - 1n, badPayload],
  ['pcrs is missing', 'pcrs', undefined, badPayload],
  ['pcrs is a list', 'pcrs', [ZERO], badPayload],
  ['one register', 'pcrs', new Map([[0, testPcr(0)]]), ['not_expected', 'debug', 'debug']],
  ['register 31', 'pcrs', registers({ 31: testPcr(31) }), EXPECTED],
  ['register -1', 'pcrs', new Map([...(registers() as Map<number, Buffer>), [-1, ZERO]]), badPayload],
  [
    'a register with a name of text',
    'pcrs',
    new Map<string | number, CborValue>([...(registers() as Map<number, Buffer>), ['0', ZERO]]),
    badPayload,
  ],
  ['a register of 47 bytes', 'pcrs', registers({ 5: Buffer.alloc(47) }), badPayload],
  ['a register of 49 bytes', 'pcrs', registers({ 5: Buffer.alloc(49) }), badPayload],
  [
    'a register that is null',
    'pcrs',
    new Map<number, CborValue>([...(registers() as Map<number, Buffer>), [5, null]]),
    badPayload,
  ],
  [
    'a register that is text',
    'pcrs',
    new Map<number, CborValue>([...(registers() as Map<number, Buffer>), [5, 'x'.repeat(48)]]),
    badPayload,
  ],
  ['certificate is missing', 'certificate', undefined, badPayload],
  ['certificate is null', 'certificate', null, badPayload],
  ['certificate is text', 'certificate', 'text', badPayload],
  ['cabundle is missing', 'cabundle', undefined, badPayload],
  ['cabundle is a map', 'cabundle', new Map([[0, leaf.certificate]]), badPayload],
  ['cabundle with text', 'cabundle', ['text'], badPayload],
  ['public_key of one byte', 'public_key', Buffer.alloc(1), EXPECTED],
  ['public_key of 1,024 bytes', 'public_key', Buffer.alloc(1024), EXPECTED],
  ['public_key of 1,025 bytes', 'public_key', Buffer.alloc(1025), badPayload],
  ['public_key is false', 'public_key', false, badPayload],
  ['user_data of no bytes', 'user_data', Buffer.alloc(0), EXPECTED],
  ['user_data of 1,024 bytes', 'user_data', Buffer.alloc(1024), EXPECTED],
  ['user_data is text', 'user_data', 'text', badPayload],
  ['nonce of no bytes', 'nonce', Buffer.alloc(0), EXPECTED],
  ['nonce of 1,024 bytes', 'nonce', Buffer.alloc(1024), EXPECTED],
  ['nonce of 1,025 bytes', 'nonce', Buffer.alloc(1025), badPayload],
  ['nonce is missing', 'nonce', undefined, EXPECTED],
  ['PCR0 is missing', 'pcrs', registers({ 0: undefined }), ['not_expected', 'debug', 'debug']],
  ['PCR1 is missing', 'pcrs', registers({ 1: undefined }), ['not_expected', 'debug', 'debug']],
  ['only PCR0 is zero', 'pcrs', registers({ 0: ZERO }), ['not_expected', 'debug', 'debug']],
  ['only PCR2 is zero', 'pcrs', registers({ 2: ZERO }), ['not_expected', 'debug', 'debug']],
  ['PCR16 is missing', 'pcrs', registers({ 16: undefined }), wrongPcr],
  ['PCR3 and PCR4 are zero', 'pcrs', registers({ 3: ZERO, 4: ZERO }), EXPECTED],
];
for (const [name, member, value, outcome] of edges) await add(name, field(member, value), outcome);
const three: readonly CborValue[] = [['a', 'list'], 'text', 7];
for (const value of three)
  await add(`a payload that is ${JSON.stringify(value)}`, await rawDocument(encodeCbor(value)), badPayload);

// The encoding of the payload: well-formed, of the kinds that are known, and otherwise free.
const entries = [...payloadOf({})].map(([name, value]) => Buffer.concat([encodeCbor(name), encodeCbor(value)]));
const map = (...more: readonly Buffer[]) =>
  Buffer.concat([Buffer.of(0xa0 + entries.length + more.length), ...entries, ...more]);
const member = (name: string, value: Buffer) => {
  const at = [...payloadOf({}).keys()].indexOf(name);
  const changed = entries.map((entry, place) => (place === at ? Buffer.concat([encodeCbor(name), value]) : entry));
  return Buffer.concat([Buffer.of(0xa0 + changed.length), ...changed]);
};
const bundle = payloadOf({}).get('cabundle') as readonly Buffer[];
const certificates = bundle.map((one) => encodeCbor(one));
const raw: readonly (readonly [string, Buffer, Outcome])[] = [
  ['a payload put together from its members', map(), EXPECTED],
  ['a payload with a longer head', Buffer.concat([Buffer.of(0xb8, entries.length), ...entries]), EXPECTED],
  [
    'a cabundle of indefinite length',
    member('cabundle', Buffer.concat([Buffer.of(0x9f), ...certificates, Buffer.of(0xff)])),
    EXPECTED,
  ],
  [
    'a timestamp in a longer form',
    member('timestamp', Buffer.concat([Buffer.of(0x1b), int64(NOW - 60_000)])),
    EXPECTED,
  ],
  ['members in another order', Buffer.concat([Buffer.of(0xa0 + entries.length), ...entries.toReversed()]), EXPECTED],
  ['text that is not UTF-8', member('module_id', hexBytes('6269ff')), badPayload],
  ['text with half of a pair', member('module_id', hexBytes('63eda080')), badPayload],
  ['text in an overlong form', member('module_id', hexBytes('62c080')), badPayload],
  ['text of indefinite length', member('module_id', hexBytes('7f6169ff')), badPayload],
  ['bytes of indefinite length', member('user_data', hexBytes('5f4100ff')), badPayload],
  ['a float', member('timestamp', hexBytes('fb4278bcfe5680000 0')), badPayload],
  ['undefined', member('user_data', hexBytes('f7')), badPayload],
  ['a simple value in two bytes', member('user_data', hexBytes('f816')), badPayload],
  ['a tag', member('timestamp', Buffer.concat([hexBytes('c1'), encodeCbor(NOW - 60_000)])), badPayload],
  ['a bignum', member('timestamp', hexBytes('c24101')), badPayload],
  ['a reserved head', member('timestamp', hexBytes('1c')), badPayload],
  [
    'a reserved head with 16 bytes behind it',
    member('timestamp', Buffer.concat([hexBytes('1c'), Buffer.alloc(8), int64(NOW - 60_000)])),
    badPayload,
  ],
  ['a simple value that stands for nothing', member('user_data', hexBytes('f3')), badPayload],
  ['a tag with the number of null', member('user_data', hexBytes('d6')), badPayload],
  ['a name that is a list', map(hexBytes('8001')), badPayload],
  ['a break by itself', member('user_data', hexBytes('ff')), badPayload],
  ['a member that is not there', map().subarray(0, -1), badPayload],
  ['an indefinite map without its break', Buffer.concat([Buffer.of(0xbf), ...entries]), badPayload],
  [
    'an indefinite map with a name alone',
    Buffer.concat([Buffer.of(0xbf), ...entries, encodeCbor('nonce'), Buffer.of(0xff)]),
    badPayload,
  ],
  ['a name in bytes', map(Buffer.concat([encodeCbor(Buffer.from('x')), encodeCbor(1)])), badPayload],
  ['a name that is null', map(hexBytes('f601')), badPayload],
  ['a name that is a number', map(hexBytes('0001')), badPayload],
  ['a register twice, in two forms', member('pcrs', registerTwice()), badPayload],
  ['6,000 lists in one another', member('user_data', Buffer.alloc(6000, 0x81)), badPayload],
  ['a length that is longer than the document', member('user_data', hexBytes('5bffffffffffffffff')), badPayload],
  ['a list that is longer than the document', member('user_data', hexBytes('9bffffffffffffffff')), badPayload],
];
for (const [name, bytes, outcome] of raw) await add(name, await rawDocument(bytes), outcome);

function int64(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(value));
  return bytes;
}
function registerTwice(): Buffer {
  const all = encodeCbor(registers());
  const again = Buffer.concat([hexBytes('1800'), encodeCbor(ZERO)]);
  return Buffer.concat([Buffer.of((all[0] ?? 0) + 1), all.subarray(1), again]);
}

// Circumstances.
const goodOne = 'a good document';
const fresh = (code: string) => refused('freshness', code);
again('one millisecond older than accepted', goodOne, fresh('stale'), { max_age_seconds: 60, at: NOW + 1 });
await add('made 300 s and one millisecond later', field('timestamp', NOW + 300_001), fresh('from_the_future'));
again('a nonce with a byte more', goodOne, fresh('nonce_mismatch'), { nonce: `${hex(NONCE)}00` });
again('a nonce with a byte less', goodOne, fresh('nonce_mismatch'), { nonce: hex(NONCE).slice(2) });
again('a nonce where the document has an empty one', 'nonce of no bytes', fresh('nonce_mismatch'), {
  nonce: hex(NONCE),
});
again('stale, and with another nonce', goodOne, fresh('stale'), { max_age_seconds: 59, nonce: '00' });
again('the sixteenth accepted value', goodOne, EXPECTED, { reference_values: 'sixteen_values' });
again('register 31, as expected', 'register 31', EXPECTED, { reference_values: 'register_31' });
again('register 31, which is not there', goodOne, wrongPcr, { reference_values: 'register_31' });
again('two registers in descending order', goodOne, ['not_expected', 'policy', 'wrong_pcr', 'wrong_pcr'], {
  reference_values: 'two_registers_in_descending_order',
});
again('a foreign root, whatever the registers', 'a foreign root', refused('chain', 'untrusted_root'), {
  reference_values: 'another_image',
});
