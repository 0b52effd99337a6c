// One signer of the model: the parts of the real program that decide whether a slashable message is signed, put
// together as boot does it, with clocks of its own, in this process. It can be frozen, killed, stopped and started
// again; what it remembers ends with it. A signature is what `ask` calls signed: nothing is computed with keys.

import { setImmediate } from 'node:timers/promises';
import { systemClock, type Witness } from '../../../common/observe/clock.ts';
import { SignerError } from '../../../signer/api/errors.ts';
import { keyRoutes } from '../../../signer/boot/http-application/key-routes.ts';
import { StoreBinding } from '../../../signer/chamber/store-binding.ts';
import { KeyStore } from '../../../signer/keys/store.ts';
import { keyTurns } from '../../../signer/keys/turns.ts';
import { assertMayRelease } from '../../../signer/sign/right.ts';
import type { GroupCheckOutcome } from '../../../signer/slashing/check-queue.ts';
import { confirmedPresent } from '../../../signer/slashing/doubt/clock.ts';
import { openDoubts } from '../../../signer/slashing/doubt/doubts.ts';
import { renewIncarnations } from '../../../signer/slashing/doubt/renewal.ts';
import { latestBy } from '../../../signer/slashing/future.ts';
import { floorAt } from '../../../signer/slashing/jump.ts';
import { SlashingProtection } from '../../../signer/slashing/protection.ts';
import { restrainStore } from '../../../signer/slashing/restraints.ts';
import type { Doubt, SlashableMessage, StoreFloor } from '../../../signer/slashing/types.ts';
import { inFlightSigning, TenureBook } from '../../../signer/tenure.ts';
import { quietLog } from '../slashing.ts';
import { type BindingTrace, SignerTrace } from './binding-trace.ts';
import { behindGate, gate, Killed, type Missing, withoutProtection } from './gate.ts';
import type { FleetKeys } from './keys.ts';
import { BOUND_MS, CONFIG, type FleetTables, NETWORK, type Running, seenFrom } from './signer-parts.ts';
import type { FleetStore } from './stores.ts';
import { CHAIN, type Freeze, type SignerClock, signerClock, type WorldTime } from './time.ts';

const OF_START: Doubt = { cause: 'boot' };

function unlessUnconfirmed(error: unknown): void {
  if (!(error instanceof SignerError && error.reason === 'clock_unconfirmed')) throw error;
}

export interface SignerOptions {
  readonly name: string;
  readonly store: FleetStore;
  readonly isEnclave: boolean;
  readonly tables: FleetTables | undefined;
  readonly missing: Missing | undefined;
  readonly keys: FleetKeys;
  readonly onReleased: (message: SlashableMessage, signer: FleetSigner) => void;
  readonly trace?: BindingTrace | undefined;
}

export class FleetSigner {
  readonly options: SignerOptions;
  readonly #time: WorldTime;
  #clock: SignerClock;
  #running: Running | undefined;
  #look: Promise<void> | undefined;
  isFrozen = false;
  /** Nobody asks it, and it does not freeze. */
  #isHeld = false;
  readonly #asking = new Set<Promise<string | readonly string[]>>();
  /** How far its wall clock is off. */
  #offMs = 0;
  /** The step of the world in which it started last. */
  startedAt = 0;

  constructor(options: SignerOptions, time: WorldTime) {
    this.options = options;
    this.#time = time;
    this.#clock = signerClock(time, 0);
  }

  /** Another clock, which is right: of a table, a database, a time service. */
  get #witness(): Witness {
    return { name: 'the world', ask: async () => ({ time: this.#time.now(), confirms: true }) };
  }

  get name(): string {
    return this.options.name;
  }

  get isRunning(): boolean {
    return this.#running !== undefined;
  }

  get running(): Running {
    if (this.#running === undefined) throw new Killed(`${this.name} is not running`);
    return this.#running;
  }

  get mayManage(): boolean {
    return this.isRunning && !this.isFrozen && this.#running?.binding?.hindrance === undefined;
  }

  /** @throws when the store cannot be used */
  async start(step: number, isFreshTable = false): Promise<void> {
    const { store, missing, tables, isEnclave, trace } = this.options;
    this.#clock = signerClock(this.#time, this.#offMs);
    const clock = this.#clock;
    const own = gate();
    const opened = withoutProtection(await store.open(), missing);
    const replica = `${this.name} ${step}`;
    const about = { replica, isFreshTable, clock };
    const traced = tables === undefined || trace === undefined ? undefined : new SignerTrace(trace, about);
    const backend = behindGate(traced?.behind(opened) ?? opened, own);
    const isFloored = isEnclave && missing !== 'local_floor';
    let binding: StoreBinding | undefined;
    const witnesses = [this.#witness];
    const floorOf = confirmedPresent(CHAIN, { now: clock.now, witnesses, needsNoWitness: false });
    // A process that stands still decides nothing.
    const present = async () => {
      await own.pass();
      const floor = await floorOf();
      return store.raisedTo?.(floor) ?? floor;
    };
    const doubts = openDoubts({ store: backend, present, onJump: () => undefined, log: quietLog });
    const ofFile = tables === undefined && missing !== 'closed_mark' ? opened.doubt : undefined;
    for (const doubt of [isFloored ? OF_START : undefined, ofFile]) {
      // A start goes on while no clock is confirmed, and signs nothing.
      if (doubt !== undefined) await doubts.settle(doubt).catch(unlessUnconfirmed);
    }
    const restrained = restrainStore(backend, {
      doubts,
      latest: latestBy(() => clock.now(), CHAIN),
      hindrance: () => (traced === undefined ? binding?.hindrance : traced.hindrance(binding?.hindrance)),
      close: async (waitMs) => {
        await binding?.end();
        await opened.close(waitMs);
      },
    });
    const tenures = new TenureBook((publicKeys) => restrained.tenures(publicKeys));
    await tenures.learn();
    const keys = new KeyStore({}, { vault: this.options.keys.vault, clock, tenures });
    const table = tables?.openKeys(keys);
    const slashing = new SlashingProtection(
      restrained,
      {},
      // For the pace of batches alone, which is the machine's.
      { clock: systemClock, log: quietLog },
    );
    if (tables !== undefined && missing !== 'binding') {
      const jump = async () => void (await doubts.settleNow({ cause: 'other_store' }));
      const table = seenFrom(tables.binding, { backend, time: this.#time, missing });
      const parts = { table, backend, jump, clock, log: quietLog };
      binding = new StoreBinding(
        { boundMs: BOUND_MS, isFreshTable, replica },
        traced === undefined
          ? parts
          : { ...parts, table: traced.table(table), backend: traced.before(backend), jump: traced.jump(jump) },
      );
    }
    // The renewal notices a copy that comes back, too, so that without the jump after it there is none.
    const isRenewed = tables === undefined && missing !== 'renewal' && missing !== 'restored_jump';
    const renew = isRenewed ? renewIncarnations(backend, doubts.settle) : undefined;
    const inFlight = inFlightSigning();
    const loading = {
      keys,
      pool: this.options.keys.pool,
      table: table as never,
      imported: undefined,
      reload: undefined,
      loaded: Promise.resolve(),
      progress: () => undefined,
    };
    const { management } = await keyRoutes(
      CONFIG,
      { loading, network: NETWORK, inFlight, turns: keyTurns(), store: restrained },
      {
        logger: { module: () => quietLog },
      } as never,
    );
    this.startedAt = step;
    const parts = management;
    this.#running = {
      gate: own,
      backend: restrained,
      slashing,
      store: keys,
      parts,
      inFlight,
      binding,
      doubts,
      renew,
      traced,
      loader: table?.loader,
    };
    await this.look();
    keys.completeFirstLoad();
  }

  /** What its timers do: a look at the key table, and a heartbeat. Never rejects. */
  look(): Promise<void> {
    const running = this.#running;
    if (running === undefined || this.isFrozen) return Promise.resolve();
    this.#look ??= (async () => {
      await running.loader?.refresh().catch(() => undefined);
      await running.binding?.beat();
      await running.renew?.().catch(() => undefined);
    })().finally(() => {
      this.#look = undefined;
    });
    return this.#look;
  }

  /** `signed`, or why not. */
  ask(message: SlashableMessage): Promise<string> {
    const running = this.#running;
    if (running === undefined || this.isFrozen || this.#isHeld) return Promise.resolve('unreachable');
    const asking = this.#askRunning(message, running).finally(() => this.#asking.delete(asking));
    this.#asking.add(asking);
    return asking;
  }

  async #askRunning(message: SlashableMessage, running: Running): Promise<string> {
    const key = running.store.find(message.publicKey);
    if (key === undefined) return 'unknown_key';
    running.inFlight.begin(message.publicKey);
    try {
      const { tenure } = key;
      const outcome = await running.slashing.check({ ...message, tenure });
      if (outcome.kind === 'refused') {
        if (outcome.reason === 'key_retired') running.store.noteRefused(key.publicKey, tenure);
        return outcome.reason;
      }
      // As long as a signature takes.
      await setImmediate();
      await running.gate.pass();
      assertMayRelease(running.backend);
      this.options.onReleased(message, this);
      return 'signed';
    } catch (error) {
      if (error instanceof SignerError) return error.reason;
      if (error instanceof Killed) return 'died';
      throw error;
    } finally {
      running.inFlight.end(message.publicKey);
    }
  }

  /** `signed`, or why not, of each message; all of different keys. */
  askBatch(messages: readonly SlashableMessage[]): Promise<readonly string[]> {
    const running = this.#running;
    if (running === undefined || this.isFrozen || this.#isHeld) {
      return Promise.resolve(messages.map(() => 'unreachable'));
    }
    const asking = this.#askBatchRunning(messages, running).finally(() => this.#asking.delete(asking));
    this.#asking.add(asking);
    return asking;
  }

  async #askBatchRunning(messages: readonly SlashableMessage[], running: Running): Promise<readonly string[]> {
    const here = messages.flatMap((message) => {
      const key = running.store.find(message.publicKey);
      return key === undefined ? [] : [{ ...message, tenure: key.tenure }];
    });
    const unknown = Array.from({ length: messages.length - here.length }, () => 'unknown_key');
    for (const { publicKey } of here) running.inFlight.begin(publicKey);
    try {
      const outcomes = await running.slashing.checkGroup(here, new AbortController().signal);
      await setImmediate();
      await running.gate.pass();
      assertMayRelease(running.backend);
      return [...unknown, ...here.map((message, place) => this.#answerOf(message, outcomes[place]))];
    } catch (error) {
      if (error instanceof SignerError) return messages.map(() => error.reason);
      if (error instanceof Killed) return messages.map(() => 'died');
      throw error;
    } finally {
      for (const { publicKey } of here) running.inFlight.end(publicKey);
    }
  }

  #answerOf(message: SlashableMessage, outcome: GroupCheckOutcome | undefined): string {
    if (outcome?.kind === 'refused') return outcome.reason;
    if (outcome?.kind === 'safe') {
      this.options.onReleased(message, this);
      return 'signed';
    }
    if (outcome?.error instanceof SignerError) return outcome.error.reason;
    if (outcome?.error instanceof Killed) return 'died';
    throw outcome?.error ?? new Error('a message of the batch got no answer');
  }

  /** Nobody asks it any more, and it does not freeze. Resolves when what was asked is answered. */
  async hold(): Promise<void> {
    this.#isHeld = true;
    await Promise.all(this.#asking);
  }

  letGo(): void {
    this.#isHeld = false;
  }

  freeze(kind: Freeze): void {
    if (this.#running === undefined || this.isFrozen || this.#isHeld) return;
    this.isFrozen = true;
    this.#clock.freeze(kind);
    this.#running.gate.close();
  }

  thaw(): void {
    if (!this.isFrozen) return;
    this.isFrozen = false;
    this.#clock.thaw();
    this.#running?.gate.open();
  }

  /** The latest that it takes a message of, by its own clock. */
  latest(): StoreFloor {
    return floorAt(this.#clock.now(), CHAIN);
  }

  /** The wall clock steps, and stays so at later starts. */
  setClock(offMs: number): void {
    this.#offMs = offMs;
    this.#clock.set(offMs);
  }

  /** Nothing that was under way goes on. */
  async kill(): Promise<void> {
    this.#running?.gate.kill();
    await this.stop();
  }

  /** In order: what is under way ends first. */
  async stop(): Promise<void> {
    this.thaw();
    const running = this.#running;
    if (running === undefined) return;
    this.#running = undefined;
    running.traced?.stopped();
    running.binding?.stop();
    running.doubts.close();
    await running.loader?.stop();
    await running.slashing.close();
    // What a process was about to do ends with it.
    running.gate.kill();
  }
}
