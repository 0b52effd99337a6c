// The YAML descriptors of specification/keys.md#key-files: what is taken, what is refused, and that no refusal repeats
// a secret.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseStrictYamlStream } from '../../../common/formats/yaml.ts';
import { parseDescriptors, readPlainDocuments } from '../../../signer/keys/files/descriptor.ts';
import { testSecret } from '../../support/keys.ts';

const digits = Buffer.from(testSecret(1)).toString('hex');
const raw = { type: 'file-raw', secretKey: Uint8Array.from(testSecret(1)) };
const parse = (text: string) => parseDescriptors('/keys/one.yaml', Buffer.from(text, 'utf8'));

describe('what a descriptor may look like', () => {
  it.each([
    ['plain', `type: file-raw\nkeyType: BLS\nprivateKey: ${digits}\n`],
    ['0x without quotes, which YAML takes for a number', `type: file-raw\nkeyType: BLS\nprivateKey: 0x${digits}\n`],
    ['0x in quotes', `type: "file-raw"\nkeyType: 'BLS'\nprivateKey: "0x${digits}"\n`],
    ['upper-case hex', `type: file-raw\nkeyType: BLS\nprivateKey: 0X${digits.toUpperCase()}\n`],
    ['type and keyType in any case', `type: FILE-Raw\nkeyType: bls\nprivateKey: ${digits}`],
    ['without keyType', `type: file-raw\nprivateKey: ${digits}`],
    [
      'unknown properties of any shape',
      `type: file-raw\nprivateKey: ${digits}\nnote: [1, {a: b}]\nmetadata:\n  x: 1\n`,
    ],
    ['other order, comments', `# mine\nprivateKey: ${digits} # secret\nkeyType: BLS\ntype: file-raw\n`],
    ['flow style, which is JSON too', `{"type": "file-raw", "keyType": "BLS", "privateKey": "0x${digits}"}`],
    ['Windows line ends', `type: file-raw\r\nkeyType: BLS\r\nprivateKey: ${digits}\r\n`],
    ['a byte order mark', `\ufefftype: file-raw\nkeyType: BLS\nprivateKey: ${digits}\n`],
    ['a document start and end', `---\ntype: file-raw\nprivateKey: ${digits}\n...\n`],
  ])('%s', (_name, text) => {
    expect(parse(text)).toEqual([{ document: 1, descriptor: raw }]);
  });

  it.each([
    ['plain', `privateKey: ${digits}`],
    ['after a line end, in quotes', `privateKey:\n  "0x${digits}"`],
    ['in a property that has its name at its end', `myprivateKey: ${digits}`],
    ['in a document that is refused', `type: hashicorp\nprivateKey: '${digits}'`],
  ])('a key leaves the bytes before they become text: %s', (_name, line) => {
    const content = Buffer.from(`type: file-raw\n${line}\n---\ntype: file-raw\nprivateKey: ${digits}\n`);
    const [, second] = parseDescriptors('/keys/one.yaml', content);
    expect(second).toEqual({ document: 2, descriptor: raw });
    expect(content.includes(digits)).toBe(false);
  });

  it('a key that is spelled with escapes is one too', () => {
    const text = `type: file-raw\nprivateKey: "\\x${digits.charCodeAt(0).toString(16)}${digits.slice(1)}"\n`;
    expect(parse(text)).toEqual([{ document: 1, descriptor: { ...raw, secretKey: Buffer.from(digits, 'hex') } }]);
  });

  it.each([63, 65, 66])('%i digits are no key', (count) => {
    const text = `type: file-raw\nprivateKey: ${digits.repeat(2).slice(0, count)}\n`;
    expect(parse(text)).toEqual([{ document: 1, refused: 'privateKey is not 32 bytes of hex' }]);
  });

  it('digits that look like a decimal or a float number stay what they are', () => {
    for (const number of ['1'.repeat(64), `0${'7'.repeat(63)}`, `1${'e'.repeat(1)}${'5'.repeat(62)}`]) {
      expect(parse(`type: file-raw\nprivateKey: ${number}`)).toEqual([
        { document: 1, descriptor: { type: 'file-raw', secretKey: Uint8Array.from(Buffer.from(number, 'hex')) } },
      ]);
    }
  });

  it('a keystore’s files are relative to the descriptor, or absolute', () => {
    const text = 'type: file-keystore\nkeyType: BLS\nkeystoreFile: sub/k.json\nkeystorePasswordFile: /secrets/p.txt\n';
    expect(parse(text)).toEqual([
      {
        document: 1,
        descriptor: { type: 'file-keystore', keystoreFile: '/keys/sub/k.json', passwordFile: '/secrets/p.txt' },
      },
    ]);
  });

  it('several documents are counted from 1, and one bad one does not spoil the others', () => {
    const good = `type: file-raw\nprivateKey: ${digits}\n`;
    expect(parse(`${good}---\ntype: hashicorp\n---\n${good}---\n`)).toEqual([
      { document: 1, descriptor: raw },
      { document: 2, refused: 'unsupported type hashicorp' },
      { document: 3, descriptor: raw },
    ]);
  });
});

describe('what a descriptor may not be', () => {
  it.each([
    ['', 'describes no key'],
    ['# only a comment\n', 'describes no key'],
    ['---\n---\n', 'describes no key'],
    ['just text', 'not a map of properties'],
    ['- a\n- list', 'not a map of properties'],
    ['keyType: BLS', 'type is missing'],
    ['type:\nkeyType: BLS', 'type is missing'],
    ['type: [file-raw]', 'type is missing'],
    ['type: hashicorp\nkeyType: BLS', 'unsupported type hashicorp'],
    ['type: azure-secret', 'unsupported type azure-secret'],
    ['type: AWS-SECRET', 'unsupported type aws-secret'],
    ['type: yubihsm', 'unsupported type yubihsm'],
    ['type: file-raw\nkeyType: ED25519', 'unsupported keyType ED25519'],
    ['type: file-raw\nkeyType: BLS', 'privateKey is missing'],
    [`type: file-raw\nprivateKey: ${digits.slice(1)}`, 'privateKey is not 32 bytes of hex'],
    [`type: file-raw\nprivateKey: ${digits}00`, 'privateKey is not 32 bytes of hex'],
    [`type: file-raw\nprivateKey: ${digits.slice(2)}zz`, 'privateKey is not 32 bytes of hex'],
    ['type: file-keystore\nkeystorePasswordFile: p', 'keystoreFile is missing'],
    ['type: file-keystore\nkeystoreFile: k', 'keystorePasswordFile is missing'],
    [`type: file-raw\nprivateKey: ${digits}\nprivateKey: ${digits}`, 'line 3: a key is repeated'],
    [`type: &a file-raw\nprivateKey: "${digits}`, 'line 2: a character is missing, such as a closing quote or a comma'],
  ])('%j: %s', (text, refused) => {
    expect(parse(text)).toEqual([{ document: 1, refused }]);
  });

  it('a key of another curve that Web3Signer has is no fault', () => {
    for (const type of ['secp256k1', 'SECP256K1'])
      expect(parse(`type: file-raw\nkeyType: ${type}`)).toEqual([
        { document: 1, refused: `unsupported keyType ${type}`, foreign: 'secp256k1_keys' },
      ]);
  });

  it('an alias is refused, with its whole document', () => {
    expect(parse(`a: &key ${digits}\ntype: file-raw\nprivateKey: *key`)).toEqual([
      { document: 1, refused: 'line 1: an anchor is used' },
    ]);
  });

  it('no refusal repeats a secret, wherever in the file it stands', () => {
    const texts = [
      `type: ${digits}`,
      `type: file-raw\nkeyType: ${digits}`,
      `type: file-raw\nprivateKey: "${digits}`,
      `type: file-raw\nprivateKey: ${digits} ${digits}: x: y`,
      `type: file-raw\nprivateKey: *${digits}`,
      `type: file-raw\n ${digits}: [`,
      `%${digits}\n---\n!${digits} ${digits}\n`,
      `"${digits}" "${digits}"`,
      `\t${digits}\n@${digits}`,
      digits,
    ];
    for (const text of texts) {
      const [described] = parse(text);
      expect(described).toHaveProperty('refused');
      expect(JSON.stringify(described)).not.toContain(digits.slice(0, 16));
    }
  });
});

describe('plain lines, which are read without the YAML package', () => {
  const name = fc.oneof(
    fc.constantFrom('type', 'keyType', 'privateKey', 'keystoreFile', 'constructor', 'toString'),
    fc.stringMatching(/^[A-Za-z]{1,9}$/),
  );
  const anything = fc.string({ unit: fc.constantFrom(...'aZ09 -:#"\'\\/._~&*!%@`{}[],|>?\t\u0085é') });
  const value = fc.oneof(
    fc.stringMatching(/^[A-Za-z0-9/.][A-Za-z0-9_/.-]{0,20}$/),
    fc.constantFrom('', '~', 'null', 'true', '0x1F', '1e5', '...', '.', '---', '- a', 'a: b', 'a #b'),
    anything,
    anything.map((text) => `"${text}"`),
    anything.map((text) => `'${text}'`),
  );
  const line = fc.oneof(
    { weight: 9, arbitrary: fc.tuple(name, fc.constantFrom(': ', ':', ':  '), value).map((parts) => parts.join('')) },
    { weight: 1, arbitrary: fc.constantFrom('---', '...', '', '# note', '%YAML 1.2', '--- # next', ' type: file-raw') },
  );
  const stream = fc.array(line, { maxLength: 6 }).map((lines) => lines.join('\n'));

  it('mean what the package says that they mean', () => {
    let plain = 0;
    fc.assert(
      fc.property(stream, fc.constantFrom('', '\n'), (text, end) => {
        const read = readPlainDocuments(text + end);
        if (read === undefined) return;
        plain += 1;
        expect(parseStrictYamlStream(text + end, 'text')).toMatchObject(read);
        expect(parseStrictYamlStream(text + end, 'text')).toHaveLength(read.length);
      }),
      { numRuns: 10_000 },
    );
    expect(plain).toBeGreaterThan(200);
  });

  it.each([
    ['a comment', 'type: file-raw # mine'],
    ['a repeated key', 'type: file-raw\ntype: file-raw'],
    ['an escape', 'type: "file\\x2draw"'],
    ['a quote within quotes', "type: 'file''raw'"],
    ['an anchor', 'type: &x file-raw'],
    ['an empty document', 'type: file-raw\n---\n'],
    ['no document', ''],
  ])('are no more than that: %s is left to the package', (_what, text) => {
    expect(readPlainDocuments(text)).toBeUndefined();
  });
});
