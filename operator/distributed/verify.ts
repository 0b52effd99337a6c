// Whether combined signatures are right: no other is answered. Those of one root that wait in the same turn are
// verified in one check, each multiplied by a random number of its own, so that two lies cannot cancel. When a check
// fails, the lie is looked for by halves, down to the wrong partial signature, whose participant is then asked last.

import assert from 'node:assert/strict';
import { asyncAggregateWithRandomness, PublicKey, Signature, verify } from '@chainsafe/blst';
import type { Addon } from '../../signer/native/load.ts';
import { bytesOf, type Member, type ShareGroup } from './accounts.ts';

export interface GivenPartial {
  readonly member: Member;
  readonly root: string;
  readonly signature: Uint8Array;
  /** By itself, and it is right. */
  isVerified: boolean;
}

interface Combined {
  readonly group: ShareGroup;
  readonly partials: readonly GivenPartial[];
  /** Undefined when the partials did not even combine. */
  readonly signature: Uint8Array | undefined;
  /** @param wrong as far as it was looked for */
  settle(isRight: boolean, wrong: readonly GivenPartial[]): void;
}

/** It occupies a thread for some 10 ms. */
const MAX_IN_A_CHECK = 128;
const PUBLIC_KEY_BYTES = 48;

export class Verifier {
  checks = 0;
  signatures = 0;
  readonly #addon: Pick<Addon, 'sharePublicKey'>;
  /** By root. */
  readonly #waiting = new Map<string, Combined[]>();
  readonly #publicKeys = new WeakMap<ShareGroup, PublicKey>();

  constructor(addon: Pick<Addon, 'sharePublicKey'>) {
    this.#addon = addon;
  }

  /** @param root 32 bytes, as hex */
  add(root: string, combined: Combined): void {
    const waiting = this.#waiting.get(root);
    if (waiting !== undefined) return void waiting.push(combined);
    this.#waiting.set(root, [combined]);
    setImmediate(() => void this.#verifyAll(root));
  }

  /** By itself, and by the public key of its share, which the commitments give. */
  isRight(partial: GivenPartial): boolean {
    const { group, id } = partial.member;
    const publicKey = new Uint8Array(PUBLIC_KEY_BYTES);
    this.checks += 1;
    try {
      this.#addon.sharePublicKey(Buffer.concat(group.commitments.map(bytesOf)), id, publicKey);
      const signature = Signature.fromBytes(partial.signature, true);
      partial.isVerified = verify(bytesOf(partial.root), PublicKey.fromBytes(publicKey), signature);
    } catch {
      return false; // no point of the group
    }
    return partial.isVerified;
  }

  async #verifyAll(root: string): Promise<void> {
    const waiting = this.#waiting.get(root) ?? [];
    while (waiting.length > 0) await this.#verify(root, waiting.splice(0, MAX_IN_A_CHECK));
    this.#waiting.delete(root);
  }

  async #verify(root: string, several: readonly Combined[]): Promise<void> {
    // With a partial of a participant that was found lying meanwhile: another may take its place, without a check.
    const { doubtful = [], rest = [] } = Object.groupBy(several, (one) => (isDoubtful(one) ? 'doubtful' : 'rest'));
    for (const combined of doubtful) combined.settle(false, []);
    const [first] = rest;
    if (first === undefined) return;
    if (await this.#areRight(root, rest)) {
      this.signatures += rest.length;
      for (const combined of rest) combined.settle(true, []);
    } else if (rest.length > 1) {
      const half = Math.ceil(rest.length / 2);
      await this.#verify(root, rest.slice(0, half));
      await this.#verify(root, rest.slice(half));
    } else {
      const wrong = first.partials.filter((partial) => !partial.isVerified && !this.isRight(partial));
      assert(wrong.length > 0, 'partial signatures that are right combine to one that is right');
      first.settle(false, wrong);
    }
  }

  async #areRight(root: string, several: readonly Combined[]): Promise<boolean> {
    try {
      const sets = several.flatMap(({ group, signature }) =>
        signature === undefined ? [] : [{ pk: this.#publicKeyOf(group), sig: signature }],
      );
      if (sets.length < several.length) return false;
      this.checks += 1;
      const { pk, sig } = await asyncAggregateWithRandomness(sets);
      return verify(bytesOf(root), pk, sig);
    } catch {
      return false; // one is no point of the group
    }
  }

  /** @throws when it is no point of the group */
  #publicKeyOf(group: ShareGroup): PublicKey {
    const publicKey = this.#publicKeys.get(group) ?? PublicKey.fromBytes(bytesOf(group.compositeKey), true);
    this.#publicKeys.set(group, publicKey);
    return publicKey;
  }
}

function isDoubtful({ partials }: Combined): boolean {
  return partials.some(({ member, isVerified }) => !isVerified && member.participant.isDistrusted);
}
