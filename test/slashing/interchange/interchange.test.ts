// The EIP-3076 interchange reader and writer: what they accept, whole or in pieces, and in how much memory.

import { describe, expect, it } from 'vitest';
import { readInterchange, writeInterchange } from '../../../signer/slashing/interchange/file.ts';
import type { ValidatorHistory } from '../../../signer/slashing/types.ts';
import {
  collect,
  historiesOf,
  history,
  type InterchangeTest,
  MAIN_ROOT,
  publicKeyOf,
  stream,
} from '../../support/slashing.ts';
import { vectorJson, vectorNames } from '../../support/vectors.ts';
import { bytesOf, fileOf, KEY, ROOT, read } from './files.ts';

async function* manyHistories(): AsyncGenerator<ValidatorHistory> {
  for (let key = 0; key < 100_000; key += 1) yield history(key, [[key, 'a']], [[key, key + 1, 'b']]);
}

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

  it('strings or numbers, hex in any case, missing roots, unknown members, a key twice', async () => {
    expect(await read(full)).toEqual(expected);
  });

  const blocks = [{ slot: 7, signingRoot: null }];
  it.each([
    ['a root of zeros (Prysm)', { signed_blocks: [{ slot: '7', signing_root: `0x${'00'.repeat(32)}` }] }, blocks],
    ['an empty root (Go)', { signed_blocks: [{ slot: '7', signing_root: '' }] }, blocks],
    ['lists that are null', { signed_blocks: null, signed_attestations: null }, []],
    ['lists that are not there', {}, []],
    ['a list of one empty entry (Teku)', { signed_blocks: [{}], signed_attestations: [{}] }, []],
    [
      'an empty entry of one list beside entries of the other',
      { signed_attestations: [{}], signed_blocks: [{ slot: '6' }, { slot: '7' }] },
      [{ slot: 6, signingRoot: null }, ...blocks],
    ],
  ])('%s: what tools write for nothing', async (_, members, expected) => {
    const text = fileOf([
      { pubkey: KEY, ...members },
      { pubkey: KEY, signed_blocks: [], signed_attestations: [] },
    ]);
    for (const size of [undefined, 3]) {
      expect(await read(text, size)).toEqual([
        { publicKey: KEY, blocks: expected, attestations: [] },
        { publicKey: KEY, blocks: [], attestations: [] },
      ]);
    }
  });

  it.each([1, 2, 3, 7, 64])('the same in pieces of %i bytes', async (size) => {
    expect(await read(full, size)).toEqual(expected);
  });

  it('white space anywhere, and the metadata after the data', async () => {
    const text = JSON.stringify(
      { data: [], metadata: { interchange_format_version: 5, genesis_validators_root: MAIN_ROOT } },
      null,
      2,
    );
    expect(await read(`\n${text}\r\n\t `, 5)).toEqual([]);
  });

  const vectors = vectorNames('eip3076').filter((name) => name !== 'schema.json');
  it.each(vectors)('the interchanges of the official test %s', async (name) => {
    const vector = vectorJson<InterchangeTest>(`eip3076/${name}`);
    for (const { interchange } of vector?.steps ?? []) {
      const bytes = bytesOf(JSON.stringify(interchange), 11);
      expect(await collect(readInterchange(bytes, `0x${'00'.repeat(32)}`))).toEqual(
        historiesOf(interchange.data).map(withoutZeros),
      );
    }
  });

  /** No message has a root of zeros. */
  function withoutZeros(one: ValidatorHistory): ValidatorHistory {
    const rootless = <Entry extends { readonly signingRoot: Uint8Array | null }>(entry: Entry): Entry =>
      entry.signingRoot?.some((byte) => byte !== 0) === true ? entry : { ...entry, signingRoot: null };
    return { ...one, blocks: one.blocks.map(rootless), attestations: one.attestations.map(rootless) };
  }
});

describe('writing', () => {
  it('what is written is read again as it was', async () => {
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

  it('100,000 validators pass through in bounded memory', async () => {
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
