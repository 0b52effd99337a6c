// The bill of materials of a release, as CycloneDX 1.6 in JSON. Its serial number follows from its contents, so that
// the same release has the same one.

import { hash } from 'node:crypto';
import { isoTime, type Origin } from '../origin.ts';
import type { Component } from './component.ts';

const ROOT_REFERENCE = 'strongroom';

export function writeSbom(components: readonly Component[], origin: Origin): Buffer {
  const listed = components.map((component, at) => ({ ...entryOf(component), 'bom-ref': referenceOf(component, at) }));
  const metadata = {
    timestamp: isoTime(origin),
    component: {
      type: 'application',
      'bom-ref': ROOT_REFERENCE,
      name: 'strongroom',
      version: origin.version,
      purl: productUrl(origin),
      description: 'Remote signer for Ethereum validator keys',
      properties: [{ name: 'strongroom:commit', value: origin.commit }],
    },
  };
  const dependencies = [{ ref: ROOT_REFERENCE, dependsOn: listed.map((entry) => entry['bom-ref']) }];
  const contents = { version: 1, metadata, components: listed, dependencies };
  const serialNumber = `urn:uuid:${uuidOf(JSON.stringify(contents))}`;
  const bom = { bomFormat: 'CycloneDX', specVersion: '1.6', serialNumber, ...contents };
  return Buffer.from(`${JSON.stringify(bom, undefined, 2)}\n`);
}

/** What statements about a release name it by. */
export function productUrl({ version }: Origin): string {
  return `pkg:generic/strongroom@${version}`;
}

function entryOf({ type, name, version, purl, hash: digest, licence, remark }: Component): object {
  return {
    type,
    name,
    ...(version === undefined ? {} : { version }),
    ...(remark === undefined ? {} : { description: remark }),
    ...(digest === undefined ? {} : { hashes: [digest] }),
    ...(licence === undefined ? {} : { licenses: [{ expression: licence }] }),
    ...(purl === undefined ? {} : { purl }),
  };
}

/** Unique: two files of one package are two entries. */
function referenceOf({ name, version }: Component, at: number): string {
  return `${at + 1}:${name}${version === undefined ? '' : `@${version}`}`;
}

/** RFC 9562 §5.8, version 8: the first bits of SHA-256. */
export function uuidOf(text: string): string {
  const hex = hash('sha256', text, 'hex');
  const variant = ((Number.parseInt(hex.charAt(16), 16) & 3) | 8).toString(16);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
