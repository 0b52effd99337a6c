// The programs of this machine that the guest needs: QEMU, and what takes Debian's packages apart. Missing ones are
// installed from Debian's archive by root, and named to everybody else.

import { spawnSync } from 'node:child_process';

/** A machine that cannot run the guest: what is missing, and what to do about it. */
export class GuestUnavailable extends Error {
  constructor(problem: string) {
    super(problem);
    this.name = 'GuestUnavailable';
  }
}

/** A program that complains on standard output does so at its end. */
const MAX_REASON_CHARACTERS = 600;

/** Debian's package of each program, and what it is for. */
const TOOLS = new Map([
  ['qemu-system-x86_64', { debianPackage: 'qemu-system-x86', why: 'emulates the machine that the image boots on' }],
  ['openssl', { debianPackage: 'openssl', why: 'makes test certificates' }],
  ['xz', { debianPackage: 'xz-utils', why: "unpacks the kernel's modules" }],
  ['ldd', { debianPackage: 'libc-bin', why: 'finds the libraries that Node.js needs' }],
]);

/** What compiles the addon and the first process. */
const COMPILER_PACKAGES = ['gcc', 'libc6-dev'];

/** @param withCompiler whether a C compiler is needed too @throws GuestUnavailable */
export function requireTools({ withCompiler = false } = {}): void {
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    throw new GuestUnavailable(
      `the guest runs this machine's Node.js on Debian's x86-64 kernel: not on ${process.platform} ${process.arch}`,
    );
  }
  for (const tool of ['apt-get', 'apt-cache', 'dpkg-deb']) {
    if (!isThere(tool)) throw new GuestUnavailable(`${tool} is not here: the guest is made of Debian's packages`);
  }
  const missing = [...TOOLS].filter(([tool]) => !isThere(tool)).map(([, { debianPackage }]) => debianPackage);
  if (withCompiler && !isThere('cc')) missing.push(...COMPILER_PACKAGES);
  if (missing.length > 0) install(missing);
}

/** Debian's packages that have to be installed. @throws GuestUnavailable */
export function requirePackages(names: readonly string[]): void {
  const missing = names.filter((name) => spawnSync('dpkg-query', ['-L', name]).status !== 0);
  if (missing.length > 0) install(missing);
}

export interface RunOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly timeoutMs?: number;
}

/** Run a program to its end. @returns stdout @throws GuestUnavailable with what it said */
export function run(program: string, args: readonly string[], { cwd, env: more, timeoutMs }: RunOptions = {}): Buffer {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C', ...more };
  const ended = spawnSync(program, args, {
    cwd,
    env,
    maxBuffer: 1 << 28,
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: timeoutMs,
  });
  if (ended.status === 0) return ended.stdout;
  const said = `${ended.stderr ?? ''}`.trim() || `${ended.stdout ?? ''}`.trim().slice(-MAX_REASON_CHARACTERS);
  throw new GuestUnavailable(`${program} ${args.join(' ')} failed: ${ended.error?.message ?? said}`);
}

export function isRoot(): boolean {
  return process.getuid?.() === 0;
}

export function isThere(program: string): boolean {
  return spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;
}

/** Said before anything is installed: nobody finds packages on the machine that nothing spoke of. */
export function announcement(packages: readonly string[]): string {
  const whys = new Map([...TOOLS.values()].map(({ debianPackage, why }) => [debianPackage, why]));
  const lines = packages.map((name) => `  ${name}: ${whys.get(name) ?? 'the guest is made of it'}`);
  return [
    'Installed from Debian now (apt-get install --no-install-recommends), with what they depend on:',
    ...lines,
  ].join('\n');
}

function install(packages: readonly string[]): void {
  const command = ['install', '-y', '-q', '--no-install-recommends', ...packages];
  if (!isRoot())
    throw new GuestUnavailable(`missing: ${packages.join(', ')}; run as root: apt-get ${command.join(' ')}`);
  process.stderr.write(`${announcement(packages)}\n`);
  run('apt-get', ['update', '-q']);
  run('apt-get', command);
}
