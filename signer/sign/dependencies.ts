// What the signing path is handed, and what it answers.

import type { Span } from '../../common/observe/tracing.ts';
import type { ErrorReason } from '../api/errors.ts';
import type { ClientFault } from '../api/forks.ts';
import type { Operation } from '../api/operations.ts';
import type { BlsCore } from '../bls/bls.ts';
import type { SlashingProtection } from '../slashing/protection.ts';
import type { InFlightSigning } from '../tenure.ts';
import type { EquivocationGuard } from './equivocation.ts';
import type { ComputeRoot } from './message-root.ts';
import type { Network } from './networks.ts';
import type { Permits } from './permits.ts';

export interface SigningDependencies {
  readonly network: Network;
  /** Remembers the roots of equal bodies (operations/parse.ts). */
  readonly rootOf?: ComputeRoot | undefined;
  readonly core: BlsCore;
  readonly slashing: Pick<SlashingProtection, 'check' | 'checkGroup' | 'signedBlockRoot'>;
  readonly permits: Permits;
  /** A removed key's slashing history is exported only when nothing is under way with it. */
  readonly inFlight: Pick<InFlightSigning, 'begin' | 'end'>;
  readonly equivocation: Pick<EquivocationGuard, 'claim'>;
  /** Without it, bids, which commit a builder's money, are refused. */
  readonly builder?: boolean;
  readonly priorityOperations: ReadonlySet<Operation>;
  /** Asked right before a signature is released. */
  readonly hindrance: () => ErrorReason | undefined;
  readonly onCanary: (publicKey: string, operation: Operation) => void;
  readonly canaryKeys: ReadonlySet<string>;
  /** A loaded copy of a key was refused as one of an ended tenure, by this number. */
  readonly onRetired?: (publicKey: string, tenure: number) => void;
}

export interface SigningContext {
  /** Work that has not begun is given up. */
  readonly signal: AbortSignal;
  readonly span?: Span | undefined;
  /** The accessor. All requests without one share their turns. */
  readonly caller?: string | undefined;
  /** Called with the root, before the permit. */
  readonly onRoot?: ((root: Uint8Array) => void) | undefined;
  readonly onlyForOwnBlocks?: boolean | undefined;
  readonly onHealed?: ((fault: ClientFault) => void) | undefined;
}

export interface Refused {
  readonly kind: 'refused';
  readonly reason: ErrorReason;
  readonly hint?: string;
  /** For the log; `hint` is for the caller. */
  readonly detail?: Readonly<Record<string, unknown>>;
}

export type SignOutcome = { readonly kind: 'signed'; readonly signature: Uint8Array } | Refused;
