// How the files of a release came to be: an in-toto statement (v1) with SLSA's provenance (v1) of the build. The
// publisher signs it (tools/provenance). What anybody can do without a signature is to build again and compare.

import type { Input } from '../../../eif/inputs.ts';
import { sha256Hex } from '../../../eif/measure.ts';
import type { Origin } from '../origin.ts';

export interface Named {
  readonly name: string;
  readonly data: Buffer;
}

/** What `make release` is, for readers: its parameters are the commit, the architecture and the time. */
const BUILD_TYPE = 'urn:strongroom:make-release:1';
/** Whoever ran make: a builder that vouches for nothing. */
const BUILDER = 'urn:strongroom:builder:make';

export interface Facts {
  readonly origin: Origin;
  readonly architecture: string;
  readonly inputs: readonly Input[];
  readonly tools: Readonly<Record<string, string>>;
}

export function writeProvenance(files: readonly Named[], { origin, architecture, inputs, tools }: Facts): Buffer {
  const source = /^[0-9a-f]{40}$/.test(origin.commit) ? [{ name: 'source', digest: { gitCommit: origin.commit } }] : [];
  const statement = {
    _type: 'https://in-toto.io/Statement/v1',
    subject: files.map(({ name, data }) => ({ name, digest: { sha256: sha256Hex(data) } })),
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        buildType: BUILD_TYPE,
        externalParameters: { commit: origin.commit, architecture, sourceDateEpoch: origin.timeSeconds },
        internalParameters: { version: origin.version, tools },
        resolvedDependencies: [...source, ...inputs.map(({ path, sha256 }) => ({ name: path, digest: { sha256 } }))],
      },
      // Without the time of the build: two builds of the same sources are the same bytes.
      runDetails: { builder: { id: BUILDER } },
    },
  };
  return Buffer.from(`${JSON.stringify(statement, undefined, 2)}\n`);
}
