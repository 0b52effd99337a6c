// What somebody installs: made by the program that makes releases, unpacked, and started as it is, with nothing of this
// checkout beside it. Two releases from two folders are the same bytes.

import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { cacheOfNpm } from '../../eif/packages.ts';
import { startSigner } from '../../rehearsal/signer.ts';
import { VERSION } from '../../signer/api/version.ts';
import { copyOfCopy } from '../eif/project-copy.ts';
import { addonForTests, PROJECT_ROOT } from '../support/addon.ts';
import { otherUser } from '../support/nobody.ts';
import { IS_WHOLE } from '../support/scale.ts';
import {
  DEVNET_ROOT,
  ethereumPackage,
  expectVotes,
  made as folderAt,
  ON_FREE_PORTS,
  writeDevnet,
} from '../support/web3signer-tools.ts';
import { firstStepsTests } from './first-steps-tests.ts';
import { imageTests } from './image-tests.ts';
import { installedTests } from './installed-tests.ts';
import { COMMIT, filesIn, type MadeRelease, makeForTests, makeRelease } from './made-release.ts';
import { packageTests } from './package-tests.ts';
import { paperTests } from './paper-tests.ts';
import { tutorialTests } from './tutorial-tests.ts';

const withAddon = addonForTests() && process.platform === 'linux' && process.arch === 'x64';
const user = otherUser();

let made: MadeRelease | undefined;
const release = (): MadeRelease => {
  if (made === undefined) throw new Error('there is no release');
  return made;
};

beforeAll(() => {
  if (withAddon) made = makeForTests();
});
afterAll(() => {
  if (made !== undefined) rmSync(made.folder, { recursive: true });
});

/** Ends with the sums that it says. */
function sumsOf(path: string): string {
  execFileSync('sha256sum', ['--check', '--strict', '--quiet', 'SHA256SUMS'], { cwd: path });
  return readFileSync(join(path, 'SHA256SUMS'), 'utf8');
}

/** At the small size the second release has no pcrs.json, and so another provenance: test/eif builds images twice. */
const isInBoth = (line: string): boolean => IS_WHOLE || !/\b(?:pcrs|provenance)\.json$/.test(line);

/** npm's tarballs, which packages are held against, where another user reads them, too. */
function readableCache(to: string): string {
  const below = '_cacache/content-v2/sha512';
  const from = join(cacheOfNpm(PROJECT_ROOT), below);
  if (existsSync(from)) cpSync(from, join(to, below), { recursive: true });
  execFileSync('chmod', ['-R', 'a+rX', to]);
  return to;
}

describe.runIf(withAddon)('two releases', () => {
  it.skipIf(user === undefined)(
    'from folders of other names, by other users, under other settings, are the same bytes',
    () => {
      const { folder, project, kernel } = release();
      const other = join(folder, "else where's", 'deeper');
      copyOfCopy(project, other);
      const to = folderAt(folder, 'again');
      chmodSync(to, 0o777);
      const env = {
        ...(IS_WHOLE ? { npm_config_cache: readableCache(folderAt(folder, 'npm')) } : {}),
        TZ: 'Pacific/Chatham',
        LC_ALL: 'tr_TR.UTF-8',
        HOME: '/nonexistent',
        SSL_CERT_FILE: '/dev/null',
      };
      const options = { env, umask: '077', ...(user === undefined ? {} : { user }) };
      const names = makeRelease(other, to, IS_WHOLE ? kernel : undefined, options);
      expect(names.filter(isInBoth)).toEqual(readdirSync(release().release).sort().filter(isInBoth));
      const [again, first] = [to, release().release].map((path) => sumsOf(path).split('\n').filter(isInBoth));
      expect(again).toEqual(first);
      expect(again).toContainEqual(expect.stringMatching(/\.tar\.gz$/));
    },
  );
});

describe.runIf(withAddon)('the tarball', () => {
  it('has what runs, and no sources, tests, packages, compilers or databases', () => {
    const { folder, tree } = release();
    const files = filesIn(tree);
    expect(files).toEqual(expect.arrayContaining(['bin/strongroom', 'app/main.mjs', 'app/strongroom.node']));
    expect(files).toEqual(expect.arrayContaining(['runtime/node', 'runtime/libc.so.6', 'share/ca-certificates.crt']));
    const programs = files.filter((name) => !/^(?:docs|deploy)\//.test(name));
    expect(files.filter((name) => /\.(?:ts|c|h|mk)$/.test(name))).toEqual([]);
    expect(programs.filter((name) => /node_modules|postgres|dynoxide|esbuild|vitest/.test(name))).toEqual([]);
    // Modules of the bundle, in one folder; how many there are is the bundler's choice.
    const others = files.filter((name) => !/^app\/[\w.-]+\.(?:mjs|node)$/.test(name));
    expect([...new Set(others.map((name) => name.replace(/\/.*/, '')))].sort()).toEqual(
      [
        ...['CHANGELOG.md', 'CONTRIBUTING.md', 'NOTICE', 'README.md', 'SECURITY.md', 'sbom.cdx.json'],
        ...['bin', 'deploy', 'docs', 'parent-proxy', 'runtime', 'share', 'systemd'],
      ].sort(),
    );
    const all = files.map((name) => readFileSync(join(tree, name)));
    expect(all.some((data) => data.includes(folder) || data.includes(process.cwd()))).toBe(false);
  });

  it('signs, and says what it is, in an empty environment', async () => {
    const { folder, tree } = release();
    const run = spawnSync(join(tree, 'bin/strongroom'), ['--version'], { encoding: 'utf8', env: {} });
    expect(run).toMatchObject({ status: 0, stdout: `strongroom ${VERSION}, commit ${COMMIT}\n`, stderr: '' });
    const root = folderAt(folder, 'devnet');
    writeDevnet(root, true);
    const program: [string] = [join(tree, 'bin/strongroom')];
    const signer = await startSigner({ folder: root, command: ethereumPackage(root), env: ON_FREE_PORTS, program });
    try {
      await expectVotes(signer, DEVNET_ROOT);
      expect(signer.output()).toContain('native');
      const metrics = await (await fetch(signer.metricsUrl)).text();
      expect(metrics).toContain(`\nsvc_build_info{version="${VERSION}",commit="${COMMIT}"} 1\n`);
    } finally {
      await signer.stop();
    }
  });

  it('refuses a debugger, and says where that is which needs the sources', () => {
    const run = (env: NodeJS.ProcessEnv, ...args: readonly string[]) =>
      spawnSync(join(release().tree, 'bin/strongroom'), args, { encoding: 'utf8', env });
    const debugged = run({ NODE_OPTIONS: '--inspect=0' }, '--version');
    expect(debugged).toMatchObject({
      status: 1,
      stdout: '',
      stderr: expect.stringContaining('must not open a debugger'),
    });
    const built = run({}, 'eif', 'build');
    expect(built).toMatchObject({ status: 1, stderr: expect.stringContaining('check out the tag of this release') });
    const rehearsed = run({}, 'ceremony', 'rehearse', 'ceremony.yaml');
    expect(rehearsed).toMatchObject({ status: 1, stderr: expect.stringContaining('checkout of the sources') });
  });
});

describe.runIf(withAddon)('the image', () => {
  imageTests(release);
});
describe.runIf(withAddon)('what is installed', () => {
  installedTests(release);
});
describe.runIf(withAddon)('the first steps', () => {
  firstStepsTests(release);
});
describe.runIf(withAddon)('the papers', () => {
  paperTests(release);
});
describe.runIf(withAddon)('the package', () => {
  packageTests(release);
});
describe.runIf(withAddon)('the tutorial', () => {
  tutorialTests(release);
});

describe.runIf(withAddon)('the folder of a release', () => {
  it('is not emptied when it is something else', () => {
    const { folder, project, kernel } = release();
    const precious = folderAt(folder, 'precious');
    writeFileSync(join(precious, 'keys.json'), 'mine');
    expect(() => makeRelease(project, precious, kernel)).toThrow('precious is not empty, and no release');
    expect(readFileSync(join(precious, 'keys.json'), 'utf8')).toBe('mine');
  });
});
