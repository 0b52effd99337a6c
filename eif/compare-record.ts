// Whether an image is the one that somebody published: its measurements, computed from its bytes, against a pcrs.json,
// and the files that went into two builds. What nobody can rebuild (the certificate of a signature) or what is not
// known yet (a configuration that is fetched) is not compared, and said so.

import type { Input } from './inputs.ts';
import type { Measurements } from './measure.ts';
import type { PublishedRecord } from './record.ts';

export interface ComparedRegister {
  readonly name: string;
  readonly result: 'equal' | 'different' | 'not_compared';
  readonly own: string | undefined;
  readonly published: readonly string[];
  /** Why it is not compared. */
  readonly why?: string;
}

export interface InputDifference {
  readonly path: string;
  /** SHA-256; undefined: it is not among them. */
  readonly own: string | undefined;
  readonly published: string | undefined;
}

const NOT_COMPARED: Readonly<Record<string, string>> = {
  PCR8: 'your image is not signed; it is of the certificate, and of nothing that is built',
  PCR16: 'your image fetches its configuration: give it with --config',
};
/** What an image decides. */
const OF_IMAGE = /^PCR(?:0|1|2|8|16|17)$/;

/** By the numbers of the registers. */
export function compareWithRecord(own: Measurements, { measurements }: PublishedRecord): ComparedRegister[] {
  const names = [...new Set([...Object.keys(own), ...Object.keys(measurements)])];
  names.sort((a, b) => Number(a.slice(3)) - Number(b.slice(3)));
  return names.map((name) => {
    const written = measurements[name] ?? [];
    const published = (typeof written === 'string' ? [written] : written).map((value) => value.toLowerCase());
    const value = own[name];
    const why = reasonNotTo(name, value, published);
    if (why !== undefined) return { name, result: 'not_compared', own: value, published, why };
    const equal = value !== undefined && published.includes(value);
    return { name, result: equal ? 'equal' : 'different', own: value, published };
  });
}

function reasonNotTo(name: string, own: string | undefined, published: readonly string[]): string | undefined {
  if (published.length === 0) return 'the record does not have it';
  if (!OF_IMAGE.test(name)) return 'it is not of an image';
  return own === undefined ? NOT_COMPARED[name] : undefined;
}

/** By path; the first of two builds' libraries that differ is usually what makes the rest differ. */
export function compareInputs(own: readonly Input[], published: readonly Input[]): InputDifference[] {
  const [ours, theirs] = [own, published].map((inputs) => new Map(inputs.map(({ path, sha256 }) => [path, sha256])));
  const paths = [...new Set([...(ours?.keys() ?? []), ...(theirs?.keys() ?? [])])];
  paths.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  return paths
    .map((path) => ({ path, own: ours?.get(path), published: theirs?.get(path) }))
    .filter((one) => one.own !== one.published);
}
