// Node.js with what is inside it, and the libraries of the host's distribution. Which package a library is of is asked
// of dpkg: on another host no release is made, because nobody would know what is in it.

import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { BuildError, readImageInput } from '../../../eif/inputs.ts';
import type { Library } from '../../../eif/libraries.ts';
import { sha256Hex } from '../../../eif/measure.ts';
import type { NodeBinary } from '../../../eif/node-binary.ts';
import type { Component, LicenceText } from './component.ts';

/** Kept by Node.js for addons, and no software. */
const NOT_SOFTWARE = ['node', 'modules', 'napi', 'unicode', 'cldr', 'tz'];
const LIST_VERSIONS = 'process.stdout.write(JSON.stringify(process.versions))';

/** By Debian's source packages, whose copyright files are long and are among the texts. */
const LICENCES: readonly (readonly [RegExp, string])[] = [
  [/^glibc$/, 'LGPL-2.1-or-later'],
  [/^gcc-\d+$/, 'GPL-3.0-or-later WITH GCC-exception-3.1'],
];
const LINKED_IN = 'libc6-dev';
const COMMON_TEXTS = /\/usr\/share\/common-licenses\/([A-Z]+-[\d.]*\d)/g;

export function nodeOf(root: string, node: NodeBinary): Component[] {
  // Nothing of this process's environment: it could add options.
  const listed = execFileSync(join(root, node.path), ['--eval', LIST_VERSIONS], { env: {}, encoding: 'utf8' });
  const versions = JSON.parse(listed) as Record<string, string>;
  const parts = Object.entries(versions).filter(([name, version]) => !NOT_SOFTWARE.includes(name) && version !== '');
  const licence = join(dirname(dirname(join(root, node.path))), 'LICENSE');
  const version = versions['node'] ?? '';
  return [
    {
      type: 'platform',
      name: 'node',
      version,
      purl: `pkg:generic/node@${version}`,
      hash: { alg: 'SHA-256', content: sha256Hex(node.data) },
      licence: 'MIT',
      texts: [{ from: 'LICENSE', text: readImageInput(licence, 'the licence of Node.js').toString('utf8') }],
      remark: 'The hash is of bin/node. Its licence file has the licences of what is inside it, too.',
    },
    ...parts.map(([name, partVersion]): Component => {
      const remark = `Inside Node.js ${version}, whose licence file has its licence.`;
      const none = { purl: undefined, hash: undefined, licence: undefined, texts: [] };
      return { type: 'library', name, version: partVersion, ...none, remark };
    }),
  ];
}

export function librariesOf(libraries: readonly Library[]): Component[] {
  return [
    ...libraries.map(({ path, data }) => ({
      ...ofPackage(packageWith(path), `The file ${path.slice(path.lastIndexOf('/') + 1)}.`),
      hash: { alg: 'SHA-256' as const, content: sha256Hex(data) },
    })),
    ofPackage(LINKED_IN, 'The static part of the C library that is in bin/strongroom.'),
  ];
}

/** dpkg knows a file by the path that its package has it under: with or without /usr, since the two were merged. */
function packageWith(path: string): string {
  const other = path.startsWith('/usr/') ? path.slice('/usr'.length) : `/usr${path}`;
  for (const candidate of [path, other]) {
    const name = packageOfAnswer(asked('--search', candidate) ?? '');
    if (name !== undefined) return name;
  }
  throw new BuildError(`the library ${path} is of no package that dpkg knows`, [
    'a release is made on Debian, where each library has a package with a version and a licence',
  ]);
}

/**
 * Debian 13 diverts the path without /usr, and answers with the two ends of the diversion: no package has a file there.
 */
export function packageOfAnswer(answer: string): string | undefined {
  const named = answer.split('\n').find((line) => line !== '' && !line.startsWith('diversion by '));
  return named?.split(':')[0];
}

function ofPackage(name: string, remark: string): Component {
  const format = ['Version', 'Architecture', 'source:Package'].map((field) => `\${${field}}\\n`).join('');
  const [version = '', architecture = '', source = ''] = (asked('--show', `--showformat=${format}`, name) ?? '').split(
    '\n',
  );
  if (version === '') throw new BuildError(`dpkg knows no version of ${name}`);
  const [, licence] = LICENCES.find(([pattern]) => pattern.test(source)) ?? [];
  if (licence === undefined) throw new BuildError(`nobody has looked at the licence of ${name} (${source}) yet`);
  const purl = `pkg:deb/debian/${name.replaceAll('+', '%2B')}@${encodeURIComponent(version)}?arch=${architecture}`;
  return {
    type: 'library',
    name,
    version,
    purl,
    hash: undefined,
    licence,
    texts: textsOf(name),
    remark,
  };
}

/** Debian's copyright file, and the common texts that it refers to by their paths. */
function textsOf(name: string): LicenceText[] {
  const file = `/usr/share/doc/${name}/copyright`;
  const text = readImageInput(file, `the licence of ${name}`).toString('utf8');
  const common = new Set([...text.matchAll(COMMON_TEXTS)].map(([path]) => path));
  const referred = [...common].sort().filter((path) => existsSync(path));
  return [file, ...referred].map((from) => ({ from, text: readImageInput(from, from).toString('utf8') }));
}

function asked(...args: readonly string[]): string | undefined {
  try {
    return execFileSync('dpkg-query', args, {
      encoding: 'utf8',
      env: { PATH: process.env['PATH'], LC_ALL: 'C' },
      stdio: ['ignore', 'pipe', 'ignore'],
    });
  } catch {
    return undefined;
  }
}
