// The EIP-3076 interchange reader and writer: what they accept, what they refuse and where, in how much memory.

import { describe, expect, test } from 'vitest';
import { RETAINED_EPOCHS } from '../../../enclave/slashing/history/prune.ts';
import { MAX_ENTRIES_OF_A_KEY, readInterchange, writeInterchange } from '../../../enclave/slashing/interchange/file.ts';
import { historyReducer, KEPT_ENTRIES } from '../../../enclave/slashing/interchange/reduce.ts';
import type { ValidatorHistory } from '../../../enclave/slashing/types.ts';
import {
  collect,
  historiesOf,
  history,
  type InterchangeTest,
  MAIN_ROOT,
  OTHER_ROOT,
  publicKeyOf,
  stream,
} from '../../support/slashing.ts';
import { vectorJson, vectorNames } from '../../support/vectors.ts';

async function* manyHistories(): AsyncGenerator<ValidatorHistory> {
  for (let key = 0; key < 100_000; key += 1) yield history(key, [[key, 'a']], [[key, key + 1, 'b']]);
}

const KEY = publicKeyOf(0xabc);
const ROOT = `0x${'ab'.repeat(32)}`;

function fileOf(
  data: unknown,
  metadata: unknown = { interchange_format_version: '5', genesis_validators_root: MAIN_ROOT },
) {
  return JSON.stringify({ metadata, data });
}

async function* bytesOf(text: string, size = text.length): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

function read(text: string, size?: number): Promise<ValidatorHistory[]> {
  return collect(readInterchange(bytesOf(text, size), MAIN_ROOT));
}

const oneEntry = (entry: unknown) => [{ pubkey: KEY, signed_blocks: [{ slot: '1' }, entry], signed_attestations: [] }];

describe('reading', () => {
  const full = fileOf([
    {
      pubkey: KEY.toUpperCase().replace('0X', '0x'),
      signed_blocks: [{ slot: '81952', signing_root: ROOT.toUpperCase() }, { slot: 81953 }],
      signed_attestations: [{ source_epoch: '2290', target_epoch: 3007, signing_root: null }],
      extra: { nested: ['ignored', 1, true] },
    },
    { pubkey: KEY.slice(2), signed_blocks: [], signed_attestations: [] },
  ]);
  const expected = [
    {
      publicKey: KEY,
      blocks: [
        { slot: 81952, signingRoot: Buffer.from(ROOT.slice(2), 'hex') },
        { slot: 81953, signingRoot: null },
      ],
      attestations: [{ sourceEpoch: 2290, targetEpoch: 3007, signingRoot: null }],
    },
    { publicKey: KEY, blocks: [], attestations: [] },
  ];

  test('strings or numbers, hex in any case, missing roots, unknown members, a key twice', async () => {
    expect(await read(full)).toEqual(expected);
  });

  test.each([1, 2, 3, 7, 64])('the same in pieces of %i bytes', async (size) => {
    expect(await read(full, size)).toEqual(expected);
  });

  test('white space anywhere, and the metadata after the data', async () => {
    const text = JSON.stringify(
      { data: [], metadata: { interchange_format_version: 5, genesis_validators_root: MAIN_ROOT } },
      null,
      2,
    );
    expect(await read(`\n${text}\r\n\t `, 5)).toEqual([]);
  });

  const vectors = vectorNames('eip3076').filter((name) => name !== 'schema.json');
  test.each(vectors)('the interchanges of the official test %s', async (name) => {
    const vector = vectorJson<InterchangeTest>(`eip3076/${name}`);
    for (const { interchange } of vector?.steps ?? []) {
      const bytes = bytesOf(JSON.stringify(interchange), 11);
      expect(await collect(readInterchange(bytes, `0x${'00'.repeat(32)}`))).toEqual(historiesOf(interchange.data));
    }
  });
});

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
    ['no signed_blocks', fileOf([{ pubkey: KEY, signed_attestations: [] }]), 'data[0].signed_blocks', /not a list/],
    [
      'no signed_attestations',
      fileOf([{ pubkey: KEY, signed_blocks: [] }]),
      'data[0].signed_attestations',
      /not a list/,
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

  test.each(refusals)('%s', async (_name, text, place, problem) => {
    await expect(read(text, 9)).rejects.toMatchObject({
      name: 'InterchangeError',
      place,
      message: expect.stringMatching(problem),
    });
  });

  test.each([
    ['', 'an empty file'],
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

  test('white space without end does not pile up', async () => {
    const blanks = stream([Buffer.from('{'), ...Array.from({ length: 2000 }, () => Buffer.alloc(5000, ' '))]);
    await expect(collect(readInterchange(blanks, MAIN_ROOT))).rejects.toMatchObject({ message: 'the file ends early' });
  });

  test('bytes that are not UTF-8', async () => {
    const bytes = stream([Buffer.from('{"data":["'), Buffer.from([0xff, 0xfe])]);
    await expect(collect(readInterchange(bytes, MAIN_ROOT))).rejects.toMatchObject({ name: 'InterchangeError' });
  });

  test('a member named __proto__ is a member like others and gives nothing to the object', async () => {
    const text = fileOf([]).replace(
      '"data":[]',
      `"data":[{"__proto__":{"pubkey":"${KEY}"},"signed_blocks":[],"signed_attestations":[]}]`,
    );
    await expect(read(text)).rejects.toMatchObject({ place: 'data[0].pubkey' });
  });
});

describe('writing', () => {
  test('what is written is read again as it was', async () => {
    const histories = [
      history(
        1,
        [
          [1, 'a'],
          [2, null],
        ],
        [
          [0, 1, 'a'],
          [1, 2, null],
        ],
      ),
      history(2, [], []),
    ];
    const text = (await Array.fromAsync(writeInterchange(stream(histories), MAIN_ROOT))).join('');
    expect(JSON.parse(text)).toMatchObject({
      metadata: { interchange_format_version: '5', genesis_validators_root: MAIN_ROOT },
      data: [{ pubkey: publicKeyOf(1), signed_blocks: [{ slot: '1' }, { slot: '2' }] }, { pubkey: publicKeyOf(2) }],
    });
    expect(await read(text, 100)).toEqual(histories);
  });

  test('100,000 validators pass through in bounded memory', async () => {
    let [characters, largest] = [0, 0];
    async function* counted(): AsyncGenerator<Uint8Array> {
      for await (const piece of writeInterchange(manyHistories(), MAIN_ROOT)) {
        characters += piece.length;
        largest = Math.max(largest, piece.length);
        yield Buffer.from(piece);
      }
    }
    let validators = 0;
    for await (const one of readInterchange(counted(), MAIN_ROOT)) validators += one.blocks.length;
    expect(validators).toBe(100_000);
    expect(characters).toBeGreaterThan(30_000_000);
    expect(largest).toBeLessThan(1000);
  });
});

describe('a key with very many entries', () => {
  /** A file of one key, piece by piece; its public key comes after its lists. */
  async function* fileOfVotes(votes: number, last = ''): AsyncGenerator<Uint8Array> {
    yield Buffer.from(`${fileOf([]).slice(0, -2)}{"signed_blocks":[],"signed_attestations":[`);
    for (let first = 0; first < votes; first += 1000) {
      const some = Array.from({ length: Math.min(1000, votes - first) }, (_, index) => first + index);
      const text = some.map((epoch) => `{"source_epoch":"${epoch}","target_epoch":"${epoch + 1}"}`).join(',');
      yield Buffer.from(first === 0 ? text : `,${text}`);
    }
    yield Buffer.from(`${last}],"pubkey":"${KEY}"}]}`);
  }

  test('is read to its last entries, and the others are counted', async () => {
    const [one, ...others] = await collect(readInterchange(fileOfVotes(30_000), MAIN_ROOT));
    expect(others).toEqual([]);
    expect(one?.publicKey).toBe(KEY);
    const kept = one?.attestations ?? [];
    expect(kept.length).toBeLessThan(2 * KEPT_ENTRIES);
    const lowest = Math.min(...kept.map(({ targetEpoch }) => targetEpoch));
    expect(lowest).toBeLessThanOrEqual(30_000 - RETAINED_EPOCHS);
    const left = { blockSlot: null, sourceEpoch: lowest - 2, targetEpoch: lowest - 1, blocks: 0 };
    expect(one?.leftOut).toEqual({ ...left, attestations: 30_000 - kept.length });
  });

  test('the event loop has its turns while it is read', async () => {
    let turns = 0;
    const count = (): void => {
      turns += 1;
      timer = setImmediate(count);
    };
    let timer = setImmediate(count);
    await collect(readInterchange(stream([Buffer.concat(await Array.fromAsync(fileOfVotes(30_000)))]), MAIN_ROOT));
    clearImmediate(timer);
    expect(turns).toBeGreaterThan(10);
  });

  test('is refused, with the place, when no key has so many', async () => {
    const file = fileOfVotes(MAX_ENTRIES_OF_A_KEY, ',{"source_epoch":"1","target_epoch":"2"}');
    await expect(collect(readInterchange(file, MAIN_ROOT))).rejects.toMatchObject({
      place: `data[0].signed_attestations[${MAX_ENTRIES_OF_A_KEY}]`,
      message: expect.stringMatching(/more than 1000000 entries/),
    });
  });

  test('that contradicts itself at one place keeps one entry without a root, and the marks of all', () => {
    const reducer = historyReducer();
    for (let index = 0; index < 5 * KEPT_ENTRIES; index++) {
      reducer.addVote({ sourceEpoch: index % 777, targetEpoch: 900, signingRoot: Buffer.alloc(32, index) });
      reducer.addBlock({ slot: 70, signingRoot: Buffer.alloc(32, index) });
    }
    const { blocks, attestations, leftOut } = reducer.result();
    expect(blocks.length + attestations.length).toBeLessThanOrEqual(2 * KEPT_ENTRIES);
    expect(blocks[0]).toEqual({ slot: 70, signingRoot: null });
    expect(attestations[0]).toMatchObject({ targetEpoch: 900, signingRoot: null });
    expect(leftOut).toMatchObject({ blockSlot: 70, sourceEpoch: 776, targetEpoch: 900 });
    expect(blocks.length + (leftOut?.blocks ?? 0)).toBe(5 * KEPT_ENTRIES);
    expect(attestations.length + (leftOut?.attestations ?? 0)).toBe(5 * KEPT_ENTRIES);
  });

  test('descending, it is the last entries that are kept all the same', () => {
    const reducer = historyReducer();
    for (let epoch = 5000; epoch > 0; epoch--) {
      reducer.addVote({ sourceEpoch: epoch - 1, targetEpoch: epoch, signingRoot: null });
    }
    const { attestations, leftOut } = reducer.result();
    expect(attestations).toHaveLength(RETAINED_EPOCHS + 1);
    expect(leftOut).toMatchObject({
      targetEpoch: 5000 - RETAINED_EPOCHS - 1,
      attestations: 5000 - RETAINED_EPOCHS - 1,
    });
  });
});
