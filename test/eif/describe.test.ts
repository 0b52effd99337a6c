// What is said of an image that somebody made to be misread: the ceremony and the configuration are those of the files
// that would run, or none.

import { expect, it } from 'vitest';
import { parseCeremony } from '../../ceremony/definition.ts';
import { readCeremonyValue } from '../../ceremony/yaml.ts';
import { writeCompiledModule } from '../../eif/bundle/compiled-module.ts';
import { describeImage } from '../../eif/describe.ts';
import { type CpioEntry, writeCpio } from '../../eif/format/cpio.ts';
import { type EnclaveImage, writeImage } from '../../eif/format/format.ts';
import { BAKED_PATH, COMPILED_PATH, SOURCES_PATH } from '../../eif/ramdisks.ts';

const KEYS = [1, 2, 3].map((n) => `arn:aws:kms:eu-central-1:111122223333:key/00000000-0000-4000-8000-00000000000${n}`);
const CEREMONY = `generation: 1
kms_threshold: 2
kms_keys:
${KEYS.map((arn) => `  - { arns: [${arn}] }`).join('\n')}
retired_kms_keys: []
root_token_recipients: [age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj]
`;
const ceremony = parseCeremony(readCeremonyValue(CEREMONY));
const compiled = writeCompiledModule({ ceremony, configuration: 'baked', authorities: new Map() });
const CONFIGURATION = Buffer.from('network: mainnet\n');
const APPLICATION: readonly CpioEntry[] = [
  { type: 'file', path: COMPILED_PATH, data: compiled },
  { type: 'file', path: BAKED_PATH, data: CONFIGURATION },
  { type: 'file', path: 'evil', data: Buffer.from('evil') },
];

/** A configuration that somebody asks about does not stand in for one that is said to be baked in, and is not there. */
const asked = Buffer.from('network: hoodi\n');

function described(...behind: readonly Buffer[]) {
  const image: EnclaveImage = {
    architecture: 'x86_64',
    ...{ defaultMemoryBytes: 1n, defaultCpus: 1n, metadata: undefined, signature: undefined },
    ...{ kernel: Buffer.from('kernel'), cmdline: Buffer.from('reboot=k') },
    ramdisks: [writeCpio([]), writeCpio(APPLICATION), ...behind],
  };
  const { compiled, baked, measurements } = describeImage(writeImage(image), asked);
  return { generation: compiled?.ceremony.generation, baked, register: measurements['PCR16'] !== undefined };
}

function folderOf(path: string): CpioEntry[] {
  return [{ type: 'directory', path: path.slice(0, path.lastIndexOf('/')) }];
}

it('an image with one of each has them', () => {
  expect(described()).toEqual({ generation: 1, baked: CONFIGURATION, register: true });
});

it('a link that a later ramdisk puts in their place leaves none', () => {
  const link = (path: string): Buffer => writeCpio([...folderOf(path), { type: 'symlink', path, target: '/evil' }]);
  expect(described(link(COMPILED_PATH))).toMatchObject({ generation: undefined, baked: undefined });
  expect(described(link(BAKED_PATH))).toEqual({ generation: 1, baked: undefined, register: false });
});

const SOURCES = `${'0a'.repeat(32)}  enclave/main.ts\n${'1b'.repeat(32)}  signer/boot/boot.ts\n`;

function sourcesIn(list: string | undefined) {
  const entries: CpioEntry[] =
    list === undefined ? [] : [{ type: 'file', path: SOURCES_PATH, data: Buffer.from(list) }];
  const image: EnclaveImage = {
    architecture: 'x86_64',
    ...{ defaultMemoryBytes: 1n, defaultCpus: 1n, metadata: undefined, signature: undefined },
    ...{ kernel: Buffer.from('kernel'), cmdline: Buffer.from('reboot=k') },
    ramdisks: [writeCpio([]), writeCpio([...APPLICATION, ...folderOf(SOURCES_PATH), ...entries])],
  };
  return describeImage(writeImage(image)).sources;
}

it('the list of own sources is read as a whole, or not at all', () => {
  expect(sourcesIn(SOURCES)).toEqual([
    { path: 'enclave/main.ts', sha256: '0a'.repeat(32) },
    { path: 'signer/boot/boot.ts', sha256: '1b'.repeat(32) },
  ]);
  for (const list of [undefined, '', `${SOURCES}\u001b[2J\n`, SOURCES.replace('0a', '0'), `${SOURCES}x`]) {
    expect(sourcesIn(list)).toBeUndefined();
  }
});

it('a ramdisk that cannot be listed could hold either, and leaves none', () => {
  expect(described(Buffer.from('1f8b0800', 'hex'))).toMatchObject({ generation: undefined, baked: undefined });
});
