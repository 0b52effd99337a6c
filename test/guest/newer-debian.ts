// Debian 13 as a source of packages, on a machine that runs an earlier one: from the mirror that this machine's apt
// uses, in lists of its own. The machine's own sources stay as they are, and nothing is installed. It trusts what apt
// verifies against Debian's archive keys.

import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { GuestUnavailable, run } from './tools.ts';

/** Linux 6.12, whose NSM driver is the mainline one (since 6.8), and QEMU 10. */
const CODENAME = 'trixie';
const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg';

export interface NewerDebian {
  sourceVersion(name: string): string;
  packageVersion(name: string): string;
  /** The package that one without a version in its name depends on. */
  dependencyOf(name: string, pattern: RegExp): string;
  unpack(name: string, into: string): void;
  /** Unpacks a source package, with Debian's patches. */
  unpackSource(name: string, into: string): void;
}

/** @param folder for apt's lists @throws GuestUnavailable */
export function openNewerDebian(folder: string): NewerDebian {
  const options = isolated(folder);
  run('apt-get', [...options, 'update', '-q']);
  const ask = (...args: string[]): string => run('apt-cache', [...options, ...args]).toString();
  return {
    sourceVersion: (name) => found(/^Version: (\S+)$/m, ask('showsrc', '--only-source', name), `the source of ${name}`),
    packageVersion: (name) => found(/^Version: (\S+)$/m, ask('show', '--no-all-versions', name), `the package ${name}`),
    dependencyOf: (name, pattern) => found(pattern, ask('depends', name), `the package that ${name} stands for`),
    unpack(name, into) {
      mkdirSync(into, { recursive: true });
      run('apt-get', [...options, 'download', '-q', name], { cwd: into });
      run('dpkg-deb', ['-x', only(into, /\.deb$/), 'root'], { cwd: into });
    },
    unpackSource(name, into) {
      mkdirSync(into, { recursive: true });
      // apt has verified the files; dpkg-source would look for the uploader's key.
      run('apt-get', [...options, 'source', '-q', '--download-only', name], { cwd: into });
      run('dpkg-source', ['--no-check', '-x', only(into, /\.dsc$/), 'source'], { cwd: into });
    },
  };
}

function isolated(folder: string): readonly string[] {
  for (const name of ['lists/partial', 'archives/partial']) mkdirSync(join(folder, name), { recursive: true });
  const signedBy = existsSync(KEYRING) ? `[signed-by=${KEYRING}] ` : '';
  const sources = ['deb', 'deb-src'].map((kind) => `${kind} ${signedBy}${mirror()} ${CODENAME} main\n`);
  writeFileSync(join(folder, 'sources.list'), sources.join(''));
  const settings = {
    'Dir::Etc::sourcelist': join(folder, 'sources.list'),
    'Dir::Etc::sourceparts': '/dev/null',
    'Dir::State::lists': join(folder, 'lists'),
    'Dir::Cache::archives': join(folder, 'archives'),
    'Dir::Cache::pkgcache': '',
    'Dir::Cache::srcpkgcache': '',
  };
  return Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`]);
}

/** Where this machine's apt finds Debian's main archive. */
function mirror(): string {
  const format = '$(ORIGIN)|$(LABEL)|$(REPO_URI)';
  const lines = run('apt-get', ['indextargets', '--format', format, 'Created-By: Packages']).toString().split('\n');
  return found(/^Debian\|Debian\|(\S+)$/m, lines.join('\n'), 'Debian’s archive among the sources of apt');
}

function found(pattern: RegExp, text: string, what: string): string {
  const value = pattern.exec(text)?.[1];
  if (value === undefined) throw new GuestUnavailable(`this machine’s apt does not know ${what}`);
  return value;
}

function only(folder: string, pattern: RegExp): string {
  const [name, another] = readdirSync(folder).filter((entry) => pattern.test(entry));
  if (name === undefined || another !== undefined) throw new GuestUnavailable(`${folder} does not have one ${pattern}`);
  return name;
}
