// What scanners report of a release and does not reach it, as OpenVEX (v0.2.0) in JSON, from the statements that people
// keep in triage.yaml. A statement of a package that is not in the release stops the build: it would be of nothing.

import { z } from 'zod';
import { parseStrictYaml } from '../../../common/formats/yaml.ts';
import { BuildError } from '../../../eif/inputs.ts';
import { isoTime, type Origin } from '../origin.ts';
import type { Component } from './component.ts';
import { productUrl, uuidOf } from './sbom.ts';

const names = z.array(z.string().min(1)).min(1);

const triageSchema = z.array(
  z.strictObject({
    vulnerability: z.string().regex(/^(?:CVE-\d{4}-\d{4,}|GHSA(?:-[0-9a-z]{4}){3})$/),
    packages: z.array(z.string().startsWith('pkg:')).min(1),
    justification: z.enum([
      'component_not_present',
      'vulnerable_code_not_present',
      'vulnerable_code_not_in_execute_path',
      'vulnerable_code_cannot_be_controlled_by_adversary',
      'inline_mitigations_already_exist',
    ]),
    notes: z.string().min(1),
    judged: z.iso.date(),
    /** What a test looks for in the release, and must not find. */
    absent: z.strictObject({
      imports: names.exactOptional(),
      files: names.exactOptional(),
      text: names.exactOptional(),
    }),
  }),
);

export type Triage = z.output<typeof triageSchema>;

/** @throws BuildError */
export function readTriage(text: string): Triage {
  const parsed = parseStrictYaml(text);
  const read = triageSchema.safeParse('problems' in parsed ? undefined : parsed.value);
  if (read.success) return read.data;
  throw new BuildError('triage.yaml has another form than it states', [z.prettifyError(read.error)]);
}

/** @returns undefined where nothing is stated: OpenVEX has no empty document */
export function writeVex(triage: Triage, components: readonly Component[], origin: Origin): Buffer | undefined {
  if (triage.length === 0) return undefined;
  const statements = triage.map(({ vulnerability, packages, justification, notes, judged }) => ({
    vulnerability: { name: vulnerability },
    timestamp: `${judged}T00:00:00Z`,
    products: [{ '@id': productUrl(origin), subcomponents: packages.flatMap((url) => inRelease(url, components)) }],
    status: 'not_affected',
    status_notes: notes,
    justification,
  }));
  const contents = {
    '@context': 'https://openvex.dev/ns/v0.2.0',
    author: 'The maintainers of strongroom',
    timestamp: isoTime(origin),
    version: 1,
    statements,
  };
  const document = { ...contents, '@id': `urn:uuid:${uuidOf(JSON.stringify(contents))}` };
  return Buffer.from(`${JSON.stringify(document, undefined, 2)}\n`);
}

function inRelease(packageUrl: string, components: readonly Component[]): { readonly '@id': string }[] {
  const urls = components.flatMap(({ purl }) => (purl?.startsWith(`${packageUrl}@`) === true ? [purl] : []));
  if (urls.length === 0)
    throw new BuildError(`triage.yaml states something of ${packageUrl}, which is not in a release`);
  return [...new Set(urls)].map((url) => ({ '@id': url }));
}
