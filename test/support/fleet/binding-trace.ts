// What the signers of a fleet ask of the row SLASHING_STORE and of the identities of their stores, and when each may
// sign, for the checker of traces (test/model/binding-conformance.ts). The calls take effect one after the other, and
// in this order they are noted. A trace ends where an older row or store comes back.

import type { BindingRow, BoundStore } from '../../../signer/chamber/binding-row.ts';
import type { BindingReading, BindingTable } from '../../../signer/chamber/binding-table.ts';
import type { StoreBinding } from '../../../signer/chamber/store-binding.ts';
import { readIncarnations } from '../../../signer/slashing/incarnation.ts';
import type { SlashingBackend } from '../../../signer/slashing/types.ts';
import type { SignerClock } from './time.ts';

/** By the signer's monotonic clock and its wall clock, milliseconds. */
export type Times = readonly [monotonic: number, wall: number];

export interface BindingEvent {
  /** A process: one that starts again is another. */
  readonly signer: number;
  readonly kind: 'start' | 'stop' | 'right' | 'read' | 'own' | 'incarnate' | 'use_end' | 'jump' | 'bind' | 'beat';
  readonly began: Times;
  readonly ended: Times;
  /** The id of the signer's store. */
  readonly store?: string;
  /** `right`: it may sign. `incarnate`, `use_end`, `bind`, `beat`: it was done. `start`: the table was just made. */
  readonly answer?: boolean;
  readonly row?: BindingRow | undefined;
  readonly next?: BoundStore;
  readonly replica?: string;
  readonly time?: number | undefined;
  /** What the store holds, the latest first, and when it was closed. */
  readonly held?: readonly string[];
  readonly closedAt?: number | null;
  readonly isRaised?: boolean;
}

export interface BindingTrace {
  readonly events: BindingEvent[];
  isOver: boolean;
  signers: number;
  turn: Promise<unknown>;
}

export function bindingTrace(): BindingTrace {
  return { events: [], isOver: false, signers: 0, turn: Promise.resolve() };
}

export interface TracedSigner {
  readonly replica: string;
  readonly isFreshTable: boolean;
  readonly clock: SignerClock;
}

type Noted = Omit<BindingEvent, 'signer' | 'began' | 'ended'>;

export class SignerTrace {
  readonly #trace: BindingTrace;
  readonly #signer: number;
  readonly #clock: SignerClock;
  /** Of a call that may still stand before a gate. */
  #began: Times;

  constructor(trace: BindingTrace, { replica, isFreshTable, clock }: TracedSigner) {
    this.#trace = trace;
    this.#signer = trace.signers;
    trace.signers += 1;
    this.#clock = clock;
    this.#began = this.#now();
    this.#note({ kind: 'start', replica, answer: isFreshTable });
  }

  hindrance(hindrance: StoreBinding['hindrance']): StoreBinding['hindrance'] {
    this.#began = this.#now();
    this.#note({ kind: 'right', answer: hindrance === undefined });
    return hindrance;
  }

  stopped(): void {
    this.#began = this.#now();
    this.#note({ kind: 'stop' });
  }

  table(table: BindingTable): BindingTable {
    return {
      read: () =>
        this.#step(table.read, ({ row, tableTime }: BindingReading) => ({ kind: 'read', row, time: tableTime })),
      beat: (row, next, beat) =>
        this.#step(
          () => table.beat(row, next, beat),
          (written) => ({ kind: 'beat', row, next, answer: written !== undefined }),
        ),
      bind: (row, next, beat) =>
        this.#step(
          () => table.bind(row, next, beat),
          (written) => ({ kind: 'bind', row, next, answer: written !== undefined }),
        ),
      useEnd: (closedAt) =>
        this.#step(
          () => table.useEnd(closedAt),
          (answer) => ({ kind: 'use_end', closedAt, answer }),
        ),
    };
  }

  /** Between the gate and the store. */
  behind<Store extends Pick<SlashingBackend, 'identity' | 'incarnate'>>(store: Store): Store {
    return {
      ...store,
      identity: () =>
        this.#inTurn(
          () => store.identity(),
          ({ id, incarnation }) => ({ kind: 'own', store: id, ...stateOf(incarnation) }),
        ),
      incarnate: (from: string, to: string) =>
        this.#inTurn(
          () => store.incarnate(from, to),
          (answer) => ({ kind: 'incarnate', answer, ...stateOf(to) }),
        ),
    };
  }

  /** Before the gate. */
  before({ name, identity, incarnate }: Pick<SlashingBackend, 'name' | 'identity' | 'incarnate'>) {
    return {
      name,
      identity: () => this.#begun(identity),
      incarnate: (from: string, to: string) => this.#begun(() => incarnate(from, to)),
    };
  }

  jump(jump: () => Promise<void>): () => Promise<void> {
    return async () => {
      const began = this.#now();
      await jump();
      this.#note({ kind: 'jump' }, began);
    };
  }

  #begun<Result>(call: () => Promise<Result>): Promise<Result> {
    this.#began = this.#now();
    return call();
  }

  #step<Result>(call: () => Promise<Result>, fields: (result: Result) => Noted): Promise<Result> {
    return this.#begun(() => this.#inTurn(call, fields));
  }

  #inTurn<Result>(call: () => Promise<Result>, fields: (result: Result) => Noted): Promise<Result> {
    const began = this.#began;
    const result = this.#trace.turn.then(async () => {
      try {
        const answer = await call();
        this.#note(fields(answer), began);
        return answer;
      } catch (error) {
        // Nobody knows whether it took effect.
        this.#trace.isOver = true;
        throw error;
      }
    });
    this.#trace.turn = result.catch(() => undefined);
    return result;
  }

  #note(event: Noted, began = this.#began): void {
    if (this.#trace.isOver) return;
    this.#trace.events.push({ signer: this.#signer, began, ended: this.#now(), ...event });
  }

  #now(): Times {
    return [this.#clock.monotonic(), this.#clock.now()];
  }
}

function stateOf(incarnation: string): Pick<BindingEvent, 'held' | 'closedAt' | 'isRaised'> {
  const { held, closedAt, isRaised } = readIncarnations(incarnation);
  return { held, closedAt, isRaised };
}
