// A case of the kit: what is sent to a signer, and what is right. Cases of one group are sent in their order; a group
// that needs more keys than there are is left out, and the table says so.

import type { Body } from '../../test/expected/expected-root.ts';

export type Expected =
  | { readonly kind: 'signed'; readonly root: Uint8Array }
  /** A status of these, or any of 4xx; never a signature. */
  | { readonly kind: 'refused'; readonly statuses?: readonly number[] }
  /** Both are right: a client sends a contradiction, and its root is good all the same. */
  | { readonly kind: 'signed_or_refused'; readonly root: Uint8Array };

export interface Case {
  readonly group: Group;
  readonly name: string;
  readonly key: number | 'unknown';
  /** Sent as JSON; text as it is. */
  readonly body: Body | string;
  readonly accept?: 'application/json' | 'text/plain';
  readonly expected: Expected;
  /** Sent at once with the others of this name: at most one of them may be signed. */
  readonly race?: string;
}

export const GROUPS = [
  'vectors',
  'captured shapes',
  'shapes',
  'fork boundaries',
  'client faults',
  'EIP-3076',
  'answers',
  'door',
] as const;

export type Group = (typeof GROUPS)[number];

export interface Skip {
  readonly group: Group;
  readonly what: string;
  readonly why: string;
}

export interface CaseSet {
  readonly cases: readonly Case[];
  readonly skipped: readonly Skip[];
}
