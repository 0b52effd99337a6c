// The licences of everything in a release, from the same list as the bill of materials: each text once, behind the
// names of all that it belongs to. Components that are inside another are named with it.

import { sha256Hex } from '../../../eif/measure.ts';
import type { Component, LicenceText } from './component.ts';

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
