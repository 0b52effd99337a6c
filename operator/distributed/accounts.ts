// Which shares are at which participants, as these say again and again, and so which keys are served: those of which
// enough participants of one group (the same threshold, number of participants, set and commitments) hold a share. A
// participant says which share it has; what that share's public key is, the commitments say.

import { setImmediate as nextTurn } from 'node:timers/promises';
import { parseJson } from '../../common/formats/parse-json.ts';
import { accountSchema } from '../../signer/api/distributed.ts';
import { reasonOf } from '../tunnel/listener.ts';
import type { TunnelRefusal } from '../tunnel/refusals.ts';
import type { Participant } from './participants.ts';

interface SharedPolynomial {
  readonly compositeKey: string;
  readonly threshold: number;
  readonly participants: number;
  readonly set: number;
  /** 0x and 48 bytes of hex each. Nothing has decoded them: a liar may name what is no point. */
  readonly commitments: readonly string[];
}

/** A share at a participant. */
export interface Member {
  readonly participant: Participant;
  readonly group: ShareGroup;
  readonly id: number;
}

/** Whose partial signatures combine. Two members of one id are possible, when one of them lies. */
export interface ShareGroup extends SharedPolynomial {
  readonly members: Member[];
}

interface HeldShare extends SharedPolynomial {
  readonly id: number;
  /** Alike for all shares of a group. */
  readonly groupName: string;
}

interface AccountsWorld {
  readonly log: (line: string) => void;
  readonly ended: AbortSignal;
}

const ACCOUNTS_PATH = '/api/v1/eth2/distributed/accounts';
const MAX_ACCOUNTS_BYTES = 64 * 1024 * 1024;
const MAX_ACCOUNTS = 65_536;
const ACCOUNTS_IN_A_TURN = 16;
const LIST_TIMEOUT_MS = 30_000;
const TICK_MS = 1000;
const LIST_INTERVAL_MS = 60_000;
const RETRY_MS = 1000;
/** A younger list is not asked for again: as many unknown keys as a client likes cost one list in this time. */
const FRESH_MS = 3000;
/** As by convention nothing is answered in place of a list, no reason is known. */
const CLOSES = '; a signer that is not ready, or does not know the token, closes the connection';
/** The least that a key can have. */
const LEAST_THRESHOLD = 2;

/** What one participant holds. */
class ShareList {
  readonly participant: Participant;
  readonly #world: AccountsWorld;
  shares: ReadonlyMap<string, HeldShare> = new Map();
  #askedAt = Number.NEGATIVE_INFINITY;
  #isAsking = false;
  #problem: string | undefined;
  #body: Buffer | undefined;

  constructor(participant: Participant, world: AccountsWorld) {
    this.participant = participant;
    this.#world = world;
  }

  get hasListed(): boolean {
    return this.#body !== undefined;
  }

  get isFailing(): boolean {
    return this.#problem !== undefined;
  }

  /** Unless it has been asked since, or is being asked. @returns whether it was asked */
  async refresh(since: number): Promise<boolean> {
    if (this.#isAsking || this.#askedAt >= since) return false;
    this.#isAsking = true;
    this.#askedAt = performance.now();
    const problem = await this.#list().catch(reasonOf);
    this.#isAsking = false;
    if (problem === undefined) this.participant.listedAt = this.#askedAt;
    const why = problem === 'ECONNRESET' ? `${problem}${CLOSES}` : problem;
    const now = problem === undefined ? 'lists its shares' : `lists no shares (${why}): trying on`;
    const { ended, log } = this.#world;
    if (problem !== this.#problem && !ended.aborted) log(`participant ${this.participant.name} ${now}`);
    this.#problem = problem;
    return true;
  }

  /** @returns why there is no list @throws when no answer comes */
  async #list(): Promise<string | undefined> {
    const { ended, log } = this.#world;
    const signal = AbortSignal.any([ended, AbortSignal.timeout(LIST_TIMEOUT_MS)]);
    const { status, body } = await this.participant.ask(ACCOUNTS_PATH, undefined, MAX_ACCOUNTS_BYTES, signal);
    if (status !== 200) return `status ${status}`;
    if (this.#body?.equals(body) === true) return undefined;
    const listed = parseJson(body.toString('utf8'));
    if (!Array.isArray(listed) || listed.length > MAX_ACCOUNTS) return 'its answer is no list, or too long';
    const shares = new Map<string, HeldShare>();
    for (const [place, account] of (listed as unknown[]).entries()) {
      if (place % ACCOUNTS_IN_A_TURN === 0) await nextTurn();
      const share = readAccount(account);
      if (share !== undefined) shares.set(share.compositeKey, share);
    }
    const refused = listed.length - shares.size;
    if (refused > 0) log(`participant ${this.participant.name}: ${refused} shares of its list contradict themselves`);
    this.shares = shares;
    this.#body = body;
    return undefined;
  }
}

export class Accounts {
  readonly #lists: readonly ShareList[];
  readonly #log: (line: string) => void;
  #groups: ReadonlyMap<string, readonly ShareGroup[]> = new Map();
  #change = Promise.withResolvers<void>();
  /** Of all keys that are known. */
  #leastThreshold = LEAST_THRESHOLD;
  /** By composite key: what is known, also of a participant that does not answer now. */
  served: ReadonlyMap<string, ShareGroup> = new Map();
  /** Keys that were served, until no participant lists a share. */
  readonly #lost = new Set<string>();

  constructor(participants: readonly Participant[], world: AccountsWorld) {
    this.#log = world.log;
    this.#lists = participants.map((participant) => new ShareList(participant, world));
    const look = (): void => {
      const now = performance.now();
      for (const list of this.#lists) this.#refresh(list, now - (list.isFailing ? RETRY_MS : LIST_INTERVAL_MS));
    };
    const timer = setInterval(look, TICK_MS);
    world.ended.addEventListener('abort', () => clearInterval(timer), { once: true });
    look();
  }

  /** Keys of which a share is listed, by as few participants as cannot sign: since they were served, or always. */
  get unserved(): { readonly lost: number; readonly never: number } {
    return { lost: this.#lost.size, never: this.#groups.size - this.served.size - this.#lost.size };
  }

  /** Waits while participants that do not answer may make it a served one. @returns undefined after the signal */
  find(key: string, signal: AbortSignal): Promise<ShareGroup | TunnelRefusal | undefined> {
    return this.#until(signal, (since) => {
      const unserved = this.#lost.has(key) ? 'participants_unreachable' : 'unknown_key';
      return this.served.get(key) ?? (this.#mayBeServed(key, since) ? undefined : unserved);
    });
  }

  /** Of those whose list is not a young one. */
  refresh(): void {
    for (const list of this.#lists) this.#refresh(list, performance.now() - FRESH_MS);
  }

  /**
   * The keys that enough participants hold now. No list is given that lacks a key of which participants that do not
   * answer may hold a share: validator clients drop the validators that a list lacks. It waits for them until the
   * signal. (So one that invents shares can make it wait, while another is away that has never listed its own.)
   */
  list(signal: AbortSignal): Promise<readonly string[] | undefined> {
    return this.#until(signal, (since) => {
      const isHeld = (groups: readonly ShareGroup[]): boolean =>
        groups.some((group) => held(group, isThere(since)) >= group.threshold);
      const others = [...this.#groups].flatMap(([key, groups]) => (isHeld(groups) ? [] : [key]));
      if ([undefined, ...others].some((key) => this.#mayBeServed(key, since))) return undefined;
      return [...this.#groups].flatMap(([key, groups]) => (isHeld(groups) ? [key] : [])).sort();
    });
  }

  /** @returns since when those have listed their shares that answer until the signal */
  async look(signal: AbortSignal): Promise<number> {
    const since = performance.now() - FRESH_MS;
    await this.#until(signal, () => this.#lists.every(({ participant }) => participant.listedAt >= since) || undefined);
    return since;
  }

  /** @param decide by what is listed since then, after each list again @returns undefined after the signal */
  async #until<T>(signal: AbortSignal, decide: (since: number) => T | undefined): Promise<T | undefined> {
    const since = performance.now() - FRESH_MS;
    const aborted = new Promise<unknown>((resolve) => void signal.addEventListener('abort', resolve, { once: true }));
    for (;;) {
      const decided = decide(since);
      if (decided !== undefined || signal.aborted) return decided;
      for (const list of this.#lists) this.#refresh(list, since);
      await Promise.race([this.#change.promise, aborted]);
    }
  }

  /** By those that do not answer now. @param key undefined: one that no participant has named */
  #mayBeServed(key: string | undefined, since: number): boolean {
    const away = this.#lists.filter(({ participant }) => participant.listedAt < since);
    const groups = this.#groups.get(key ?? '');
    if (groups === undefined) return away.length >= this.#leastThreshold;
    // Not one that had listed its shares, and none of this key: a key that is left at a few would hold up every list.
    const missing = away.filter(({ hasListed, shares }) => !hasListed || shares.has(key ?? '')).length;
    return missing > 0 && groups.some((group) => held(group, isThere(since)) + missing >= group.threshold);
  }

  #refresh(list: ShareList, since: number): void {
    const { shares } = list;
    void list.refresh(since).then((wasAsked) => {
      if (!wasAsked) return;
      if (list.shares !== shares) this.#regroup();
      this.#change.resolve();
      this.#change = Promise.withResolvers();
    });
  }

  #regroup(): void {
    const groups = new Map<string, ShareGroup>();
    for (const { participant, shares } of this.#lists)
      for (const { id, groupName, ...polynomial } of shares.values()) {
        const group = groups.get(groupName) ?? { ...polynomial, members: [] };
        groups.set(groupName, group);
        group.members.push({ participant, group, id });
      }
    const all = [...groups.values()];
    const leastFirst = all.map(({ threshold }) => threshold).sort((one, other) => one - other);
    this.#leastThreshold = leastFirst[0] ?? LEAST_THRESHOLD;
    this.#groups = Map.groupBy(all, ({ compositeKey }) => compositeKey);
    const sized = all.map((group) => ({ group, size: held(group, () => true) }));
    const whole = sized.filter(({ group, size }) => size >= group.threshold);
    // Who invents a group has fewer in it than are honest; of two whole ones the next set.
    const bestLast = whole.sort((one, other) => one.size - other.size || one.group.set - other.group.set);
    const servedBefore = this.served;
    this.served = new Map(bestLast.map(({ group }) => [group.compositeKey, group]));
    for (const key of this.#lost) if (this.served.has(key) || !this.#groups.has(key)) this.#lost.delete(key);
    const lost = [...servedBefore.keys()].filter((key) => this.#groups.has(key) && !this.served.has(key));
    for (const key of lost) this.#lost.add(key);
    if (lost.length > 0) this.#log(`${lost.length} keys are at too few participants now, ${lost[0]} for one`);
  }
}

const isThere =
  (since: number) =>
  ({ listedAt }: Participant): boolean =>
    listedAt >= since;

/** By how many participants, of those that count. */
export function held({ members }: ShareGroup, counts: (participant: Participant) => boolean): number {
  return new Set(members.filter(({ participant }) => counts(participant)).map(({ id }) => id)).size;
}

/** @returns undefined for one that contradicts itself */
function readAccount(account: unknown): HeldShare | undefined {
  const { data } = accountSchema.safeParse(account);
  if (data === undefined) return undefined;
  const { participant_id: id, composite_public_key: compositeKey, signing_threshold: threshold, set } = data;
  const { commitments } = data;
  const { length: participants } = data.participants;
  const groupName = [threshold, participants, set, ...commitments].join(' ');
  return { compositeKey, threshold, participants, set, groupName, id, commitments };
}

export function bytesOf(hex: string): Buffer {
  return Buffer.from(hex.slice(2), 'hex');
}
