// What a release is made of, one entry for each thing that somebody else wrote, whatever it came by.

export interface LicenceText {
  /** Where it was read: the package's own name of the file. */
  readonly from: string;
  readonly text: string;
}

export interface Component {
  readonly type: 'application' | 'library' | 'platform';
  readonly name: string;
  readonly version: string | undefined;
  /** Package URL (ECMA-427). */
  readonly purl: string | undefined;
  readonly hash: { readonly alg: 'SHA-256' | 'SHA-512'; readonly content: string } | undefined;
  /** An SPDX expression, as its package states it; undefined: stated in `texts` only. */
  readonly licence: string | undefined;
  readonly texts: readonly LicenceText[];
  readonly remark?: string;
}

export function sortedComponents(components: readonly Component[]): Component[] {
  const key = ({ name, version, purl }: Component): Buffer => Buffer.from(`${name}\0${version}\0${purl}`);
  return [...components].sort((a, b) => Buffer.compare(key(a), key(b)));
}
