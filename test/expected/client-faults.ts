// The published faults of clients as vectors, made with @lodestar/types and blst, not with the signer
// (test/e2e/client-faults.test.ts computes them again).

import { readFileSync } from 'node:fs';
import type { Body } from './expected-root.ts';

interface FaultVector {
  readonly name: string;
  readonly client: string;
  readonly request: Body;
  /** What the consensus rules ask for. Beside a reason: a signer that does not look at the network may sign it. */
  readonly signing_root?: string;
  readonly signature?: string;
  /** This signer's label of the fault, where it signs what the client meant. */
  readonly client_fault?: string;
  readonly status?: number;
  readonly reason?: string;
}

interface FaultVectors {
  readonly network: string;
  readonly key: { readonly secret: string; readonly pubkey: string };
  readonly vectors: readonly FaultVector[];
}

export function clientFaults(): FaultVectors {
  return JSON.parse(readFileSync(new URL('./client-faults.json', import.meta.url), 'utf8')) as FaultVectors;
}
