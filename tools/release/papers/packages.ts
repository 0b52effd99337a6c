// The npm packages that are in the bundle, with the licences that they state and the texts that they bring. A package
// without a licence stops the build.

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { packageFolderOf } from '../../../eif/bundle/bundle.ts';
import { BuildError, type Input, readImageInput } from '../../../eif/inputs.ts';
import { sha256Hex } from '../../../eif/measure.ts';
import type { Component, LicenceText } from './component.ts';

const manifestSchema = z.object({ name: z.string(), version: z.string(), license: z.string() });
const lockfileSchema = z.object({
  packages: z.record(z.string(), z.object({ version: z.string().optional(), integrity: z.string().optional() })),
});

/** What packages call the files that have to go with them. */
const TEXTS = /^(?:licen[cs]e|copying|notice)/i;

/** blst is in the addon as its C sources, which this package brings (signer/native/native.mk). */
const BLST_PACKAGE = 'node_modules/c-kzg';
const BLST_SOURCES = `${BLST_PACKAGE}/deps/blst`;

export function packagesOf(root: string, inputs: readonly Input[]): Component[] {
  const text = readImageInput(join(root, 'package-lock.json'), 'the lockfile').toString('utf8');
  const { packages } = lockfileSchema.parse(JSON.parse(text));
  const folders = new Set(inputs.flatMap(({ path }) => packageFolderOf(path) ?? []));
  const component = (folder: string): Component => packageIn(root, folder, packages[folder]?.integrity);
  return [...[...folders].map(component), blst(root, component(BLST_PACKAGE))];
}

function packageIn(root: string, folder: string, integrity: string | undefined): Component {
  const read = manifestSchema.safeParse(
    JSON.parse(readImageInput(join(root, folder, 'package.json'), folder).toString()),
  );
  if (!read.success) throw new BuildError(`${folder} states no name, version or licence`);
  const { name, version, license } = read.data;
  return {
    type: 'library',
    name,
    version,
    purl: `pkg:npm/${name.replace('@', '%40')}@${version}`,
    hash: hashOf(folder, integrity),
    licence: license,
    texts: textsIn(root, folder),
  };
}

/** Subresource Integrity, as lockfiles have it: SHA-512 of the package's archive. */
function hashOf(folder: string, integrity: string | undefined): Component['hash'] {
  const [, digest] = /^sha512-([A-Za-z0-9+/]{86}==)$/.exec(integrity ?? '') ?? [];
  if (digest === undefined) throw new BuildError(`the lockfile has no SHA-512 of ${folder}`);
  return { alg: 'SHA-512', content: Buffer.from(digest, 'base64').toString('hex') };
}

function textsIn(root: string, folder: string): LicenceText[] {
  const names = readdirSync(join(root, folder)).filter((name) => TEXTS.test(name));
  return names.sort().map((from) => ({ from, text: readImageInput(join(root, folder, from), from).toString('utf8') }));
}

function blst(root: string, { name, version, hash }: Component): Component {
  return {
    type: 'library',
    name: 'blst',
    version: undefined,
    purl: undefined,
    hash,
    licence: 'Apache-2.0',
    texts: textsIn(root, BLST_SOURCES),
    remark: `Compiled into the addon from the sources in the npm package ${name} ${version}, whose hash this is.`,
  };
}

// The licences of everything in a release, from the same list as the bill of materials: each text once, behind the
// names of all that it belongs to. Components that are inside another are named with it.

const RULE = '='.repeat(80);
const HEAD = `What others wrote in this release of strongroom, and under which terms. The list is that of sbom.cdx.json.
strongroom itself has no licence yet: its owner has not chosen one.
`;

export function writeNotice(components: readonly Component[]): Buffer {
  const texts = new Map<string, { readonly text: string; readonly of: string[] }>();
  for (const component of components) {
    for (const text of component.texts) addText(texts, component, text);
  }
  const list = components.map((component) => `  ${titleOf(component)}: ${termsOf(component)}`);
  const sections = [...texts.values()].map(
    ({ text, of }) => `${RULE}\n${of.join('\n')}\n${RULE}\n\n${text.trimEnd()}\n`,
  );
  return Buffer.from(`${HEAD}\n${list.join('\n')}\n\n${sections.join('\n')}`);
}

function addText(
  texts: Map<string, { readonly text: string; readonly of: string[] }>,
  component: Component,
  { from, text }: LicenceText,
): void {
  const digest = sha256Hex(Buffer.from(text));
  const known = texts.get(digest) ?? { text, of: [] };
  const title = `${titleOf(component)} (${from})`;
  if (!known.of.includes(title)) known.of.push(title);
  texts.set(digest, known);
}

function titleOf({ name, version }: Component): string {
  return version === undefined ? name : `${name} ${version}`;
}

function termsOf({ licence, texts, remark }: Component): string {
  const stated = licence ?? remark ?? '';
  return licence !== undefined && texts.length === 0
    ? `${stated}, stated by its package, which brings no text`
    : stated;
}
