// The bundle is the signer: it starts on the pinned Node.js with nothing beside it, signs, refuses, and says so. What
// does not belong into an image does not get into it.

import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseCeremony } from '../../../ceremony/definition.ts';
import {
  type Bundle,
  bundleCheck,
  bundleProgram,
  bundleSigner,
  MAIN_FILE,
  ownSources,
} from '../../../eif/bundle/bundle.ts';
import {
  CONFIGURATION_PATH as CONFIGURATION_PATH_OF_IMAGES,
  readCompiledModule,
  writeCompiledModule,
} from '../../../eif/bundle/compiled-module.ts';
import { ADDON, readCompiledPart } from '../../../eif/bundle/compiled-parts.ts';
import { checkConfiguration } from '../../../eif/check-configuration.ts';
import { BuildError } from '../../../eif/inputs.ts';
import { CONFIGURATION_PATH } from '../../../enclave/compiled.ts';
import { startSigner } from '../../../rehearsal/signer.ts';
import { useFastestHasher } from '../../../signer/operations/leaves.ts';
import { keyArn } from '../../config/loading.ts';
import { addonForTests, PROJECT_ROOT } from '../../support/addon.ts';
import { makeCertificate } from '../../support/certificates.ts';
import { testSecret, writeKeystore } from '../../support/keys.ts';
import { attestation, rootOf, signCall, TEST_TOKEN } from '../../support/requests.ts';
import { NODE_OF_IMAGES } from '../project-copy.ts';

const withAddon = addonForTests();
const CEREMONY = parseCeremony({
  generation: 1,
  kms_threshold: 1,
  kms_keys: [{ arns: [keyArn(1)] }],
  root_token_recipients: ['age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p'],
});

let folder: string;
let bundle: Bundle;
let checking: Bundle;
const ROOT = PROJECT_ROOT.replace(/\/$/, '');

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-bundle-'));
  if (withAddon) [bundle, checking] = [await bundleSigner(ROOT), await bundleCheck(ROOT)];
});
afterAll(() => rmSync(folder, { recursive: true }));

function unpacked(name: string, { files }: Bundle, compiled?: Buffer): string {
  const path = join(folder, name);
  mkdirSync(path);
  for (const file of files) writeFileSync(join(path, file.name), file.data);
  if (compiled !== undefined) writeFileSync(join(path, 'compiled.mjs'), compiled);
  return path;
}

/** The program of an ordinary host, as the bundler makes it. */
const SERVICE = "import { main } from './service/main.ts';\nawait main(process.argv.slice(3));\n";

/** The project's packages and addon, by links, and beside them a package for musl. @returns its folder */
function projectWithMusl(project: string, arch: string): string {
  const from = PROJECT_ROOT.replace(/\/$/, '');
  const scope = join(project, 'node_modules/@chainsafe');
  mkdirSync(scope, { recursive: true });
  for (const name of readdirSync(join(from, 'node_modules/@chainsafe')))
    if (!name.includes('-musl')) symlinkSync(join(from, 'node_modules/@chainsafe', name), join(scope, name));
  for (const name of ['build', 'signer', 'package-lock.json']) symlinkSync(join(from, name), join(project, name));
  if (arch === '') return project;
  for (const name of ['blst', 'hashtree']) {
    const addon = `${name}.linux-${arch}-musl.node`;
    const musl = join(scope, `${name}-linux-${arch}-musl`);
    mkdirSync(musl);
    writeFileSync(join(musl, 'package.json'), JSON.stringify({ main: addon, version: '1.0.2' }));
    writeFileSync(join(musl, addon), 'an addon for musl');
  }
  return project;
}

describe.runIf(withAddon)('the bundle', () => {
  it('of a service signs, with its workers and addons, and refuses what is slashable', async () => {
    const keys = join(folder, 'keys');
    mkdirSync(keys);
    const publicKey = writeKeystore(keys, 'one', testSecret(1), 'TEST password');
    const app = unpacked('app', await bundleProgram(ROOT, { entry: SERVICE, inPlaceOf: new Map() }));
    const signer = await startSigner({
      program: [NODE_OF_IMAGES, join(app, 'main.mjs')],
      config: {
        key_sources: { filesystem: { paths: [keys] } },
        static_auth: {
          policies: [{ name: 'all', rules: [{ effect: 'allow', scopes: ['sign', 'public_keys'] }] }],
          tokens: [{ secret: TEST_TOKEN, policies: ['all'] }],
        },
      },
    });
    try {
      const signed = await signCall(signer.url, publicKey, attestation());
      expect(signed).toMatchObject({ status: 200 });
      expect(signed.text).toMatch(/^0x[0-9a-f]{192}$|"signature":"0x[0-9a-f]{192}"/);
      const slashable = await signCall(signer.url, publicKey, attestation({ head: rootOf(2) }));
      expect(slashable).toMatchObject({ status: 412, json: { reason: 'double_vote' } });
      expect(signer.output()).toContain('native');
    } finally {
      await signer.stop();
    }
  });

  it('takes the native hasher, as a checkout does: without it roots are right, and slow', async () => {
    const entry = `import { useFastestHasher } from './signer/operations/leaves.ts';
process.stdout.write(await useFastestHasher());
`;
    const app = unpacked('hasher', await bundleProgram(ROOT, { entry, inPlaceOf: new Map() }));
    const run = spawnSync(NODE_OF_IMAGES, [join(app, MAIN_FILE)], { encoding: 'utf8', env: {} });
    expect(run).toMatchObject({ status: 0, stdout: await useFastestHasher() });
    expect(run.stdout).toBe('hashtree');
  });

  it('is the same with and without the addons for musl, which older versions of npm install too', async () => {
    const entry = "import '@chainsafe/blst';\nimport '@chainsafe/hashtree';\n";
    const bundles: Bundle[] = [];
    for (const arch of ['', 'x64', 'arm64']) {
      const project = projectWithMusl(join(folder, `musl-${arch}`), arch);
      bundles.push(await bundleProgram(project, { entry, inPlaceOf: new Map() }));
    }
    expect(bundles[0]?.files.map(({ name }) => name)).toContain(`blst.linux-${process.arch}-gnu.node`);
    expect(bundles[1]).toEqual(bundles[0]);
    expect(bundles[2]).toEqual(bundles[0]);
  });

  it('starts the enclave whatever the arguments and the environment say', () => {
    const app = unpacked(
      'other',
      bundle,
      writeCompiledModule({ ceremony: CEREMONY, configuration: 'fetched', authorities: new Map() }),
    );
    for (const argv of [[], ['slashing', 'export'], ['server', '--check'], ['--help']]) {
      const env = { SVC_NETWORK: 'hoodi', SVC_CONFIG: 'x' };
      const run = spawnSync(NODE_OF_IMAGES, [join(app, 'main.mjs'), ...argv], { encoding: 'utf8', env });
      expect(run).toMatchObject({ status: 1, stdout: '', stderr: expect.stringContaining('cannot open /dev/nsm') });
    }
  });

  it('consists of files without folders and without a trace of where it was made', () => {
    const names = bundle.files.map(({ name }) => name);
    expect(names).toContain('main.mjs');
    expect(names).toContain('keystore-worker.mjs');
    expect(names).toContain('envelope-worker.mjs');
    expect(names).toContain('strongroom.node');
    expect(names.filter((name) => name.includes('/'))).toEqual([]);
    const telling = bundle.files.filter(({ data }) => data.includes(ROOT));
    expect(telling.map(({ name }) => name)).toEqual([]);
  });

  it('has no source outside enclave/, signer/, attestation/, ceremony/ and common/, and no development dependency', () => {
    const { packages } = JSON.parse(readFileSync(join(PROJECT_ROOT, 'package-lock.json'), 'utf8')) as {
      packages: Record<string, { dev?: boolean }>;
    };
    const development = Object.keys(packages).filter((path) => packages[path]?.dev === true);
    expect(development).toContain('node_modules/vitest');
    const paths = bundle.inputs.map(({ path }) => path);
    expect(paths.filter((path) => development.some((one) => path.startsWith(`${one}/`)))).toEqual([]);
    const own = paths.filter((path) => !path.startsWith('node_modules/'));
    expect(own.filter((path) => !/^(attestation|enclave|signer|ceremony|common)\//.test(path))).toEqual([
      'build/native/strongroom.node',
    ]);
    expect(own).toContain('enclave/main.ts');
    expect(own).not.toContain('enclave/compiled.ts');
  });

  it('has nothing that an enclave may never use', () => {
    const own = bundle.inputs.map(({ path }) => path);
    const absent = [
      /^service\//,
      /^signer\/slashing\/(sqlite|web3signer)\//,
      /^signer\/slashing\/noop/,
      /^signer\/signing\/bls\/(portable|open-either)/,
      /^signer\/keys\/files\//,
      /^common\/attestation\/reference-file/,
      /^common\/command-line\/(arguments|failure|help|program|terminal|violations-report|wrap)/,
      /^signer\/(tls|auth\/known-clients|http\/routes\/reload|http\/listeners\/(ports|client-certificates))/,
      /^ceremony\/(transcript|commands)\//,
      /^node_modules\/@fastify\/swagger\//,
    ];
    expect(own.filter((path) => absent.some((one) => one.test(path)))).toEqual([]);
    expect(own.length).toBeGreaterThan(300);
  });

  it('is no more of this project than a person reads: the own sources have at most 32,750 lines of code', () => {
    const texts = ownSources(bundle).map(({ path }) => readFileSync(join(PROJECT_ROOT, path), 'utf8'));
    // Neither blank nor comment alone: comments that teach cost nothing.
    const isCode = (line: string): boolean => !/^\s*($|\/\/|\/?\*)/.test(line);
    const lines = texts.reduce((sum, text) => sum + text.split('\n').filter(isCode).length, 0);
    expect(lines).toBeGreaterThan(25_000);
    expect(lines).toBeLessThanOrEqual(32_750);
  });
});

describe.runIf(withAddon)('the check of a configuration', () => {
  const check = (configuration: string): Promise<void> => {
    const compiled = writeCompiledModule({ ceremony: CEREMONY, configuration: 'baked', authorities: new Map() });
    const named = { name: 'strongroom.yaml', bytes: Buffer.from(configuration) };
    return checkConfiguration({ node: NODE_OF_IMAGES, bundle: checking.files, compiled }, named);
  };
  const problems = async (configuration: string): Promise<string> => {
    const error: unknown = await check(configuration).catch((thrown: unknown) => thrown);
    if (!(error instanceof BuildError)) throw new Error('it was accepted');
    return [error.message, ...error.details].join('\n');
  };

  it('is the signer’s own, as an enclave build: its violations fail the build', async () => {
    expect(await problems('network: minnet\n')).toMatch(/network must be one of.*strongroom\.yaml line 1/s);
    expect(await problems('surprise: 1\n')).toContain('surprise is not an option');
    expect(await problems('network: mainnet\n')).toContain('tee.platform');
  });
});

describe('what must not be in an image', () => {
  async function bundled(name: string, source: string): Promise<string> {
    const root = join(folder, name);
    mkdirSync(join(root, 'enclave'), { recursive: true });
    writeFileSync(join(root, 'enclave/main.ts'), `${source}\n`);
    symlinkSync(join(PROJECT_ROOT, 'node_modules'), join(root, 'node_modules'));
    symlinkSync(join(PROJECT_ROOT, 'package-lock.json'), join(root, 'package-lock.json'));
    const error: unknown = await bundleSigner(root).catch((thrown: unknown) => thrown);
    if (!(error instanceof BuildError)) throw new Error('it was bundled');
    return [error.message, ...error.details].join('\n');
  }

  it('a development dependency stops the build', async () => {
    expect(await bundled('development', "import 'fast-check';")).toMatch(
      /node_modules\/fast-check\/.* is of a development dependency/,
    );
  });

  it('a package that is not there, and one that is looked for at run time, stop the build', async () => {
    expect(await bundled('absent', "import 'no-such-package';")).toContain('no-such-package');
    expect(await bundled('late', "try { require('no-such-package'); } catch {}")).toContain('no-such-package');
  });

  it('a source that names a file beside it stops the build', async () => {
    const problem = await bundled('located', "new URL('./table.json', import.meta.url);");
    expect(problem).toContain('enclave/main.ts would be in an image: it names enclave/table.json');
  });

  it('an addon that was not built stops the build', async () => {
    expect(await bundled('unbuilt', '')).toContain('make image-parts');
  });

  it('an addon that is older than its sources stops the build', () => {
    const root = join(folder, 'stale');
    mkdirSync(join(root, 'build/native'), { recursive: true });
    mkdirSync(join(root, 'signer/native'), { recursive: true });
    writeFileSync(join(root, ADDON.path), 'addon');
    writeFileSync(join(root, 'signer/native/addon.c'), '');
    utimesSync(join(root, 'signer/native/addon.c'), 1000, 1000);
    utimesSync(join(root, ADDON.path), 1001, 1001);
    expect(readCompiledPart(root, ADDON).toString()).toBe('addon');
    utimesSync(join(root, ADDON.path), 999, 999);
    expect(() => readCompiledPart(root, ADDON)).toThrow('build/native/strongroom.node is older than its sources');
  });
});

describe('the compiled module', () => {
  const compiled = { ceremony: CEREMONY, configuration: 'baked', authorities: new Map() } as const;

  it('says the same path of the configuration as the module it takes the place of', () => {
    expect(CONFIGURATION_PATH_OF_IMAGES).toBe(CONFIGURATION_PATH);
    expect(existsSync(join(PROJECT_ROOT, 'enclave/compiled.ts'))).toBe(true);
  });

  it('is read again, and only as it was written', () => {
    const [one, other] = ['one', 'other'].map((name) => readFileSync(makeCertificate(folder, name).cert, 'utf8'));
    const authorities = new Map([
      ['a.example.org', [one ?? '', other ?? '']],
      ['b.example.org', [one ?? '']],
    ]);
    const module = writeCompiledModule({ ...compiled, authorities });
    expect(readCompiledModule(module)).toEqual({ ...compiled, authorities });
    expect(writeCompiledModule({ ...compiled, authorities: new Map([...authorities].toReversed()) })).toEqual(module);
    const text = module.toString();
    for (const changed of [
      text.replace('"generation":1', '"generation": 1'),
      text.replace('};\n', '};\nprocess.exit();\n'),
      text.replace('baked', 'elsewhere'),
      text.replace('a.example.org', 'c.example.org'),
      text.replace('a.example.org', 'A.example.org'),
      text.replace('a.example.org', 'a.example.org.'),
      text.replace('a.example.org', '127.0.0.1'),
      text.replace('BEGIN', 'BEGINS'),
      text.replace(/"b\.example\.org":\[.*?\]/, '"b.example.org":[]'),
      `${text} `,
      '',
    ]) {
      expect(changed).not.toBe(text);
      expect(readCompiledModule(Buffer.from(changed))).toBeUndefined();
    }
  });
});
