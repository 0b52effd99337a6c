// What `strongroom eif build` does not build, and how it says so: every violation with its place, nothing written.

import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { keyArn } from '../config/loading.ts';
import { addonForTests, PROJECT_ROOT } from '../support/addon.ts';
import { IS_WHOLE, someOf } from '../support/scale.ts';
import { buildArguments, CEREMONY, CONFIGURATION, eif as runEif, sha256, writeInputs } from './image-program.ts';
import { compiledBefore, copyProject } from './project-copy.ts';

const withAddon = addonForTests() && process.platform === 'linux' && process.arch === 'x64';

let folder: string;
let project: string;
let from: string;

const eif = (argv: readonly string[], env = {}) => runEif(project, argv, { env });

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-image-test-'));
  if (!withAddon) return;
  project = join(folder, 'project');
  copyProject(project);
  from = writeInputs(project, join(folder, 'inputs'));
});
afterAll(() => rmSync(folder, { recursive: true }));

describe.runIf(withAddon)('build refuses, and says what and where', () => {
  /** With one input file replaced. */
  function refusal(name: string, contents: string | Buffer): string {
    const file = join(from, name);
    const original = readFileSync(file);
    writeFileSync(file, contents);
    const { code, stderr } = eif(buildArguments(from, join(folder, 'refused')));
    writeFileSync(file, original);
    expect(code).toBe(1);
    expect(existsSync(join(folder, 'refused'))).toBe(false);
    return stderr;
  }
  const imageFile = (): string => readFileSync(join(from, 'image.yaml'), 'utf8');

  it('a kernel and a module that are not the pinned ones', () => {
    expect(refusal('bzImage', 'another kernel')).toContain('the kernel: ');
    expect(refusal('nsm.ko', 'another module')).toContain('is not the file that was pinned');
  });

  it('an addon and a first process that their sources do not compile to', () => {
    const compiled = join(folder, 'compiled');
    cpSync(join(project, 'build'), compiled, { recursive: true });
    for (const part of ['build/native/strongroom.node', 'build/eif/init']) {
      const file = join(project, part);
      const original = readFileSync(file);
      writeFileSync(file, Buffer.concat([original, Buffer.from('TAMPERED')]));
      const env = IS_WHOLE ? {} : { ...compiledBefore(compiled), npm_config_cache: join(folder, 'no-cache') };
      const { code, stderr } = eif(buildArguments(from, join(folder, 'refused')), env);
      writeFileSync(file, original);
      expect(code).toBe(1);
      expect(stderr).toContain(`${part} is not what its sources compile to`);
      expect(existsSync(join(folder, 'refused'))).toBe(false);
    }
  });

  it('a package whose files were altered after they were installed', () => {
    const installed = join(project, 'node_modules');
    rmSync(installed);
    mkdirSync(installed);
    for (const name of readdirSync(join(PROJECT_ROOT, 'node_modules'))) {
      const [to, of] = [join(installed, name), join(PROJECT_ROOT, 'node_modules', name)];
      if (name === 'zod') cpSync(of, to, { recursive: true });
      else symlinkSync(of, to);
    }
    appendFileSync(join(installed, 'zod/v4/core/util.js'), '\n/* TAMPERED */\n');
    const refused = join(folder, 'refused');
    const { code, stderr } = eif(buildArguments(from, refused));
    const isThere = existsSync(refused);
    rmSync(refused, { recursive: true, force: true });
    rmSync(installed, { recursive: true });
    symlinkSync(join(PROJECT_ROOT, 'node_modules'), installed);
    expect([code, isThere]).toEqual([1, false]);
    expect(stderr).toContain('node_modules/zod/v4/core/util.js');
  });

  it('a module that is compressed', () => {
    const compressed = Buffer.from('fd377a585a00', 'hex');
    writeFileSync(join(from, 'packed.ko'), compressed);
    const text = `${imageFile()}  - { path: packed.ko, sha256: ${sha256(compressed)} }\n`;
    expect(refusal('image.yaml', text)).toContain('no uncompressed .ko file');
  });

  const changes: readonly (readonly [(text: string) => string, string])[] = [
    [(text: string) => `${text}surprise: 1\n`, 'has members that do not exist: "surprise"'],
    [(text: string) => text.replace(/sha256: [0-9a-f]+/, 'sha256: abc'), 'kernel.sha256: must be a SHA-256 digest'],
    [(text: string) => text.replace(/^kernel.*\n/, ''), 'kernel: is required'],
    [(text: string) => `${text}cmdline: "console=ttyS0  quiet"\n`, 'cmdline: must be words'],
    [(text: string) => `${text}kernel: {}\n`, 'a key is repeated'],
    [(text: string) => `${text}memory_mib: 1\ncpus: 0\n`, 'memory_mib: '],
  ];
  it.each(someOf(changes, 3))('image.yaml %#', (change, reason) => {
    expect(refusal('image.yaml', change(imageFile()))).toContain(reason);
  });

  it('a ceremony and a configuration that the signer would refuse, with its own words', () => {
    expect(refusal('ceremony.yaml', CEREMONY.replace('kms_threshold: 1', 'kms_threshold: 2'))).toContain(
      'kms_threshold must be at most',
    );
    const configurations: readonly (readonly [string, string])[] = [
      [CONFIGURATION.replace('mainnet', 'minnet'), 'network must be one of'],
      [`${CONFIGURATION}ceremony: {}\n`, 'ceremony'],
    ];
    for (const [text, words] of someOf(configurations, 1)) expect(refusal('strongroom.yaml', text)).toContain(words);
    expect(refusal('strongroom.yaml', '')).toContain('is empty');
  });

  it('a slashing database whose password the parent reads, or for which the image names no authority', () => {
    const unsafe = 'unsafe_parent_writes_tables: true';
    const ciphertext = Buffer.from('a KMS ciphertext').toString('base64');
    const sealed = `table_credentials: { key_arn: '${keyArn(1)}', ciphertext: '${ciphertext}' }`;
    const written = (user: string, opened: string) =>
      CONFIGURATION.replace(unsafe, opened)
        .replace(/^anti_slashing.*$/m, `anti_slashing: { backend: postgres, url: 'postgres://${user}@db.example/s' }`)
        .replace(
          'endpoints:',
          'endpoints:\n        - { hostname: db.example, loopback: 127.0.0.4, vsock_port: 8003, port: 5432 }',
        );
    const problems: readonly (readonly [string, string])[] = [
      [written('signer', sealed), 'for which this image names no authority'],
      [written('signer:TEST', sealed), 'has a password, which the parent reads'],
      [written('signer:TEST', ''), 'the parent would write the tables'],
    ];
    for (const [text, words] of someOf(problems, 2)) expect(refusal('strongroom.yaml', text)).toContain(words);
  });

  it('a build that does not say where the configuration comes from, half a signing pair, a CA file without one', () => {
    const plain = buildArguments(from, join(folder, 'refused'));
    const unsaid = plain.filter((word) => word !== '--config' && !word.endsWith('strongroom.yaml'));
    expect(eif(unsaid)).toMatchObject({ code: 1, stderr: expect.stringContaining('--fetch-config') });
    expect(eif([...plain, '--fetch-config']).code).toBe(1);
    expect(eif([...plain, '--signing-key', '/dev/null'])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('together'),
    });
    const file = join(from, 'bzImage');
    const authorities: readonly (readonly [string, string])[] = [
      [`kms.eu-central-1.amazonaws.com=${file}`, 'no certificate in PEM'],
      [file, '--ca takes HOST=FILE'],
      [`=${file}`, '--ca takes HOST=FILE'],
      ['kms.eu-central-1.amazonaws.com=', '--ca takes HOST=FILE'],
      [`*.amazonaws.com=${file}`, 'the host must be a host name'],
      [`10.0.0.1=${file}`, 'the host is an IP address'],
    ];
    for (const [given, reason] of someOf(authorities, 3))
      expect(eif([...plain, '--ca', given])).toMatchObject({ code: 1, stderr: expect.stringContaining(reason) });
    expect(eif([...plain, '--surprise']).code).toBe(1);
  });
});

it('an unknown command is refused, and the commands are named', () => {
  expect(eif(['unpack'])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('there are: build, describe, compare'),
  });
});
