// What the signer has to know of an operation to sign it: one row, and no other table of the signer is keyed by
// operation. Rows are in rows.ts; their names, and what rules and documents say of them, in api/operations.ts.

import type { z } from 'zod';
import type { ForkName } from '../api/forks.ts';
import type { Preset } from '../api/network-table.ts';
import type { LoadedKey } from '../keys/loaded-key.ts';
import type { SlashableMessage } from '../slashing/types.ts';

/** Where on the chain a message stands, also for its audit line. */
export interface Position {
  readonly slot?: number;
  readonly epoch?: number;
  readonly sourceEpoch?: number;
  readonly targetEpoch?: number;
}

/** What a message says of its payment (specification/authorization.md#payments). */
export interface Payment {
  readonly feeRecipient?: string;
  readonly gasLimit?: bigint;
  /** The bytes that name the builder, `0x` and lower-case hex. */
  readonly builder?: string;
  readonly builderIndex?: bigint;
}

/**
 * Which fork version the domain has (specification/signing.md#fork-version):
 * - `any`: that of the message's epoch. No fork has changed the container, so a version that the network's table does
 *   not have is signed, too.
 * - `phase0`, `gloas`: that of the message's epoch, and the fork that it names decides the container. The operation
 *   began with this fork, and of Gloas we know no fork after it.
 * - `capella`: always Capella's (EIP-7044: valid for ever), whatever fork the client sent.
 * - `genesis`: always the genesis version, on no chain: the genesis validators root is zeros (builder-specs,
 *   compute_domain). A client need not send a fork.
 */
type ForkRule = 'any' | 'phase0' | 'gloas' | 'capella' | 'genesis';

/** A place of a key that its first content claims, until two epochs after its slot (sign/equivocation.ts). */
interface Claimed {
  readonly name: string;
  readonly slot: number;
  /** In the slot before its own. */
  readonly isMadeBefore?: boolean;
}

export interface OperationRow<Message = unknown> {
  /** Members of the body that may hold the message; of several exactly one is there. */
  readonly members: readonly [string, ...string[]];
  /** What clients call it besides its own name. */
  readonly otherTypes?: readonly string[];
  readonly message: z.ZodType<Message>;
  /** specification/signing.md#bodies: the column with the domains. Four bytes, as a number. */
  readonly domain: number;
  readonly fork: ForkRule;
  /**
   * Signed with the schedule's fork where the client's root proves that it is meant (sign/healing.ts). Never where a
   * second content is refused (slashable, claim), nor where the client's fork decides nothing (capella, genesis).
   */
  readonly isHealable?: true;
  /** Many keys sign the same message (specification/signing.md#batches). */
  readonly isForBatches?: true;
  /** Refused without this option of `signing`. */
  readonly option?: 'builder';

  place?(message: Message): Position;
  /** hash_tree_root, in the container of its fork, which was judged. Valid until the next root is computed. */
  root(message: Message, fork: ForkName | undefined): Uint8Array;
  /** Why its members cannot be of this fork and preset, if so: the hint for the caller. */
  contradiction?(message: Message, fork: ForkName, preset: Preset): string | undefined;
  slashable?(message: Message, key: Pick<LoadedKey, 'publicKey' | 'tenure'>, signingRoot: Uint8Array): SlashableMessage;
  payment?(message: Message): Payment;
  claim?(message: Message): Claimed;
  /** The block that it belongs to, which its own key may have signed (sign/own-blocks.ts). */
  block?(message: Message): { readonly slot: number; readonly root: Uint8Array };
}

/** Keeps the type of the message, and checks the columns against it. */
export function row<Schema extends z.ZodType, const Rule extends ForkRule>(
  columns: OperationRow<z.output<Schema>> & { readonly message: Schema; readonly fork: Rule },
): typeof columns {
  return columns;
}
