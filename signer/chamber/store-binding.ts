// Keeps a fleet on one slashing store. The state table's row names the store over which the fleet signs, its
// incarnation and its signers, with a heartbeat. A signer whose store is that one signs. Any other signs nothing while
// the heartbeat moves, and takes over when it has not moved for longer than any signer may sign without one. It first
// makes a jump of its own store, so that it cannot contradict a message that it does not know.
//
// Why two stores never sign at once. A signer may sign until `boundMs` after it BEGAN its last successful heartbeat. It
// judges this at each signature. Another signer takes over no sooner than `boundMs + marginMs` after it has SEEN the
// last change of the row. The first signer made this change before the other one saw it. So the first signer's right
// ended `marginMs` earlier. The margin covers clocks of different speed.
//
// Why a copy never signs with its original. A name and a number that are copied prove nothing, so joining asks for what
// no copy has: a number that is younger than the copy.
// - While signers live: the joiner writes a new random incarnation into its store, and waits until the row has it.
//   Only a bound signer writes the row. It reads its own store first. So its store is the joiner's.
// - After an end in order: the last signer leaves, in store and row, one number that no signer has signed under. All
//   copies that have it are alike. Each end is used once: a second row notes its time, which only rises. So one of them
//   joins, and no copy joins later when the row of that end is put back.
// - After any other end, and when the end lies longer back than another signer would wait: by the wait and the jump.
// Bound signers renew the number again and again. The row then has a number that copies do not hold: a signer whose
// store does not hold the row's number has lost its right, whichever of the two was copied or put back.

import { setTimeout as pause } from 'node:timers/promises';
import type { Clock } from '../../common/observe/clock.ts';
import type { Log } from '../../common/observe/log.ts';
import { CLOCK_TOLERANCE_SECONDS } from '../slashing/future.ts';
import { type Incarnations, nextIncarnation, readIncarnations } from '../slashing/incarnation.ts';
import type { SlashingBackend } from '../slashing/types.ts';
import type { BindingRow, BoundStore } from './binding-row.ts';
import type { BindingTable } from './binding-table.ts';
import {
  BEHIND,
  LAPSED,
  LOST,
  NOT_CONFIRMED,
  OTHER_STORE,
  RAISED_BY_HAND,
  TAKEN,
  UNKNOWN_STORE,
} from './startup-failures.ts';

export interface StoreBindingOptions {
  /** How long a signer may go on without a heartbeat; the staleness bound of the state table. */
  readonly boundMs: number;
  /** Made by this very start: there is no other signer to wait for. */
  readonly isFreshTable: boolean;
  readonly replica: string;
}

interface StoreBindingParts {
  readonly table: BindingTable;
  readonly backend: Pick<SlashingBackend, 'name' | 'identity' | 'incarnate'>;
  /** Raise the store to the present; rejects when no clock can be believed. */
  readonly jump: () => Promise<void>;
  readonly clock: Clock;
  /** The time that a jump goes by; the clock's unless given. */
  readonly jumpTime?: Pick<Clock, 'now'>;
  readonly log: Log;
}

const BEATS_PER_BOUND = 5;
/** For clocks of different speed. A clock may not step by more. */
const MARGIN_SHARE = 0.2;
/** So long a copy under a running signer goes unnoticed. */
const BEATS_PER_INCARNATION = 5;
const LOOKS_PER_REMINDER = 30;
/** While a live signer may confirm this one; the start waits for some of these looks. */
const CONFIRMING_LOOK_MS = 200;
const CONFIRMING_LOOKS_AT_START = 15;
/** More names than this in the row are of signers that were killed: all begin again, and no end counts as the last. */
const MAX_SIGNERS = 100;
const KILLED_SIGNERS = 'killed';
const MAX_ATTEMPTS = 5;

type Moment = Readonly<Record<'monotonic' | 'wall', number>>;
type OwnStore = Incarnations & Readonly<Record<'id' | 'text', string>>;

export class StoreBinding {
  readonly #options: StoreBindingOptions;
  readonly #parts: StoreBindingParts;
  readonly #startedAt: Moment;
  /** The row as this signer saw or wrote it last, while it is one of its signers. */
  #bound: BindingRow | undefined;
  #beganAt: Moment | undefined;
  /** What this process has written into its store, for a live signer to confirm, and since when. */
  #announced: { readonly number: string; readonly since: Moment } | undefined;
  #latestBinding = 0;
  /** What another signer's row looked like, and since when it has not changed. */
  #sighting: { readonly row: BindingRow | undefined; readonly since: number } | undefined;
  #beats = 0;
  #looks = 0;
  #beating: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(options: StoreBindingOptions, parts: StoreBindingParts) {
    this.#options = options;
    this.#parts = parts;
    this.#startedAt = this.#time();
  }

  /** Undefined when the right to sign is fresh by both clocks: the monotonic one stands still in a suspended VM. */
  get hindrance(): 'slashing_unbound' | undefined {
    if (this.#stopped || this.#bound === undefined || this.#beganAt === undefined) return 'slashing_unbound';
    const { clock } = this.#parts;
    const monotonicMs = clock.monotonic() - this.#beganAt.monotonic;
    const wallMs = clock.now() - this.#beganAt.wall;
    const hasStepped = Math.abs(wallMs - monotonicMs) > this.#marginMs;
    const isFresh = Math.max(monotonicMs, wallMs) < this.#options.boundMs;
    return isFresh && !hasStepped ? undefined : 'slashing_unbound';
  }

  /** The store that this signer signs over, or the one that it waits for. */
  get status(): { readonly isBound: boolean; readonly store: string | null; readonly binding: number | null } {
    const store = this.#bound ?? this.#sighting?.row;
    return { isBound: this.hindrance === undefined, store: store?.storeId ?? null, binding: store?.binding ?? null };
  }

  async start(): Promise<void> {
    await this.beat();
    for (let looks = 0; this.#isBeingConfirmed && looks < CONFIRMING_LOOKS_AT_START; looks++) {
      await pause(CONFIRMING_LOOK_MS);
      await this.beat();
    }
    this.#later();
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  /** Once nothing is signed any more. Never rejects: without it a fleet waits and jumps at its next start. */
  async end(): Promise<void> {
    this.stop();
    await this.#beating;
    try {
      if (this.#bound !== undefined && this.#beganAt !== undefined) await this.#leave(this.#bound, this.#beganAt);
      this.#lose();
    } catch (error) {
      this.#parts.log.warn({ err: error }, 'the end of this signer could not be noted in the state table');
    }
  }

  beat(): Promise<void> {
    this.#beating = this.#beating.then(() => this.#beat());
    return this.#beating;
  }

  async #beat(): Promise<void> {
    if (this.#stopped) return;
    try {
      if (this.#bound === undefined) await this.#look();
      else await this.#renew(this.#bound);
    } catch (error) {
      this.#parts.log.warn({ err: error }, 'the binding of the slashing store could not be renewed');
    }
  }

  /** The store first, then the row: what the row gets is in the store. */
  async #renew(bound: BindingRow): Promise<void> {
    const { table, log } = this.#parts;
    const beganAt = this.#time();
    let own = await this.#own();
    this.#beats += 1;
    if (this.#beats % BEATS_PER_INCARNATION === 0) own = (await this.#incarnate(own)) ?? (await this.#own());
    let row: BindingRow | undefined = bound;
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
      // Another signer may have renewed the store since it was read here, and written the row.
      if (!this.#isMine(row, own)) own = await this.#own();
      if (!this.#isMine(row, own)) {
        this.#lose();
        log.error({ ...this.#names(), store: own.id, binding: bound.binding }, LOST);
        return;
      }
      const written: BindingRow | undefined = await table.beat(row, withIncarnation(row, own), this.#signature());
      if (written !== undefined) return void this.#became(written, beganAt, this.#beganAt ?? beganAt);
      row = (await table.read()).row;
    }
  }

  #mayHaveBeenTaken(since: Moment): boolean {
    return this.#elapsedMs(since) >= this.#options.boundMs + this.#marginMs;
  }

  #elapsedMs(since: Moment): number {
    const now = this.#time();
    return Math.max(now.monotonic - since.monotonic, now.wall - since.wall);
  }

  #isMine(row: BindingRow | undefined, own: OwnStore): row is BindingRow {
    return this.#isNamed(row, own) && row.signers.includes(this.#options.replica);
  }

  /** The row is of this store, in this or an earlier incarnation, and of no binding before one that was seen. */
  #isNamed(row: BindingRow | undefined, own: OwnStore): row is BindingRow {
    if (row === undefined || !row.isAuthentic || row.binding < this.#latestBinding) return false;
    return row.storeId === own.id && own.held.includes(row.incarnation);
  }

  async #look(): Promise<void> {
    const { clock, table } = this.#parts;
    const lookedAt = this.#time();
    const { row, tableTime } = await table.read();
    const seenAt = clock.monotonic();
    const own = await this.#own();
    this.#looks += 1;
    if (row?.isAuthentic === true) this.#latestBinding = Math.max(this.#latestBinding, row.binding);
    const isUnchanged = this.#sighting !== undefined && isSameRow(this.#sighting.row, row);
    if (!isUnchanged) this.#sighting = { row, since: seenAt };
    const waitedMs = seenAt - (this.#sighting?.since ?? seenAt);
    if (this.#isClockBehind(row, tableTime, waitedMs)) return;
    const isFresh = this.#options.isFreshTable && !this.#mayHaveBeenTaken(this.#startedAt);
    if (row === undefined && isFresh) return void (await this.#bind(row, own, this.#startedAt, 1));
    const isNamed = this.#isNamed(row, own);
    if (!isNamed) this.#announced = undefined;
    else {
      const closedMs = this.#closedAgo(row, own, tableTime);
      const since = before(lookedAt, closedMs);
      if (closedMs < this.#options.boundMs) return void (await this.#bind(row, own, since, row.binding, own.closedAt));
    }
    if (waitedMs >= this.#options.boundMs + this.#marginMs) return this.#takeOver(row, own);
    // A store that was raised by hand says so until it is used: where signers live, their next number ends that.
    const isSettled = isNamed && !own.isRaised && (await this.#join(row, own));
    if (!isSettled) this.#sayWhoHasIt(row, own, isUnchanged);
  }

  /** At most; infinite when it did not end in order. After a while another signer may have taken over. */
  #closedAgo({ signers, incarnation }: BindingRow, { held, closedAt }: OwnStore, tableTime?: number): number {
    if (signers.length > 0 || held[0] !== incarnation || closedAt === null) return Number.POSITIVE_INFINITY;
    const agoMs = (tableTime ?? Number.NaN) - closedAt;
    return agoMs >= 0 ? agoMs + 1_000 : Number.POSITIVE_INFINITY;
  }

  async #join(row: BindingRow, own: OwnStore): Promise<boolean> {
    const announced = this.#announced === undefined ? -1 : own.held.indexOf(this.#announced.number);
    if (this.#announced === undefined || announced < 0 || this.#mayHaveBeenTaken(this.#announced.since)) {
      const since = this.#time();
      const [number] = (await this.#incarnate(own))?.held ?? [];
      this.#announced = number === undefined ? undefined : { number, since };
      return false;
    }
    if (own.held.indexOf(row.incarnation) > announced) return false;
    const { since } = this.#announced;
    const beganAt = this.#time();
    const { replica } = this.#options;
    const others = row.signers.length < MAX_SIGNERS ? row.signers : [KILLED_SIGNERS];
    const signers = [...others.filter((name) => name !== replica), replica];
    // Refused: the row has changed, and the next look sees how.
    const joined = await this.#parts.table.beat(row, { ...withIncarnation(row, own), signers }, this.#signature());
    this.#became(joined, beganAt, since);
    return true;
  }

  /** No signer has been seen alive for longer than any may go on. */
  async #takeOver(row: BindingRow | undefined, own: OwnStore): Promise<void> {
    const { log, jump } = this.#parts;
    const since = this.#time();
    try {
      await jump();
    } catch (error) {
      // No other store, and no copy, was bound since: the row would have a number that this store does not hold.
      if (!own.isRaised || !this.#isNamed(row, own)) throw error;
      log.warn({ ...this.#names(), store: own.id }, RAISED_BY_HAND);
    }
    if (!(await this.#bind(row, own, since, Math.max(row?.binding ?? 0, this.#latestBinding) + 1))) return;
    const was = { was: row?.storeId ?? null, last_replica: row?.replica ?? null };
    log.warn({ ...this.#names(), store: own.id, ...was }, TAKEN);
  }

  async #bind(
    previous: BindingRow | undefined,
    store: OwnStore,
    since: Moment,
    binding: number,
    closedAt: number | null = null,
  ): Promise<boolean> {
    const own = await this.#incarnate(store);
    if (own === undefined || this.#stopped) return false;
    if (closedAt !== null && !(await this.#parts.table.useEnd(closedAt))) return false;
    const beganAt = this.#time();
    const next = withIncarnation({ storeId: own.id, binding, incarnation: '', signers: [this.#options.replica] }, own);
    return this.#became(await this.#parts.table.bind(previous, next, this.#signature()), beganAt, since);
  }

  /** What ended too late proves nothing: the row may have been taken over and put back since. */
  #became(row: BindingRow | undefined, beganAt: Moment, since: Moment): boolean {
    if (row === undefined) return false;
    const isNew = this.#bound === undefined;
    const facts = { ...this.#names(), store: row.storeId, binding: row.binding };
    if (this.#mayHaveBeenTaken(since)) {
      this.#lose();
      this.#parts.log.error(facts, LAPSED);
      return false;
    }
    this.#bound = row;
    this.#beganAt = beganAt;
    this.#sighting = undefined;
    this.#announced = undefined;
    this.#latestBinding = Math.max(this.#latestBinding, row.binding);
    if (isNew) this.#parts.log.info(facts, 'the fleet signs over the slashing store of this signer');
    return true;
  }

  /** As if it had ended with its last beat. */
  async #leave(bound: BindingRow, beganAt: Moment): Promise<void> {
    const { table } = this.#parts;
    const { replica } = this.#options;
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
      const { row, tableTime } = await table.read();
      let own: OwnStore | undefined = await this.#own();
      if (row?.binding !== bound.binding || !this.#isMine(row, own) || this.#mayHaveBeenTaken(beganAt)) return;
      const signers = row.signers.filter((name) => name !== replica);
      const closedAt = tableTime === undefined ? null : Math.floor(tableTime - this.#elapsedMs(beganAt));
      if (signers.length === 0) own = await this.#incarnate(own, closedAt);
      if (own === undefined) continue;
      if ((await table.beat(row, { ...withIncarnation(row, own), signers }, this.#signature())) !== undefined) return;
    }
  }

  async #own(): Promise<OwnStore> {
    const { id, incarnation } = await this.#parts.backend.identity();
    return { id, text: incarnation, ...readIncarnations(incarnation) };
  }

  async #incarnate(own: OwnStore, closedAt: number | null = null): Promise<OwnStore | undefined> {
    const text = nextIncarnation(own.text, closedAt);
    if (!(await this.#parts.backend.incarnate(own.text, text))) return undefined;
    return { id: own.id, text, ...readIncarnations(text) };
  }

  /** A clock that is behind makes a jump that is too low. The beat is of the last signer's clock. */
  #isClockBehind(row: BindingRow | undefined, tableTime: number | undefined, waitedMs: number): boolean {
    const beatAt = Date.parse(row?.beatAt ?? '') + waitedMs;
    const times = [tableTime ?? Number.NaN, beatAt].filter((time) => !Number.isNaN(time));
    const { clock, jumpTime = clock } = this.#parts;
    const behindMs = Math.max(0, ...times) - jumpTime.now();
    if (behindMs <= CLOCK_TOLERANCE_SECONDS * 1000) return false;
    const facts = { ...this.#names(), behind_seconds: Math.round(behindMs / 1000), last_replica: row?.replica ?? null };
    if (this.#looks % LOOKS_PER_REMINDER === 1) this.#parts.log.error(facts, BEHIND);
    return true;
  }

  #lose(): void {
    this.#bound = undefined;
    this.#beganAt = undefined;
  }

  get #marginMs(): number {
    return this.#options.boundMs * MARGIN_SHARE;
  }

  get #isBeingConfirmed(): boolean {
    return !this.#stopped && this.#bound === undefined && this.#announced !== undefined;
  }

  #sayWhoHasIt(row: BindingRow | undefined, own: OwnStore, wasSeen: boolean): void {
    const { log } = this.#parts;
    const isReminder = this.#looks % LOOKS_PER_REMINDER === 0;
    const seconds = Math.ceil((this.#options.boundMs + this.#marginMs) / 1000);
    const facts = { ...this.#names(), store: own.id, seconds };
    if (this.#announced !== undefined) {
      if (this.#looks === CONFIRMING_LOOKS_AT_START || isReminder) log.warn(facts, NOT_CONFIRMED);
      return;
    }
    // Each heartbeat of the others is another row: only the first of them is news.
    if (!isReminder && (wasSeen || this.#looks > 1)) return;
    if (row === undefined) log.warn(facts, UNKNOWN_STORE);
    else {
      const other = { other_store: row.storeId, other_replica: row.replica, beat_at: row.beatAt };
      log.error({ ...facts, ...other }, OTHER_STORE);
    }
  }

  #time(): Moment {
    return { monotonic: this.#parts.clock.monotonic(), wall: this.#parts.clock.now() };
  }

  #names() {
    return { replica: this.#options.replica, backend: this.#parts.backend.name };
  }

  #signature() {
    return { replica: this.#options.replica, beatAt: new Date(this.#parts.clock.now()).toISOString() };
  }

  #later(): void {
    if (this.#stopped) return;
    const beatMs = this.#options.boundMs / BEATS_PER_BOUND;
    const inMs = this.#isBeingConfirmed ? Math.min(CONFIRMING_LOOK_MS, beatMs) : beatMs;
    this.#timer = setTimeout(() => void this.beat().then(() => this.#later()), inMs);
    this.#timer.unref();
  }
}

function before({ monotonic, wall }: Moment, milliseconds: number): Moment {
  return { monotonic: monotonic - milliseconds, wall: wall - milliseconds };
}

function withIncarnation({ storeId, binding, signers, incarnation }: BoundStore, { held }: OwnStore): BoundStore {
  return { storeId, binding, signers, incarnation: held[0] ?? incarnation };
}

function isSameRow(one: BindingRow | undefined, other: BindingRow | undefined): boolean {
  if (one === undefined || other === undefined) return one === other;
  const isSameMac = Buffer.compare(one.mac ?? NO_MAC, other.mac ?? NO_MAC) === 0;
  return isSameMac && one.heartbeat === other.heartbeat;
}

const NO_MAC = new Uint8Array();
