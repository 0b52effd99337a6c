// Interchange files that are refused: each as a whole, with the place and the problem.

import { describe, expect, it } from 'vitest';
import { readInterchange } from '../../../signer/slashing/interchange/file.ts';
import { collect, MAIN_ROOT, OTHER_ROOT, stream } from '../../support/slashing.ts';
import { fileOf, KEY, oneEntry, read } from './files.ts';

describe('a file is refused as a whole, with the place', () => {
  const other = { interchange_format_version: '5', genesis_validators_root: OTHER_ROOT };
  const version4 = { interchange_format_version: '4', genesis_validators_root: MAIN_ROOT };
  const refusals: [name: string, text: string, place: string, problem: RegExp][] = [
    ['another network', fileOf([], other), 'metadata.genesis_validators_root', /another network/],
    ['another version', fileOf([], version4), 'metadata.interchange_format_version', /not 5/],
    ['no metadata', '{"data":[]}', 'metadata', /missing/],
    ['no data', fileOf(undefined), 'data', /missing/],
    ['data that is no list', fileOf({}), 'data', /not a list/],
    [
      'a public key that is none',
      fileOf([{ pubkey: '0x12', signed_blocks: [], signed_attestations: [] }]),
      'data[0].pubkey',
      /48 bytes/,
    ],
    [
      'no signed_blocks, and a member of another name',
      fileOf([{ pubkey: KEY, signedBlocks: [], signed_attestations: [] }]),
      'data[0].signed_blocks',
      /not a list/,
    ],
    [
      'signed_attestations that are a text',
      fileOf([{ pubkey: KEY, signed_blocks: [], signed_attestations: '' }]),
      'data[0].signed_attestations',
      /not a list/,
    ],
    [
      'an empty entry before others',
      fileOf([{ pubkey: KEY, signed_blocks: [], signed_attestations: [{}, {}] }]),
      'data[0].signed_attestations[0]',
      new RegExp(`an empty entry .of the key ${KEY}`),
    ],
    [
      'a fault before the name of its key',
      fileOf([{ signed_blocks: [{ slot: 'x' }], signed_attestations: [], pubkey: KEY }]),
      'data[0].signed_blocks[0].slot',
      new RegExp(`decimal number .of the key ${KEY}`),
    ],
    [
      'the answer to a DELETE',
      JSON.stringify({ data: [{ status: 'deleted' }], slashing_protection: fileOf([]) }),
      'data[0]',
      /jq -r \.slashing_protection/,
    ],
    ['no slot', fileOf(oneEntry({})), 'data[0].signed_blocks[1].slot', /decimal/],
    ['a negative slot', fileOf(oneEntry({ slot: '-1' })), 'data[0].signed_blocks[1].slot', /decimal/],
    ['a broken slot', fileOf(oneEntry({ slot: 1.5 })), 'data[0].signed_blocks[1].slot', /decimal/],
    ['a hex slot', fileOf(oneEntry({ slot: '0x10' })), 'data[0].signed_blocks[1].slot', /decimal/],
    [
      'a slot beyond 2^53 - 1',
      fileOf(oneEntry({ slot: '9007199254740992' })),
      'data[0].signed_blocks[1].slot',
      /2\^53/,
    ],
    [
      'the largest 64-bit slot',
      fileOf(oneEntry({ slot: '18446744073709551615' })),
      'data[0].signed_blocks[1].slot',
      /2\^53/,
    ],
    [
      'a short root',
      fileOf(oneEntry({ slot: '1', signing_root: '0x00' })),
      'data[0].signed_blocks[1].signing_root',
      /32 bytes/,
    ],
    ['an entry that is a list', fileOf(oneEntry([])), 'data[0].signed_blocks[1]', /not an object/],
    [
      'a member twice',
      `{"metadata":{},"data":[{"pubkey":"${KEY}","signed_blocks":[{"slot":"1","slot":"2"}]}]}`.replace(
        '{}',
        JSON.stringify({ interchange_format_version: '5', genesis_validators_root: MAIN_ROOT }),
      ),
      'data[0].signed_blocks[0].slot',
      /twice/,
    ],
    ['data twice', `${fileOf([]).slice(0, -1)},"data":[]}`, 'data', /twice/],
  ];

  it.each(refusals)('%s', async (_name, text, place, problem) => {
    await expect(read(text, 9)).rejects.toMatchObject({
      name: 'InterchangeError',
      place,
      message: expect.stringMatching(problem),
    });
  });

  it.each([
    ['', 'an empty file'],
    [JSON.stringify(fileOf([])), 'a file inside a text'],
    ['[]', 'a list'],
    ['"text"', 'a string'],
    ['{', 'half an object'],
    [fileOf([]).slice(0, -2), 'a file that ends early'],
    [`${fileOf([])}{}`, 'something after the end'],
    ['{"metadata":{},}', 'a comma too many'],
    ['{"data":[,]}', 'an element too few'],
    ['{"data" []}', 'a missing colon'],
    ['{"data":[1 2]}', 'a missing comma'],
    ['{"data":[01]}', 'a number with a leading zero'],
    ['{"data":[nul]}', 'a broken literal'],
    ['{"data":["\\x"]}', 'a broken escape'],
    ["{'data':[]}", 'single quotes'],
    ['{"data":[}]', 'brackets that cross'],
    [`{"x":${'['.repeat(50)}${']'.repeat(50)}}`, 'deep nesting'],
    [`{"x":"${'y'.repeat(5000)}"}`, 'an endless string'],
    ['{"__proto__":1,"__proto__":2}', 'a strange member twice'],
  ])('%j: %s', async (text) => {
    await expect(read(text, 4)).rejects.toMatchObject({ name: 'InterchangeError' });
  });

  it('a file that is cut inside a text ends early', async () => {
    const text = fileOf(oneEntry({ slot: '1' }));
    for (let length = 1; length < text.length; length++)
      await expect(read(text.slice(0, length))).rejects.toThrow(/the file ends early|the JSON is malformed/);
    const cut = text.slice(0, text.indexOf(KEY) + 20);
    await expect(read(cut)).rejects.toThrow(`data[0].pubkey: the file ends early, after ${cut.length} bytes`);
  });

  it('white space without end does not pile up', async () => {
    const blanks = stream([Buffer.from('{'), ...Array.from({ length: 2000 }, () => Buffer.alloc(5000, ' '))]);
    await expect(collect(readInterchange(blanks, MAIN_ROOT))).rejects.toMatchObject({
      message: 'the file ends early, after 10000001 bytes',
    });
  });

  it('bytes that are not UTF-8', async () => {
    const bytes = stream([Buffer.from('{"data":["'), Buffer.from([0xff, 0xfe])]);
    await expect(collect(readInterchange(bytes, MAIN_ROOT))).rejects.toMatchObject({ name: 'InterchangeError' });
  });

  it('a member named __proto__ is a member like others and gives nothing to the object', async () => {
    const text = fileOf([]).replace(
      '"data":[]',
      `"data":[{"__proto__":{"pubkey":"${KEY}"},"signed_blocks":[],"signed_attestations":[]}]`,
    );
    await expect(read(text)).rejects.toMatchObject({ place: 'data[0].pubkey' });
  });
});
