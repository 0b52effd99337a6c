// Ramdisks: the same entries are the same bytes, as cpio(5) writes them, and an archive whose listing could lie is
// refused. That a kernel unpacks them is shown by the guest tests.

import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type CpioEntry, CpioError, readCpio, writeCpio } from '../../../eif/format/cpio.ts';

const file = (path: string, text = '', mode?: number): CpioEntry => ({
  type: 'file',
  path,
  data: Buffer.from(text),
  ...(mode === undefined ? {} : { mode }),
});

const TREE: readonly CpioEntry[] = [
  file('init', '#!', 0o755),
  file('etc/strongroom/config.yaml', 'network: mainnet\n'),
  { type: 'directory', path: 'dev', mode: 0o700 },
  { type: 'symlink', path: 'lib64', target: 'usr/lib64' },
  { type: 'character-device', path: 'dev/console', major: 5, minor: 1 },
];

/** Rewrites one header field of the archive's only file: the number of its field in cpio(5). */
function withField(archive: Buffer, field: number, value: number): Buffer {
  const changed = Buffer.from(archive);
  changed.write(value.toString(16).toUpperCase().padStart(8, '0'), 6 + 8 * field, 'latin1');
  return changed;
}

describe('writing', () => {
  it('what was written is read again, with the folders that were not named', () => {
    expect(readCpio(writeCpio(TREE)).map(({ type, path, mode }) => [type, path, mode.toString(8)])).toEqual([
      ['directory', 'dev', '700'],
      ['character-device', 'dev/console', '600'],
      ['directory', 'etc', '755'],
      ['directory', 'etc/strongroom', '755'],
      ['file', 'etc/strongroom/config.yaml', '644'],
      ['file', 'init', '755'],
      ['symlink', 'lib64', '777'],
    ]);
  });

  it('the order of the entries does not matter', () => {
    const archive = writeCpio(TREE);
    fc.assert(
      fc.property(fc.shuffledSubarray([...TREE], { minLength: TREE.length }), (shuffled) => {
        expect(writeCpio(shuffled).equals(archive)).toBe(true);
      }),
    );
  });

  it('paths are sorted by their bytes, not by UTF-16 units and not by a locale', () => {
    const paths = ['B', 'a', 'Ä', '\u{1f600}', '\uff5e'];
    const names = readCpio(writeCpio(paths.map((path) => file(path)))).map(({ path }) => path);
    expect(names).toEqual(['B', 'a', 'Ä', '\uff5e', '\u{1f600}']);
  });

  it('any tree comes back as it was given', () => {
    const name = fc.stringMatching(/^[a-zA-Z0-9_.-]{1,12}$/).filter((text) => text !== '.' && text !== '..');
    const entry = fc.tuple(name, fc.uint8Array({ maxLength: 700 }), fc.integer({ min: 0, max: 0o777 }));
    fc.assert(
      fc.property(fc.uniqueArray(entry, { selector: ([path]) => path }), (given) => {
        const entries = given.map(([path, data, mode]) => ({ type: 'file', path, data, mode }) as const);
        const read = new Map(readCpio(writeCpio(entries)).map((one) => [one.path, one]));
        for (const { path, data, mode } of entries) {
          expect(read.get(path)).toEqual({ type: 'file', path, data: Buffer.from(data), mode });
        }
      }),
    );
  });

  it('one file, byte by byte', () => {
    const header = ['00000001', '000081ED', ...Array(2).fill('00000000'), '00000001', '00000000', '00000002'];
    const rest = [...Array(4).fill('00000000'), '00000005', '00000000'];
    const trailer = [...Array(4).fill('00000000'), '00000001', ...Array(6).fill('00000000'), '0000000B', '00000000'];
    const expected = `070701${[...header, ...rest].join('')}init~~#!~~070701${trailer.join('')}TRAILER!!!~~~~`;
    expect(writeCpio([file('init', '#!', 0o755)]).toString('latin1')).toBe(
      expected.padEnd(512, '~').replaceAll('~', '\0'),
    );
  });

  it('owner, group and times are zero, inodes differ', () => {
    const archive = writeCpio([file('a', 'x'), file('b', 'y')]).toString('latin1');
    const headers = archive.match(/070701[0-9A-F]{104}/g)?.map((header) => header.slice(6).match(/.{8}/g) ?? []) ?? [];
    const zero = '00000000';
    expect(headers.map((fields) => [fields[0], fields[2], fields[3], fields[5]])).toEqual([
      ['00000001', zero, zero, zero],
      ['00000002', zero, zero, zero],
      [zero, zero, zero, zero],
    ]);
  });

  it.each([
    ['', 'is empty'],
    ['/init', 'slash'],
    ['etc/', 'slash'],
    ['a//b', 'slash'],
    ['../outside', 'has a ..'],
    ['a/./b', 'has a .'],
    ['a\0b', 'character'],
    ['TRAILER!!!', 'end the archive'],
  ])('the path %j is refused', (path, reason) => {
    expect(() => writeCpio([file(path)])).toThrow(reason);
  });

  it('a path that the kernel would leave out for its length is refused', () => {
    expect(() => writeCpio([file('x'.repeat(256))])).toThrow('a name longer than 255 bytes');
    expect(() => writeCpio([file(`${'x/'.repeat(2047)}xx`)])).toThrow('is longer than 4095 bytes');
    expect(readCpio(writeCpio([file(`${'x/'.repeat(2047)}x`)]))).toHaveLength(2048);
  });

  it('a path twice, and an entry beneath a file or a link, are refused', () => {
    expect(() => writeCpio([file('a'), file('a')])).toThrow('a is there twice');
    expect(() => writeCpio([file('a'), file('a/b')])).toThrow('a has entries beneath it');
    expect(() => writeCpio([{ type: 'symlink', path: 'a', target: 'b' }, file('a/b')])).toThrow('no directory');
  });
});

describe('reading refuses', () => {
  const one = writeCpio([file('a', 'text')]);

  it('an archive that is cut off anywhere', () => {
    const end = one.indexOf('TRAILER!!!') + 'TRAILER!!!'.length + 1;
    for (let length = 0; length < end; length++) {
      expect(() => readCpio(one.subarray(0, length)), `${length} bytes`).toThrow(CpioError);
    }
  });

  it.each([
    ['sizes that go beyond the end', withField(one, 6, 0xffff_ffff), 'cut off'],
    ['a name length that goes beyond the end', withField(one, 11, 0xffff_ffff), 'cut off'],
    ['a name of no bytes', withField(one, 11, 0), 'does not end'],
    ['a name that ends elsewhere', withField(one, 11, 1), 'newc|does not end|empty'],
    ['hard links', withField(one, 4, 2), 'hard link'],
    ['a block device', withField(one, 1, 0o060600), 'contents|neither'],
    ['a second archive behind the first', Buffer.concat([one, one]), 'behind its end'],
    ['another format', Buffer.from('070707'.padEnd(200, '0')), 'newc header'],
    ['digits that are none', Buffer.from(one.toString('latin1').replace('0000', '00g0'), 'latin1'), 'hexadecimal'],
  ])('%s', (_, archive, reason) => {
    expect(() => readCpio(archive)).toThrow(new RegExp(reason));
  });

  it('a path that is there twice, one outside the root, one before its folder', () => {
    const two = writeCpio([file('a', '1'), file('b', '2')]).toString('latin1');
    expect(() => readCpio(Buffer.from(two.replace('b\0', 'a\0'), 'latin1'))).toThrow('a is there twice');
    const up = writeCpio([file('aa', '1')]).toString('latin1');
    expect(() => readCpio(Buffer.from(up.replace('aa\0', '..\0'), 'latin1'))).toThrow('has a ..');
    const beneath = writeCpio([file('abc', '1')]).toString('latin1');
    expect(() => readCpio(Buffer.from(beneath.replace('abc\0', 'a/c\0'), 'latin1'))).toThrow('before its folder');
  });

  it('anything at random, with its own error', () => {
    fc.assert(
      fc.property(fc.nat(one.length - 1), fc.nat(255), (at, byte) => {
        const changed = Buffer.from(one);
        changed[at] = byte;
        try {
          readCpio(changed);
        } catch (error) {
          expect(error).toBeInstanceOf(CpioError);
        }
      }),
    );
  });
});
