// Keeps a fleet on one slashing store. The state table names the store over which the fleet signs, with a heartbeat of
// the signers that use it. A signer with that store writes heartbeats and signs. A signer with another store signs
// nothing while the heartbeat moves. When the heartbeat has not moved for longer than any signer may sign without one,
// this signer takes over the binding. It first makes a jump of its own store, so that it cannot contradict a message
// that it does not know.
//
// Why two stores never sign at once. A signer may sign until `boundMs` after it BEGAN its last successful heartbeat.
// Its monotonic clock decides this at each signature, so a signer that was frozen has lost the right when it wakes.
// Another signer takes over no sooner than `boundMs + marginMs` after it has SEEN the last change of the row. The first
// signer made this change before the other one saw it. So the first signer's right ended `marginMs` earlier. The margin
// covers clocks of different speed.
//
// It also detects copies. The row has the store's revision, which signers count up. A store with a lower revision has
// lost records, or is an older copy of the store in use. Nobody can tell which, so it counts as another store. A store
// for one signer (sqlite) also has a seat: its file, which a lock keeps to one process. A copied file has another seat.

import type { Clock } from '../../observe/clock.ts';
import type { Log } from '../../observe/log.ts';
import type { SlashingBackend } from '../slashing/types.ts';
import type { BindingRow, BoundStore } from './binding-row.ts';
import type { BindingTable } from './binding-table.ts';
import { LOST, OLDER_COPY, OTHER_STORE, TAKEN, UNKNOWN } from './store-binding-advice.ts';

export interface StoreBindingOptions {
  /** How long a signer may go on without a heartbeat; the staleness bound of the state table. */
  readonly boundMs: number;
  /** The state table was made by this very start: there is nobody to wait for. */
  readonly isFreshTable: boolean;
  /** For people: which replica this is. */
  readonly replica: string;
  /** BoundStore. */
  readonly seat: string;
}

export interface StoreBindingParts {
  readonly table: BindingTable;
  readonly backend: Pick<SlashingBackend, 'name' | 'identity' | 'advance'>;
  /** Raise the store to the present, its revision at least to this one; rejects when no clock can be believed. */
  readonly jump: (atLeastRevision: number) => Promise<void>;
  readonly clock: Clock;
  readonly log: Log;
}

/** Beats in the time that a signer may go on without one. */
const BEATS_PER_BOUND = 5;
/** Beyond the bound, before a store is taken over: for clocks of different speed. */
const MARGIN_SHARE = 0.2;
/** Beats between two revisions. */
const BEATS_PER_REVISION = 5;
/** A signer that waits says so again after so many beats. */
const BEATS_PER_REMINDER = 30;

/** What another signer's row looked like, and since when it has not changed. */
interface Sighting {
  readonly row: BindingRow | undefined;
  readonly since: number;
}

export class StoreBinding {
  readonly #options: StoreBindingOptions;
  readonly #parts: StoreBindingParts;
  #bound: BoundStore | undefined;
  /** When the last heartbeat that succeeded was begun. */
  #beganAt: { readonly monotonic: number; readonly wall: number } | undefined;
  #notedRevision = 0;
  #sighting: Sighting | undefined;
  #beats = 0;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(options: StoreBindingOptions, parts: StoreBindingParts) {
    this.#options = options;
    this.#parts = parts;
  }

  /**
   * Why nothing may be signed; undefined when the right to sign is fresh by both clocks: the monotonic one stands still
   * while a virtual machine is suspended.
   */
  get hindrance(): 'slashing_unbound' | undefined {
    if (this.#bound === undefined || this.#beganAt === undefined) return 'slashing_unbound';
    const { clock } = this.#parts;
    const { monotonic, wall } = this.#beganAt;
    const elapsedMs = Math.max(clock.monotonic() - monotonic, clock.now() - wall);
    return elapsedMs < this.#options.boundMs ? undefined : 'slashing_unbound';
  }

  /** The store that this signer signs over, or the one that it waits for. */
  get status(): { readonly isBound: boolean; readonly store: string | null; readonly binding: number | null } {
    const other = this.#sighting?.row;
    const store = this.#bound ?? other;
    return { isBound: this.hindrance === undefined, store: store?.storeId ?? null, binding: store?.binding ?? null };
  }

  /** Look now, and then again and again until `stop`. Resolves after the first look, whatever it found. */
  async start(): Promise<void> {
    await this.beat();
    this.#later();
  }

  stop(): void {
    this.#stopped = true;
    this.#lose();
    clearTimeout(this.#timer);
  }

  /** One heartbeat, or one look at the store of others. Never rejects. */
  async beat(): Promise<void> {
    this.#beats += 1;
    try {
      if (this.#bound === undefined) await this.#look();
      else await this.#renew(this.#bound);
    } catch (error) {
      this.#parts.log.warn({ err: error }, 'the binding of the slashing store could not be renewed');
    }
  }

  async #renew(store: BoundStore): Promise<void> {
    const { table, backend, log } = this.#parts;
    const beganAt = this.#time();
    const row = await table.beat(store, this.#signature());
    if (this.#stopped) return;
    if (row === undefined) {
      this.#lose();
      log.error({ ...this.#names(), store: store.storeId, binding: store.binding }, LOST);
      return;
    }
    // Read after the row: a store that is whole has at least the revision that was noted before.
    const { revision } = await backend.identity();
    this.#notedRevision = Math.max(this.#notedRevision, row.revision);
    if (revision < this.#notedRevision) {
      this.#lose();
      log.error({ ...this.#names(), revision, noted: this.#notedRevision }, OLDER_COPY);
      return;
    }
    this.#beganAt = beganAt;
    if (this.#beats % BEATS_PER_REVISION === 0) await this.#countUp(store);
  }

  /** The store first, then the note of it: what is noted is in the store. */
  async #countUp(store: BoundStore): Promise<void> {
    const revision = await this.#parts.backend.advance();
    await this.#parts.table.noteRevision(store, revision);
    this.#notedRevision = Math.max(this.#notedRevision, revision);
  }

  async #look(): Promise<void> {
    const { table, backend, clock } = this.#parts;
    const row = await table.read();
    const seenAt = clock.monotonic();
    const { id, revision } = await backend.identity();
    if (this.#stopped) return;
    if (row !== undefined && this.#isThisStore(row, id, revision)) return this.#join(row);
    if (row === undefined && this.#options.isFreshTable) return this.#bind(undefined, id, revision);
    if (!this.#isUnchanged(row)) {
      const isFirst = this.#sighting === undefined || this.#sighting.row?.binding !== row?.binding;
      this.#sighting = { row, since: seenAt };
      if (isFirst || this.#beats % BEATS_PER_REMINDER === 0) this.#sayWhoHasIt(row, id);
    }
    const waitedMs = seenAt - (this.#sighting?.since ?? seenAt);
    if (waitedMs >= this.#options.boundMs * (1 + MARGIN_SHARE)) await this.#takeOver(row);
  }

  #isThisStore(row: BindingRow, id: string, revision: number): boolean {
    const noted = Math.max(row.revision, this.#notedRevision);
    return row.isAuthentic && row.storeId === id && row.seat === this.#options.seat && revision >= noted;
  }

  async #join({ storeId, seat, binding }: BindingRow): Promise<void> {
    this.#sighting = undefined;
    this.#bound = { storeId, seat, binding };
    await this.#renew(this.#bound);
    if (this.hindrance === undefined) this.#sayBound(this.#bound);
  }

  /** Nobody has been seen alive for longer than anybody may go on. */
  async #takeOver(row: BindingRow | undefined): Promise<void> {
    const { log, backend, jump } = this.#parts;
    await jump(Math.max(row?.revision ?? 0, this.#notedRevision) + 1);
    const { id, revision } = await backend.identity();
    log.warn({ ...this.#names(), store: id, was: row?.storeId ?? null, last_replica: row?.replica ?? null }, TAKEN);
    await this.#bind(row, id, revision);
  }

  async #bind(previous: BindingRow | undefined, storeId: string, revision: number): Promise<void> {
    const beganAt = this.#time();
    const next = { storeId, seat: this.#options.seat, binding: (previous?.binding ?? 0) + 1 };
    // When somebody else was faster, the next look sees whom.
    if (!(await this.#parts.table.bind(previous, { ...next, revision }, this.#signature()))) return;
    if (this.#stopped) return;
    this.#sighting = undefined;
    this.#bound = next;
    this.#notedRevision = revision;
    this.#beganAt = beganAt;
    this.#sayBound(next);
  }

  #lose(): void {
    this.#bound = undefined;
    this.#beganAt = undefined;
  }

  #sayBound({ storeId, binding }: BoundStore): void {
    const facts = { ...this.#names(), store: storeId, binding };
    this.#parts.log.info(facts, 'the fleet signs over the slashing store of this signer');
  }

  #isUnchanged(row: BindingRow | undefined): boolean {
    const before = this.#sighting;
    if (before === undefined) return false;
    return (
      before.row?.storeId === row?.storeId &&
      before.row?.binding === row?.binding &&
      before.row?.heartbeat === row?.heartbeat
    );
  }

  #sayWhoHasIt(row: BindingRow | undefined, storeId: string): void {
    const { log } = this.#parts;
    if (row === undefined) {
      log.warn({ ...this.#names(), store: storeId, seconds: this.#waitSeconds() }, UNKNOWN);
      return;
    }
    const facts = { store: storeId, other_store: row.storeId, other_replica: row.replica, beat_at: row.beatAt };
    log.error({ ...this.#names(), ...facts, seconds: this.#waitSeconds() }, OTHER_STORE);
  }

  #time() {
    return { monotonic: this.#parts.clock.monotonic(), wall: this.#parts.clock.now() };
  }

  #waitSeconds(): number {
    return Math.ceil((this.#options.boundMs * (1 + MARGIN_SHARE)) / 1000);
  }

  #names() {
    return { replica: this.#options.replica, backend: this.#parts.backend.name };
  }

  #signature() {
    return { replica: this.#options.replica, beatAt: new Date(this.#parts.clock.now()).toISOString() };
  }

  #later(): void {
    if (this.#stopped) return;
    this.#timer = setTimeout(() => void this.beat().then(() => this.#later()), this.#options.boundMs / BEATS_PER_BOUND);
    this.#timer.unref();
  }
}
