// What somebody installs: made by the program that makes releases, unpacked, and started as it is, with nothing of this
// checkout beside it. Two releases from two folders are the same bytes.

import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { VERSION } from '../../enclave/api/version.ts';
import { type RunningSigner, type SignerOptions, startSigner } from '../../rehearsal/signer.ts';
import { sha256 } from '../eif/image-program.ts';
import { copyOfCopy, copyProject } from '../eif/project-copy.ts';
import { addonForTests } from '../support/addon.ts';
import { NEEDS_OTHER_USER, otherUser } from '../support/nobody.ts';
import { attestation, rootOf } from '../support/requests.ts';
import {
  askAs,
  DAPPNODE_HOST,
  DEVNET_ROOT,
  dappnode,
  ethDocker,
  ethereumPackage,
  expectVotes,
  made,
  ON_FREE_PORTS,
  TOOL_KEY,
  writeDevnet,
  writeToolKeystore,
} from '../support/web3signer-tools.ts';
import { enter, NO_CHROOT, type Volume } from './chroot.ts';
import { COMMIT, makeRelease, TIME_SECONDS, type UnpackedImage, unpackImage } from './made-release.ts';

const withAddon = addonForTests() && process.platform === 'linux' && process.arch === 'x64';
const user = otherUser();
const NAME = `strongroom-${VERSION}-linux-x86_64`;
const IMAGE_USER = 10_000;
/** Behind the title of what is skipped. */
const why = (reason: string | undefined): string => (reason === undefined ? '' : ` (${reason})`);

let folder = '';
let project = '';
let release = '';
let tree = '';
let image: UnpackedImage;
let signer: RunningSigner | undefined;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-release-'));
  chmodSync(folder, 0o755);
  if (!withAddon) return;
  project = join(folder, 'project');
  copyProject(project);
  release = join(folder, 'release');
  makeRelease(project, release);
  execFileSync('tar', ['-xzf', join(release, `${NAME}.tar.gz`), '-C', made(folder, 'unpacked')]);
  tree = join(folder, 'unpacked', NAME);
  image = unpackImage(join(release, `${NAME}.oci.tar`), made(folder, 'image'));
});
afterAll(() => rmSync(folder, { recursive: true }));
afterEach(async () => {
  await signer?.stop();
  signer = undefined;
});

function filesIn(path: string): string[] {
  return execFileSync('find', [path, '!', '-type', 'd', '-printf', '%P\n'], { encoding: 'utf8' }).trimEnd().split('\n');
}

async function start(options: SignerOptions): Promise<RunningSigner> {
  signer = await startSigner(options);
  return signer;
}

/** Ends with the sums that it says. */
function sumsOf(path: string): string {
  execFileSync('sha256sum', ['--check', '--strict', '--quiet', 'SHA256SUMS'], { cwd: path });
  return readFileSync(join(path, 'SHA256SUMS'), 'utf8');
}

describe.runIf(withAddon)('two releases', () => {
  it.skipIf(user === undefined)(
    `from folders of other names, by other users, under other settings, are the same bytes${why(user === undefined ? NEEDS_OTHER_USER : undefined)}`,
    () => {
      const other = join(folder, "else where's", 'deeper');
      copyOfCopy(project, other);
      const to = made(folder, 'again');
      chmodSync(to, 0o777);
      const env = { TZ: 'Pacific/Chatham', LC_ALL: 'tr_TR.UTF-8', HOME: '/nonexistent', SSL_CERT_FILE: '/dev/null' };
      const names = makeRelease(other, to, { env, umask: '077', ...(user === undefined ? {} : { user }) });
      expect(names).toEqual(readdirSync(release).sort());
      expect(sumsOf(to)).toBe(sumsOf(release));
    },
  );
});

describe.runIf(withAddon)('the tarball', () => {
  it('has what runs, and no sources, tests, packages, compilers or databases', () => {
    const files = filesIn(tree);
    expect(files).toEqual(expect.arrayContaining(['bin/strongroom', 'app/main.mjs', 'app/strongroom.node']));
    expect(files).toEqual(expect.arrayContaining(['runtime/node', 'runtime/libc.so.6', 'share/ca-certificates.crt']));
    expect(files.filter((name) => /\.(?:ts|c|h|mk)$|node_modules|postgres|dynoxide|esbuild|vitest/.test(name))).toEqual(
      [],
    );
    expect(files.length).toBeLessThan(120);
    const all = files.map((name) => readFileSync(join(tree, name)));
    expect(all.some((data) => data.includes(folder) || data.includes(process.cwd()))).toBe(false);
  });

  it('signs, and says what it is, in an empty environment', async () => {
    const run = spawnSync(join(tree, 'bin/strongroom'), ['--version'], { encoding: 'utf8', env: {} });
    expect(run).toMatchObject({ status: 0, stdout: `strongroom ${VERSION}\n`, stderr: '' });
    const root = made(folder, 'devnet');
    writeDevnet(root, true);
    const program: [string] = [join(tree, 'bin/strongroom')];
    await expectVotes(
      await start({ folder: root, command: ethereumPackage(root), env: ON_FREE_PORTS, program }),
      DEVNET_ROOT,
    );
    expect(signer?.output()).toContain('native');
  });

  it('refuses a debugger, and says where that is which needs the sources', () => {
    const run = (env: NodeJS.ProcessEnv, ...args: readonly string[]) =>
      spawnSync(join(tree, 'bin/strongroom'), args, { encoding: 'utf8', env });
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
  it('says what it is, and its parts are what they are called', () => {
    const { configuration, manifest, layerFiles } = image;
    expect(configuration).toMatchObject({ architecture: 'amd64', os: 'linux', created: '2026-09-21T14:13:20Z' });
    expect(configuration.config).toMatchObject({ User: `${IMAGE_USER}:${IMAGE_USER}`, StopSignal: 'SIGTERM' });
    expect(configuration.config.Labels).toMatchObject({
      'org.opencontainers.image.version': VERSION,
      'org.opencontainers.image.revision': COMMIT,
    });
    const blobs = layerFiles.map((path) => readFileSync(path));
    expect(blobs.map((blob) => `sha256:${sha256(blob)}`)).toEqual(manifest.layers.map(({ digest }) => digest));
    expect(blobs.map(({ length }) => length)).toEqual(manifest.layers.map(({ size }) => size));
    const contents = blobs.map((blob) => `sha256:${sha256(gunzipSync(blob))}`);
    expect(contents).toEqual(configuration.rootfs.diff_ids);
  });

  it('has sorted names, one time, and owners by number', () => {
    for (const layer of image.layerFiles) {
      const listed = execFileSync('tar', ['-tvzf', layer, '--numeric-owner', '--full-time', '--utc'], {
        encoding: 'utf8',
      });
      const rows = [...listed.matchAll(/^\S+ (\d+\/\d+) +\d+ (\S+ \S+) (\S+)/gm)].map(([, ...row]) => row);
      expect(rows.length).toBeGreaterThan(5);
      const names = rows.map(([, , name = '']) => name.replace(/\/$/, ''));
      expect(names).toEqual(names.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))));
      expect(new Set(rows.map(([, time]) => Date.parse(`${time}Z`)))).toEqual(new Set([TIME_SECONDS * 1000]));
      expect(rows.every(([owner = '']) => ['0/0', `${IMAGE_USER}/${IMAGE_USER}`].includes(owner))).toBe(true);
    }
  });

  it('has no shell, nothing that gives rights, and no sources', () => {
    const files = filesIn(image.root);
    const programs = execFileSync('find', [image.root, '-type', 'f', '-perm', '/111', '-printf', '%P\n'], {
      encoding: 'utf8',
    });
    const names = programs
      .trimEnd()
      .split('\n')
      .filter((name) => !/\.so(?:\.\d+)*$/.test(name));
    expect(names.sort()).toEqual(['opt/strongroom/bin/strongroom', 'opt/strongroom/runtime/node']);
    const privileged = execFileSync('find', [image.root, '-type', 'f', '-perm', '/6000']).toString();
    expect([privileged, files.filter((name) => /\.(?:ts|c|h)$|node_modules/.test(name))]).toEqual(['', []]);
  });

  describe.skipIf(NO_CHROOT !== undefined)(`in a file system that is only read, as its user${why(NO_CHROOT)}`, () => {
    /** @param name of a folder for the volumes */
    function inside(name: string, program: string, volumes: readonly string[]): [string, ...string[]] {
      const given = volumes.map((to): Volume => ({ from: made(join(folder, name), to), to }));
      execFileSync('chown', ['-R', `${IMAGE_USER}:${IMAGE_USER}`, ...given.map(({ from }) => from)]);
      const ports = Object.entries(ON_FREE_PORTS).map(([key, value]) => `${key}=${value}`);
      const env = [...image.configuration.config.Env, ...ports];
      return [...enter({ root: image.root, volumes: given, user: IMAGE_USER, env }), program];
    }
    const entry = () => image.configuration.config.Entrypoint[0] ?? '';
    const run = ([command, ...args]: readonly [string, ...string[]], argv: readonly string[]) =>
      spawnSync(command, [...args, ...argv], { encoding: 'utf8' });

    it('can write nothing but its volumes', () => {
      const program = inside('written', '/opt/strongroom/runtime/ld-linux-x86-64.so.2', ['/data']);
      const probe = `const { writeFileSync } = require('node:fs');
const tried = ['/data/x', '/x', '/tmp/x', '/opt/strongroom/app/x'].map((path) => {
  try { writeFileSync(path, ''); return 'written'; } catch (error) { return error.code; }
});
console.log(process.getuid(), process.getgid(), process.getgroups().length, tried.join());`;
      const node = ['--library-path', '/opt/strongroom/runtime', '/opt/strongroom/runtime/node', '--eval', probe];
      expect(run(program, node)).toMatchObject({ status: 0, stdout: '10000 10000 1 written,EROFS,EROFS,EROFS\n' });
    });

    it('ethereum-package’s arguments start a signer that signs', async () => {
      writeDevnet(join(folder, 'ep'), true);
      const program = inside('ep', entry(), ['/network-configs', '/keystores']);
      await expectVotes(await start({ command: ethereumPackage(''), program }), DEVNET_ROOT);
    });

    it('eth-docker’s arguments start a signer that signs, once there is a record', async () => {
      writeToolKeystore(made(join(folder, 'ed'), 'var/lib/web3signer/keys'));
      const program = inside('ed', entry(), ['/var/lib/web3signer']);
      const command = ethDocker('/var/lib/web3signer');
      const refused = run(program, command);
      expect(refused).toMatchObject({ status: 78, stderr: expect.stringContaining('strongroom slashing import') });
      expect(run(program, [...command, 'watermark-repair', '--slot=352', '--epoch=11'])).toMatchObject({ status: 0 });
      await expectVotes(await start({ command, program }));
    });

    it('DAppNode’s arguments, by the path of Web3Signer’s program, start a signer that signs', async () => {
      writeToolKeystore(made(join(folder, 'dn'), 'data/keyfiles'));
      const program = inside('dn', '/opt/web3signer/bin/web3signer', ['/data']);
      const command = dappnode('');
      expect(run(program, [...command, 'watermark-repair', '--slot=352', '--epoch=11'])).toMatchObject({ status: 0 });
      const { url } = await start({ command, program });
      const sign = `${url}/api/v1/eth2/sign/${TOOL_KEY}`;
      expect((await askAs(DAPPNODE_HOST, sign, attestation({ target: 12 }))).statusCode).toBe(200);
      expect((await askAs(DAPPNODE_HOST, sign, attestation({ target: 12, head: rootOf(2) }))).statusCode).toBe(412);
    });

    it('listens on all addresses of its container, as Web3Signer’s image does', () => {
      const options = ['--key-store-path=/data', '--metrics-enabled', '--print-config', 'eth2', '--network=hoodi'];
      const [unshare, ...rest] = inside('all', entry(), ['/data']);
      const printed = run([unshare, ...rest.map((word) => word.replaceAll(/'SVC_[^']*'/g, ''))], options);
      expect(printed.status).toBe(0);
      expect(printed.stdout.match(/listen_address: "0\.0\.0\.0"/g)).toHaveLength(2);
    });
  });
});

describe.runIf(withAddon)('the folder of a release', () => {
  it('is not emptied when it is something else', () => {
    const precious = made(folder, 'precious');
    writeFileSync(join(precious, 'keys.json'), 'mine');
    expect(() => makeRelease(project, precious)).toThrow('precious is not empty, and no release');
    expect(readFileSync(join(precious, 'keys.json'), 'utf8')).toBe('mine');
  });
});
