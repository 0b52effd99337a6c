// Where a key is described: a file, and the document in it, counted from 1. The order of places is that of the files as
// they were listed.

import { MAX_DESCRIPTOR_BYTES } from './descriptor.ts';
import type { KeystorePlace } from './keystore-file.ts';
import type { KeyPlace, OrderedPlace } from './load-report.ts';

export type KeystoreAt = OrderedPlace & KeystorePlace;

const SEPARATOR = '\0';

export function placeName({ file, document }: KeyPlace): string {
  return `${file}${SEPARATOR}${document}`;
}

/** The place that the name is of, when it is in the file. */
export function documentOf(name: string, file: string): KeyPlace | undefined {
  const [at, document] = name.split(SEPARATOR);
  return at === file ? { file, document: Number(document) } : undefined;
}

/** A file of MAX_DESCRIPTOR_BYTES has fewer documents than bytes. */
export function orderOf(fileOrder: number, document: number): number {
  return fileOrder * (MAX_DESCRIPTOR_BYTES + 1) + document;
}

/** A keystore that lies in a folder of keystores and that no file describes. */
export function inFolder(place: KeystorePlace, fileOrder: number): KeystoreAt {
  return { ...place, file: place.keystoreFile, document: 1, order: orderOf(fileOrder, 1) };
}
