// The decoders of bytes that others write, each with inputs to begin with. Seeds are small and made here; the vectors
// of the shared folder come on top where it is there.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { readTranscript } from '../../ceremony/transcript/chain.ts';
import { readCertificate } from '../../common/attestation/certificate.ts';
import { readCoseSign1, readPayload } from '../../common/attestation/document.ts';
import { parseReferenceFile } from '../../common/attestation/reference-file.ts';
import { decodeCbor } from '../../common/formats/cbor.ts';
import { parseProxyHeader } from '../../common/formats/proxy-header.ts';
import { parseStrictJson } from '../../common/formats/strict-json.ts';
import { parseStrictYaml } from '../../common/formats/yaml.ts';
import { readCpio, writeCpio } from '../../eif/format/cpio.ts';
import { readImage, writeImage } from '../../eif/format/format.ts';
import { checkImageSignature, readSigner, signImage } from '../../eif/format/signature.ts';
import { parseCms } from '../../enclave/kms/cms.ts';
import { readProxyConfiguration } from '../../parent-proxy/configuration.ts';
import { readWeb3SignerArguments } from '../../service/web3signer/arguments.ts';
import { readColumnBytes, readNumber } from '../../service/web3signer/records.ts';
import { policyRulesSchema, policySchema, renewRequestSchema, tokenRequestSchema } from '../../signer/api/policy.ts';
import { parsePolicyText, parseTokenText } from '../../signer/auth/stateful/rows.ts';
import { parseAuthorization } from '../../signer/auth/tokens.ts';
import { readConfigurationFile } from '../../signer/config/layers/file.ts';
import { parseDescriptors } from '../../signer/keys/files/descriptor.ts';
import { parseKeystoreJson } from '../../signer/keys/keystores/keystore.ts';
import { parseSignRequest } from '../../signer/operations/parse.ts';
import { parseSignBatch } from '../../signer/operations/sign-batch.ts';
import { readInterchange } from '../../signer/slashing/interchange/file.ts';
import { signingPair } from '../eif/signing-pair.ts';
import type { FuzzTarget } from './engine.ts';
import { HTTP_HEADS } from './http-heads.ts';

const ROOT = `0x${'11'.repeat(32)}`;
const KEY = `0x${'ab'.repeat(48)}`;
const VECTORS = join(import.meta.dirname, '../../../shared/vectors');
const OWN_VECTORS = join(import.meta.dirname, '../vectors');
const EXAMPLES = join(import.meta.dirname, '../../docs/examples');
const MAX_SEED_BYTES = 8_192;

const text = (...texts: readonly string[]): Uint8Array[] => texts.map((one) => Buffer.from(one));
const json = (...values: readonly unknown[]): Uint8Array[] => text(...values.map((value) => JSON.stringify(value)));

/** Small files of a folder that may not be there. */
function filesOf(folder: string, pattern: RegExp): Uint8Array[] {
  try {
    return readdirSync(folder)
      .filter((name) => pattern.test(name))
      .map((name) => readFileSync(join(folder, name)))
      .filter(({ length }) => length <= MAX_SEED_BYTES);
  } catch {
    return [];
  }
}

const JSON_WORDS = ['{', '}', '[', ']', '"', ':', ',', 'null', 'true', '1e9', '"0x"', '\\u0000', '{"a":1,"a":2}', '-0'];
const POINT = `0x${'a1'.repeat(48)}`;
const SHARE = {
  participant_id: '2',
  composite_public_key: POINT,
  signing_threshold: '2',
  participants: '3',
  set: '1',
  commitments: [POINT, POINT],
};

/** What is no JSON stays as it is. */
function keystoreOfShare(whole: Uint8Array): Uint8Array {
  try {
    return Buffer.from(
      JSON.stringify({ ...JSON.parse(Buffer.from(whole).toString()), pubkey: POINT, distributed: SHARE }),
    );
  } catch {
    return whole;
  }
}

const FORK_INFO = {
  fork: { previous_version: '0x00000000', current_version: '0x00000000', epoch: '0' },
  genesis_validators_root: ROOT,
};
const VOTE = {
  slot: '1',
  index: '0',
  beacon_block_root: ROOT,
  source: { epoch: '0', root: ROOT },
  target: { epoch: '1', root: ROOT },
};
const ATTESTATION = { type: 'ATTESTATION', fork_info: FORK_INFO, signingRoot: ROOT, attestation: VOTE };
const SIGN_WORDS = [
  ...JSON_WORDS,
  ...['type', 'fork_info', 'signingRoot', 'attestation', 'beacon_block', 'block_header', 'version', ROOT, KEY],
  ...['"BLOCK_V2"', '"ATTESTATION"', '"AGGREGATE_AND_PROOF_V2"', '"VOLUNTARY_EXIT"', '"RANDAO_REVEAL"', '"DEPOSIT"'],
  ...[
    '"SYNC_COMMITTEE_MESSAGE"',
    '"VALIDATOR_REGISTRATION"',
    '"ELECTRA"',
    '"FULU"',
    '"GLOAS"',
    '"18446744073709551615"',
  ],
];
const DER_WORDS = [
  '\x30\x80\x00\x00',
  '\x30\x82\xff\xff',
  '\x04\x81\x00',
  '\x06\x03\x55\x1d\x0f',
  '\x02\x01\x00',
  '\xa0',
];
const CBOR_WORDS = [
  '\xd2\x84',
  '\x9f',
  '\xbf',
  '\xff',
  '\x5f',
  '\x7f',
  '\x1b\xff\xff\xff\xff\xff\xff\xff\xff',
  '\xfb',
  '\xa1',
];

/** Those of attestation documents, in DER. */
function certificates(): Uint8Array[] {
  return filesOf(join(VECTORS, 'attestation'), /\.bin$/).flatMap((document) => {
    const { certificate, cabundle } = readPayload(Buffer.from(readCoseSign1(document).payload));
    return [certificate, ...cabundle];
  });
}

const smallImage = (): Buffer =>
  writeImage({
    architecture: 'x86_64',
    defaultMemoryBytes: 1n,
    defaultCpus: 1n,
    kernel: Buffer.from('k'),
    cmdline: Buffer.from('c'),
    ramdisks: [Buffer.from('r'), Buffer.from('s')],
    metadata: Buffer.from('{}'),
    signature: Buffer.from('a0', 'hex'),
  });

/** Its checksum is right: it finds accidents, and the fuzzer would find nothing else. */
function withChecksum(input: Uint8Array): Buffer {
  const [crcAt, headerBytes] = [544, 548];
  const image = Buffer.from(input);
  if (image.length >= headerBytes)
    image.writeUInt32BE(crc32(image.subarray(headerBytes), crc32(image.subarray(0, crcAt))), crcAt);
  return image;
}

async function drain(items: AsyncIterable<unknown>): Promise<void> {
  for await (const _item of items);
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

const lines = (input: Uint8Array): string[] => Buffer.from(input).toString('utf8').split('\n');

export const TARGETS: readonly FuzzTarget[] = [
  HTTP_HEADS,
  {
    name: 'sign-request',
    sources: ['/signer/api/', '/common/formats/'],
    words: SIGN_WORDS,
    seeds: () =>
      json(
        ATTESTATION,
        { type: 'RANDAO_REVEAL', fork_info: FORK_INFO, randao_reveal: { epoch: '1' } },
        { type: 'VOLUNTARY_EXIT', fork_info: FORK_INFO, voluntary_exit: { epoch: '1', validator_index: '2' } },
        {
          type: 'BLOCK_V2',
          fork_info: FORK_INFO,
          beacon_block: {
            version: 'FULU',
            block_header: { slot: '1', proposer_index: '2', parent_root: ROOT, state_root: ROOT, body_root: ROOT },
          },
        },
      ),
    decode: parseSignRequest,
  },
  {
    name: 'sign-batch',
    sources: ['/signer/api/', '/common/formats/'],
    words: [...SIGN_WORDS, 'identifiers', 'request'],
    seeds: () => json({ identifiers: [KEY], request: ATTESTATION }, { public_keys: [KEY, KEY], ...ATTESTATION }),
    decode: (input) => parseSignBatch(input),
  },
  {
    name: 'strict-json',
    sources: ['/common/formats/'],
    words: JSON_WORDS,
    seeds: () => json({ a: [1, -2.5e3, 'x\u{1f600}', null, true, {}] }),
    decode: (input) => parseStrictJson(input),
  },
  {
    name: 'yaml',
    sources: ['/common/formats/'],
    words: [
      '- ',
      ': ',
      '\n  ',
      '&a ',
      '*a',
      '!!str ',
      '<<: ',
      '|\n',
      '>\n',
      '---\n',
      '...\n',
      '{',
      '}',
      '[',
      '# ',
      '\t',
      "'",
    ],
    seeds: () => text('a: 1\nb:\n  - x\n  - {c: d}\n', 'a: &x 1\nb: *x\n', 'a: |\n  text\n  more\n'),
    decode: (input) => parseStrictYaml(Buffer.from(input).toString('utf8')),
  },
  {
    name: 'key-descriptors',
    sources: ['/signer/keys/files/', '/common/formats/'],
    words: [
      'type: ',
      'file-raw',
      'file-keystore',
      'keystoreFile: ',
      'keystorePasswordFile: ',
      'privateKey: ',
      '---\n',
      ROOT,
    ],
    seeds: () =>
      text(
        'type: file-keystore\nkeyType: BLS\nkeystoreFile: a.json\nkeystorePasswordFile: a.password\n',
        `type: file-raw\nprivateKey: ${ROOT}\n---\ntype: hashicorp\n`,
      ),
    decode: (input) => parseDescriptors('/keys/a.yaml', Buffer.from(input)),
  },
  {
    name: 'keystore',
    sources: ['/signer/keys/keystores/', '/signer/api/distributed.ts', '/common/formats/'],
    words: [
      ...JSON_WORDS,
      ...Object.keys(SHARE),
      'distributed',
      'crypto',
      'kdf',
      'scrypt',
      'pbkdf2',
      'dklen',
      'salt',
      'cipher',
      'checksum',
      'message',
      'aes-128-ctr',
    ],
    seeds: () => {
      const whole = filesOf(join(VECTORS, 'eip2335'), /keystore|scrypt|pbkdf2|test/);
      return [...whole, ...whole.map(keystoreOfShare)];
    },
    decode: (input) => parseKeystoreJson(Buffer.from(input).toString('utf8')),
  },
  {
    name: 'interchange',
    sources: ['/signer/slashing/interchange/'],
    words: [
      ...JSON_WORDS,
      'metadata',
      'interchange_format_version',
      'genesis_validators_root',
      'data',
      'pubkey',
      'slot',
      KEY,
      ROOT,
    ],
    seeds: () =>
      json({
        metadata: { interchange_format_version: '5', genesis_validators_root: ROOT },
        data: [
          {
            pubkey: KEY,
            signed_blocks: [{ slot: '1', signing_root: ROOT }],
            signed_attestations: [{ source_epoch: '1', target_epoch: '2', signing_root: ROOT }],
          },
        ],
      }),
    decode: (input) => drain(readInterchange(once(input), ROOT)),
  },
  {
    name: 'cbor',
    sources: ['/common/formats/cbor'],
    words: CBOR_WORDS,
    seeds: () =>
      ['a26161016162820203', 'd28443a10126a04401020304', '9f01ff', 'fb3ff0000000000000'].map((hex) =>
        Buffer.from(hex, 'hex'),
      ),
    decode: (input) => decodeCbor(input),
  },
  {
    name: 'attestation-document',
    sources: ['/common/attestation/', '/common/formats/'],
    words: [...CBOR_WORDS, 'module_id', 'pcrs', 'certificate', 'cabundle', 'user_data', 'nonce', 'SHA384'],
    seeds: () => filesOf(join(VECTORS, 'attestation'), /\.bin$/),
    decode: (input) => readPayload(Buffer.from(readCoseSign1(input).payload)),
  },
  {
    name: 'certificate',
    sources: ['/common/attestation/', '/common/formats/'],
    words: DER_WORDS,
    seeds: certificates,
    decode: readCertificate,
  },
  {
    name: 'cms',
    sources: ['/enclave/kms/', '/common/formats/'],
    words: DER_WORDS,
    seeds: () => filesOf(join(VECTORS, 'kms-cms'), /^input/),
    decode: parseCms,
  },
  {
    name: 'proxy-header',
    sources: ['/common/formats/'],
    words: ['\r\n\r\n\0\r\nQUIT\n', '\x21\x11', '\x21\x21', '\x20\x00', '\x00\x0c', '\x00\x24'],
    seeds: () =>
      ['0d0a0d0a000d0a515549540a2111000c7f0000017f00000123280fa0', '0d0a0d0a000d0a515549540a20000000'].map((hex) =>
        Buffer.from(hex, 'hex'),
      ),
    decode: parseProxyHeader,
  },
  {
    name: 'eif',
    sources: ['/eif/', '/common/formats/'],
    words: ['.eif', '\x00\x04', '\x00\x00\x00\x01', '\xff\xff\xff\xff\xff\xff\xff\xff', '070701', 'TRAILER!!!'],
    seeds: () => [smallImage()],
    decode: (input) => readImage(withChecksum(input)),
  },
  {
    name: 'eif-archive',
    sources: ['/eif/'],
    words: ['070701', '00000000', '0000000B', 'TRAILER!!!', '../', '/', '\x00', '000041ED', '000081A4', '0000A1FF'],
    seeds: () => [
      writeCpio([
        { type: 'directory', path: 'd' },
        { type: 'file', path: 'd/f', data: Buffer.from('x') },
        { type: 'symlink', path: 'd/l', target: 'f' },
      ]),
    ],
    decode: readCpio,
  },
  {
    name: 'eif-signature',
    sources: ['/eif/'],
    words: [...CBOR_WORDS, 'signing_certificate', 'signature', '\x81\xa2', '\x18', '\x84\x18', 'register_index'],
    seeds: () => {
      const { keyPem, certificatePem } = signingPair();
      return [signImage(Buffer.alloc(48), readSigner(keyPem, certificatePem))];
    },
    decode: (input) => checkImageSignature(Buffer.from(input), Buffer.alloc(48)),
  },
  {
    name: 'policy',
    sources: ['/signer/auth/', '/common/formats/', '/signer/api/'],
    words: [
      ...JSON_WORDS,
      ...[
        'name',
        'rules',
        'effect',
        'allow',
        'deny',
        'scopes',
        'sign',
        'operations',
        'keys',
        'fee_recipients',
        'builders',
      ],
      ...['builder_indices', 'self', 'max_gas_limit', 'only_for_own_blocks', 'policies', 'bound_cidrs', '10.0.0.0/8'],
      ...['ttl_seconds', 'management', 'description', 'created_at', 'expires_at', '2026-11-25T00:00:00Z', KEY],
    ],
    seeds: () => {
      const rules = [
        { effect: 'allow', scopes: ['sign'], keys: [KEY], operations: ['BLOCK'], max_gas_limit: 1 },
        {
          effect: 'allow',
          fee_recipients: [`0x${'ab'.repeat(20)}`],
          builders: ['0xab'],
          builder_indices: ['1', 'self'],
        },
        { effect: 'allow', only_for_own_blocks: true },
      ];
      const row = { version: 1, commit: 'a', created_at: '2026-11-25T00:00:00Z' };
      const token = { policies: ['a'], bound_cidrs: ['10.0.0.0/8'], description: 'd', ttl_seconds: 1 };
      return json(
        ...[{ name: 'a', rules }, { rules }, token, { management: true }, { ttl_seconds: 9 }],
        { ...row, updated_at: row.created_at, rules },
        { ...row, ...token, kind: 'client', digest: 'ab'.repeat(32), expires_at: null },
      );
    },
    decode(input) {
      const written = Buffer.from(input).toString('utf8');
      for (const read of [parsePolicyText, parseTokenText]) refusal(() => read(written));
      const body = parseStrictJson(input);
      for (const schema of [policySchema, policyRulesSchema, tokenRequestSchema, renewRequestSchema])
        schema.safeParse(body);
    },
  },
  {
    name: 'authorization',
    sources: ['/signer/auth/'],
    words: ['Bearer ', 'Basic ', 'bearer ', '=', ':', ',', ' '],
    seeds: () => text('Bearer abcdef', 'Basic dXNlcjp0b2tlbg=='),
    decode: (input) => parseAuthorization(lines(input)),
  },
  {
    name: 'configuration',
    sources: ['/signer/config/', '/common/'],
    words: [
      'network: ',
      'server: ',
      'listen_address: ',
      'anti_slashing: ',
      'backend: ',
      '\n  ',
      'env:',
      'file:',
      'tls: ',
      '{',
      '}',
      '- ',
    ],
    seeds: () => filesOf(EXAMPLES, /^(enclave|strongroom)\.yaml$/),
    decode: (input) => readConfigurationFile(input, 'strongroom.yaml'),
  },
  {
    name: 'proxy-configuration',
    sources: ['/parent-proxy/', '/common/'],
    words: ['tee: ', 'nitro: ', 'parent_proxy: ', 'ports: ', '\n  ', '- ', 'endpoints: ', '{', '}'],
    seeds: () => filesOf(EXAMPLES, /^enclave\.yaml$/),
    decode: (input) => readProxyConfiguration(Buffer.from(input), 'strongroom.yaml'),
  },
  {
    name: 'web3signer-flags',
    sources: ['/service/web3signer/', '/common/command-line/'],
    words: [
      '--',
      '=',
      'eth2',
      '\n',
      'export',
      '--http-listen-port',
      '--key-store-path',
      '--slashing-protection-db-url',
      '--network=minimal',
    ],
    seeds: () =>
      text('--http-listen-port=9000\n--key-store-path\n/keys\neth2\n--network=mainnet', 'eth2\nexport\n--to=a.json'),
    decode: (input) => readWeb3SignerArguments(lines(input)),
  },
  {
    name: 'web3signer-database',
    sources: ['/service/web3signer/records'],
    words: ['9007199254740993', '-1', '1.5', '\\x', '0x', 'null'],
    seeds: () => text('1', '9007199254740991', '\\x00ff'),
    decode(input) {
      const value = Buffer.from(input).toString('utf8');
      for (const given of [value, Number(value), input, null, [value]]) {
        for (const read of [() => readNumber(given, 'a row'), () => readColumnBytes(given, 32, 'a row')]) refusal(read);
      }
    },
  },
  {
    name: 'transcript',
    sources: ['/ceremony/', '/common/formats/'],
    words: [...JSON_WORDS, '\n', 'sequence', 'previous', 'type', 'time', 'sha384'],
    seeds: () => filesOf(OWN_VECTORS, /^transcript/).concat(text('{"a":1}\n')),
    decode: readTranscript,
  },
  {
    name: 'reference-values',
    sources: ['/common/attestation/', '/common/formats/'],
    words: [...JSON_WORDS, 'Measurements', 'HashAlgorithm', 'PCR0', 'PCR16', '00'.repeat(48)],
    seeds: () => json({ Measurements: { HashAlgorithm: 'Sha384 { ... }', PCR0: '00'.repeat(48) } }),
    decode: parseReferenceFile,
  },
];

/** Of one of several reads in an input: an error of its own is no fault. */
function refusal(read: () => unknown): void {
  try {
    read();
  } catch (error) {
    if (error instanceof TypeError || error instanceof RangeError) throw error;
  }
}
