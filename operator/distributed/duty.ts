// One signature that a client waits for: whom to ask for a partial signature, which of them combine, and when too few
// will come. It decides nothing about the message: each participant does, by its own records.

import type { Addon } from '../../signer/native/load.ts';
import type { Member, ShareGroup } from './accounts.ts';
import type { Said, SaidRefusal } from './partials.ts';
import type { GivenPartial, Verifier } from './verify.ts';

interface DutyWorld {
  readonly addon: Pick<Addon, 'combinePartials'>;
  readonly verifier: Verifier;
  /** As many partial signatures as the threshold are there. */
  readonly onThreshold: () => void;
}

const SIGNATURE_BYTES = 96;

export class Duty {
  readonly group: ShareGroup;
  outcome:
    | { readonly kind: 'signed'; readonly signature: Uint8Array }
    | SaidRefusal
    | 'participants_unreachable'
    | undefined;
  readonly #world: DutyWorld;
  /** Those that were not asked. */
  readonly #left: Member[];
  readonly #pending = new Set<Member>();
  readonly #refusals = new Map<number, SaidRefusal>();
  #partials: readonly GivenPartial[] = [];
  #isChecking = false;
  #checks = 0;

  constructor(group: ShareGroup, world: DutyWorld) {
    this.group = group;
    this.#world = world;
    const ranked = group.members.map((member) => ({ member, rank: member.participant.reluctance() }));
    this.#left = ranked.sort((one, other) => one.rank - other.rank).map(({ member }) => member);
  }

  take(member: Member, said: Said): void {
    this.#pending.delete(member);
    const { participant, id } = member;
    participant.counts[said?.kind ?? 'failed'] += 1;
    if (said?.kind === 'refused') this.#refusals.set(id, said);
    if (said?.kind !== 'signed') return;
    const { root, signature } = said;
    if (said.id === String(id)) this.#partials = [...this.#partials, { member, root, signature, isVerified: false }];
    else participant.noteWrong();
  }

  /**
   * Combines what is there, or finds that it will not be enough.
   * @param onChecked when to proceed after a check
   * @returns whom to ask now: until one more than the threshold is there or asked; all of them when it is late
   */
  proceed(isLate: boolean, onChecked: () => void): readonly Member[] {
    if (this.outcome !== undefined || this.#isChecking) return [];
    const { threshold, participants } = this.group;
    const isLast = isLate || this.#pending.size + this.#left.length === 0;
    let most = 0;
    for (const root of new Set(this.#partials.map((partial) => partial.root))) {
      const right = this.#usable(root, isLast);
      if (right.length >= threshold) return this.#check(root, right.slice(0, threshold), onChecked);
      most = Math.max(most, distinct(this.#of(root)).length);
    }
    const isRefused = this.#refusals.size > participants - threshold;
    if (isRefused) this.outcome = mostGiven([...this.#refusals.values()]);
    else if (most + this.#pending.size + this.#left.length < threshold) this.outcome = 'participants_unreachable';
    if (this.outcome !== undefined) return [];
    const there = this.#partials.filter(isTrusted).length + this.#pending.size;
    const asked = this.#left.splice(0, isLate ? this.#left.length : Math.max(0, threshold + 1 - there));
    for (const member of asked) this.#pending.add(member);
    return asked;
  }

  /** One of each id. Those of participants that lied are used when no others come, each verified by itself before. */
  #usable(root: string, isLast: boolean): readonly GivenPartial[] {
    const given = this.#of(root);
    const trusted = distinct(given.filter(isTrusted));
    const { threshold } = this.group;
    if (trusted.length >= threshold || !isLast || distinct(given).length < threshold) return trusted;
    this.#drop(given.filter((partial) => !isTrusted(partial) && !this.#world.verifier.isRight(partial)));
    return distinct(this.#of(root));
  }

  #check(root: string, partials: readonly GivenPartial[], onChecked: () => void): readonly [] {
    if (this.#checks++ === 0) this.#world.onThreshold();
    this.#isChecking = true;
    const signature = this.#combine(partials);
    const settle = (isRight: boolean, wrong: readonly GivenPartial[]): void => {
      this.#isChecking = false;
      this.#drop(isRight ? this.#partials.filter((partial) => partial.root !== root) : wrong);
      if (isRight && signature !== undefined) this.outcome = { kind: 'signed', signature };
      onChecked();
    };
    this.#world.verifier.add(root, { group: this.group, partials, signature, settle });
    return [];
  }

  #of(root: string): readonly GivenPartial[] {
    return this.#partials.filter((partial) => partial.root === root);
  }

  #combine(partials: readonly GivenPartial[]): Uint8Array | undefined {
    const signature = new Uint8Array(SIGNATURE_BYTES);
    const ids = Uint8Array.from(partials, ({ member }) => member.id);
    try {
      this.#world.addon.combinePartials(ids, Buffer.concat(partials.map((partial) => partial.signature)), signature);
      return signature;
    } catch (error) {
      if (error instanceof RangeError) return undefined; // one is no point of the curve
      throw error;
    }
  }

  #drop(wrong: readonly GivenPartial[]): void {
    for (const { member } of wrong) member.participant.noteWrong();
    this.#partials = this.#partials.filter((partial) => !wrong.includes(partial));
  }
}

function isTrusted({ member, isVerified }: GivenPartial): boolean {
  return isVerified || !member.participant.isDistrusted;
}

/** Where two are of one id, one that is verified. */
function distinct(partials: readonly GivenPartial[]): readonly GivenPartial[] {
  const verifiedLast = partials.toSorted((one, other) => Number(one.isVerified) - Number(other.isVerified));
  return [...new Map(verifiedLast.map((partial) => [partial.member.id, partial])).values()];
}

/** By status; of two that are given as often, 412. */
function mostGiven(refusals: readonly SaidRefusal[]): SaidRefusal {
  const weightOf = (status: number): number =>
    refusals.filter((refusal) => refusal.status === status).length + (status === 412 ? 0.5 : 0);
  return refusals.reduce((most, refusal) => (weightOf(refusal.status) > weightOf(most.status) ? refusal : most));
}
