// `eif compare --reference`: an image against a published pcrs.json. What is measured decides, computed from the bytes
// here; what cannot be compared is said to be so; a record that names no image is refused.

import { hash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseCeremony } from '../../ceremony/definition.ts';
import { readCeremonyValue } from '../../ceremony/yaml.ts';
import { writeCompiledModule } from '../../eif/bundle/compiled-module.ts';
import { describeImage } from '../../eif/describe.ts';
import { writeCpio } from '../../eif/format/cpio.ts';
import { writeImage } from '../../eif/format/format.ts';
import { main } from '../../eif/main.ts';
import { COMPILED_PATH } from '../../eif/ramdisks.ts';
import { CEREMONY, CONFIGURATION } from './image-program.ts';

const COMMIT = '0123456789'.repeat(4);
const OTHER = 'ab'.repeat(48);
const folder = mkdtempSync(join(tmpdir(), 'strongroom-compare-'));
const image = join(folder, 'image.eif');
const bytes = imageOf('kernel');
const { measurements } = describeImage(bytes, Buffer.from(CONFIGURATION));

function imageOf(kernel: string, metadata = 'built here'): Buffer {
  const ceremony = parseCeremony(readCeremonyValue(CEREMONY));
  const compiled = writeCompiledModule({ ceremony, configuration: 'fetched', authorities: new Map() });
  return writeImage({
    architecture: 'x86_64',
    ...{ defaultMemoryBytes: 1n, defaultCpus: 1n, signature: undefined, metadata: Buffer.from(metadata) },
    ...{ kernel: Buffer.from(kernel), cmdline: Buffer.from('reboot=k') },
    ramdisks: [writeCpio([]), writeCpio([{ type: 'file', path: COMPILED_PATH, data: compiled }])],
  });
}

function file(name: string, content: unknown): string {
  const path = join(folder, name);
  writeFileSync(path, Buffer.isBuffer(content) ? content : JSON.stringify(content));
  return path;
}

function published(changed: object = {}): string {
  const input = { path: '/lib/x86_64-linux-gnu/libc.so.6', sha256: '00'.repeat(32), size: 1 };
  return file('published.json', {
    commit: COMMIT,
    packages: 'verified',
    measurements,
    image: { sha256: hash('sha256', bytes, 'hex') },
    tool: { strongroom: '0.1.0' },
    inputs: [input, { path: 'ceremony.yaml', sha256: '11'.repeat(32), size: 1 }],
    ...changed,
  });
}

async function compare(...argv: readonly string[]) {
  const said = { stdout: '', stderr: '' };
  const into = (name: 'stdout' | 'stderr') => ({
    write(text: string) {
      said[name] += text;
    },
  });
  const code = await main(['compare', ...argv], { stdout: into('stdout'), stderr: into('stderr') });
  return { code, ...said };
}

beforeAll(() => writeFileSync(image, bytes));
afterAll(() => rmSync(folder, { recursive: true }));

describe('an image and a published record', () => {
  it('0: they are one, byte for byte, of the commit that is named', async () => {
    const config = file('strongroom.yaml', Buffer.from(CONFIGURATION));
    const { code, stdout } = await compare(image, '--reference', published(), '--config', config);
    expect(code).toBe(0);
    expect(stdout).toContain('equal: the image that was published, byte for byte\n');
    expect(stdout).toContain(`Published: commit ${COMMIT}, strongroom 0.1.0\n`);
    for (const [name, value] of Object.entries(measurements)) expect(stdout).toContain(`${name.padEnd(6)} ${value}\n`);
    expect(stdout).not.toContain('not compared');
  });

  it('0: also when a signature or metadata is another; a configuration not known is not compared', async () => {
    const signed = { ...measurements, PCR8: OTHER };
    const { code, stdout } = await compare(
      image,
      '--reference',
      published({ measurements: signed, image: { sha256: '22'.repeat(32) } }),
    );
    expect(code).toBe(0);
    expect(stdout).toContain('equal: the image that was published; the files differ where nothing is measured');
    expect(stdout).toContain('PCR8   not compared: your image is not signed');
    expect(stdout).toContain('PCR16  not compared: your image fetches its configuration: give it with --config');
  });

  it.each([`${COMMIT}-modified`, 'unknown', undefined])('10: they are one, and its sources are %s', async (commit) => {
    const { code, stdout } = await compare(image, '--reference', published({ commit }));
    expect(code).toBe(10);
    expect(stdout).toContain('equal: the image that was published');
    expect(stdout).toContain('SOURCES UNKNOWN');
    const asJson = await compare(image, '--reference', published({ commit }), '--json');
    expect(JSON.parse(asJson.stdout)).toMatchObject({ equal: true, known_sources: false });
    expect((await compare(file('third.eif', imageOf('third')), '--reference', published({ commit }))).code).toBe(1);
  });

  it.each([['unverified'], [undefined]])('10: they are one, of packages that are %s', async (packages) => {
    const { code, stdout } = await compare(image, '--reference', published({ packages }));
    expect({ code, isSaid: stdout.includes('SOURCES UNKNOWN') }).toEqual({ code: 10, isSaid: true });
  });

  it('1: a register is another one, and the inputs that differ are named', async () => {
    const other = file('other.eif', imageOf('another kernel'));
    const reference = published();
    const plain = await compare(other, '--reference', reference);
    expect(plain.code).toBe(1);
    expect(plain.stdout).toContain('DIFFERENT: this is not the image that was published; --record FILE');
    expect(plain.stdout).toContain(`DIFFERENT, published ${measurements['PCR0']}`);
    const own = file('own.json', {
      measurements,
      inputs: [
        { path: '/lib/x86_64-linux-gnu/libc.so.6', sha256: '33'.repeat(32), size: 1 },
        { path: 'nsm.ko', sha256: '44'.repeat(32), size: 1 },
        { path: 'ceremony.yaml', sha256: '11'.repeat(32), size: 1 },
      ],
    });
    const { code, stdout } = await compare(other, '--reference', reference, '--record', own, '--json');
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({
      equal: false,
      commit: COMMIT,
      registers: [
        { register: 'PCR0', result: 'different' },
        { register: 'PCR1', result: 'different' },
        { register: 'PCR2', result: 'equal' },
        { register: 'PCR16', result: 'not_compared' },
        { register: 'PCR17', result: 'equal' },
      ],
      inputs_that_differ: [
        { path: '/lib/x86_64-linux-gnu/libc.so.6', own: '33'.repeat(32), published: '00'.repeat(32) },
        { path: 'nsm.ko', own: '44'.repeat(32), published: null },
      ],
    });
  });

  it('1: a configuration or a ceremony that is another one', async () => {
    const config = file('other.yaml', Buffer.from('network: hoodi\n'));
    expect((await compare(image, '--reference', published(), '--config', config)).code).toBe(1);
    const ceremony = published({ measurements: { ...measurements, PCR17: OTHER } });
    expect((await compare(image, '--reference', ceremony)).code).toBe(1);
  });

  it.each<[string, object, string]>([
    ['without PCR0', { measurements: { PCR1: OTHER } }, 'has no PCR0: it names no image'],
    ['of a digest in base64', { measurements: { PCR0: 'q6ur' } }, 'is not a pcrs.json'],
    ['without measurements', { measurements: undefined }, 'is not a pcrs.json'],
  ])('2: a record %s', async (_, changed, message) => {
    const { code, stdout, stderr } = await compare(image, '--reference', published(changed));
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(message);
  });

  it('2: two images and a record, or one image and nothing', async () => {
    expect((await compare(image, image, '--reference', published())).stderr).toContain('in place of the second IMAGE');
    expect((await compare(image)).stderr).toContain('name two images, or one and --reference FILE');
    expect((await compare(image, image, '--record', published())).stderr).toContain('go with --reference');
    expect((await compare(image, '--reference', join(folder, 'nowhere'))).code).toBe(2);
  });
});

it('a file that is not there is named, with what to do', async () => {
  const { code, stderr } = await compare('/nowhere.eif', '/nowhere.eif');
  expect(code).toBe(2);
  expect(stderr).toBe(
    'strongroom eif compare: the image: /nowhere.eif cannot be read (ENOENT)\n' +
      '  there is no such file or folder: correct the path\n',
  );
});
