// How a checkout gets npm: the system's, or that of an official archive of Node.js, by its digest. The archive here is
// made by the test, and comes from a server of the test; the scripts are the real ones.

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
const TOOLS = ['sh', 'curl', 'tar', 'gzip', 'sha256sum', 'uname', 'sed', 'grep', 'dirname', 'mkdir', 'mv', 'rm'];
const MORE_TOOLS = ['ls', 'wc', 'date', 'sleep', 'cat'];
const PLATFORM = `${process.platform}-${process.arch}`;
const NAME = `node-v99.1.0-${PLATFORM}`;

let folder: string;
let server: Server;
let mirror: string;
let asked: string[];
let served: Buffer;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-checkout-'));
  mkdirSync(join(folder, 'tools/checkout'), { recursive: true });
  for (const name of ['npm', 'install']) copyFileSync(join(SCRIPTS, name), join(folder, 'tools/checkout', name));
  mkdirSync(join(folder, 'bin'));
  for (const tool of [...TOOLS, ...MORE_TOOLS]) {
    const path = execFileSync('sh', ['-c', `command -v ${tool}`], { encoding: 'utf8' }).trim();
    symlinkSync(path, join(folder, 'bin', tool));
  }
  served = archiveOf('echo "npm of the archive: $*"\nexit $NPM_EXIT\n');
  pin(served);
  asked = [];
  server = createServer((request, response) => {
    asked.push(request.url ?? '');
    response.end(served);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  mirror = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterEach(() => {
  server.close();
  rmSync(folder, { recursive: true, force: true });
});

/** An archive whose `node` is a shell script, which is given npm-cli.js and the arguments. */
function archiveOf(npm: string): Buffer {
  const tree = join(folder, 'tree');
  mkdirSync(join(tree, NAME, 'bin'), { recursive: true });
  mkdirSync(join(tree, NAME, 'lib/node_modules/npm/bin'), { recursive: true });
  writeFileSync(join(tree, NAME, 'lib/node_modules/npm/bin/npm-cli.js'), '');
  writeFileSync(join(tree, NAME, 'bin/node'), `#!/bin/sh\nshift\n${npm}`, { mode: 0o755 });
  execFileSync('tar', ['-czf', join(folder, 'node.tar.gz'), '-C', tree, NAME]);
  return readFileSync(join(folder, 'node.tar.gz'));
}

function pin(archive: Buffer): void {
  const digest = createHash('sha256').update(archive).digest('hex');
  writeFileSync(join(folder, 'tools/checkout/node.sha256'), `${digest}  ${NAME}.tar.gz\n`);
}

function run(script: 'npm' | 'install', argv: readonly string[] = [], env: Record<string, string> = {}) {
  return new Promise<{ readonly code: number; readonly stdout: string; readonly stderr: string }>((resolve) => {
    const given = { PATH: join(folder, 'bin'), NODEJS_ORG_MIRROR: mirror, NPM_EXIT: '0', ...env };
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
  ])('is that of the pinned archive where %s, which is fetched once', async (_, version) => {
    if (version !== undefined) installSystemNode(version);
    const first = await run('npm', ['ci', '--x']);
    expect(first).toMatchObject({ code: 0, stdout: 'npm of the archive: ci --x\n' });
    expect(first.stderr).toBe(`fetching Node.js v99.1.0 with its npm (60 MB): ${mirror}/v99.1.0/${NAME}.tar.gz\n`);
    expect(await run('npm', ['again'])).toMatchObject({ code: 0, stdout: 'npm of the archive: again\n', stderr: '' });
    expect(asked).toEqual([`/v99.1.0/${NAME}.tar.gz`]);
    expect(readdirSync(join(folder, 'build/node'))).toEqual([NAME]);
  });

  it('an archive of another digest is not unpacked, and nothing of it stays', async () => {
    served = archiveOf('echo "not what was pinned"\n');
    const { code, stdout, stderr } = await run('npm', ['ci']);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(/is not Node\.js v99\.1\.0: its SHA-256 is [0-9a-f]{64}, and [0-9a-f]{64} is pinned/);
    expect(readdirSync(join(folder, 'build/node'))).toEqual([]);
  });

  it('a server that has no archive is said, with what else there is', async () => {
    const { code, stderr } = await run('npm', ['ci'], { NODEJS_ORG_MIRROR: 'http://127.0.0.1:1' });
    expect(code).toBe(1);
    expect(stderr).toContain('Install npm with Node.js 20 or later instead, or name a mirror in NODEJS_ORG_MIRROR');
    expect(readdirSync(join(folder, 'build/node'))).toEqual([]);
  });

  it('pins the Node.js that package.json pins, for every platform that it has', () => {
    const { optionalDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
      optionalDependencies: Record<string, string>;
    };
    const packages = Object.entries(optionalDependencies).filter(([name]) => name.startsWith('node-'));
    const archives = packages.map(([name, version]) => `node-v${version}-${name.replace(/^node-(bin-)?/, '')}.tar.gz`);
    const lines = readFileSync(join(SCRIPTS, 'node.sha256'), 'utf8').trim().split('\n');
    expect(lines.map((line) => line.split('  ')[1]).sort()).toEqual(archives.sort());
    for (const line of lines) expect(line).toMatch(/^[0-9a-f]{64} {2}/);
  });
});

describe('the installation of the packages', () => {
  it('ends as npm does', async () => {
    expect(await run('install')).toMatchObject({
      code: 0,
      stdout: 'npm of the archive: ci --loglevel=error --no-progress\n',
    });
    expect((await run('install', [], { NPM_EXIT: '7' })).code).toBe(7);
  });

  it('that takes long says in a pipe each ten seconds how far it is', async () => {
    served = archiveOf('mkdir -p node_modules/one node_modules/@two/three\nwhile [ ! -e seen ]; do sleep 0.1; done\n');
    pin(served);
    const env = { PATH: join(folder, 'bin'), NODEJS_ORG_MIRROR: mirror };
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
