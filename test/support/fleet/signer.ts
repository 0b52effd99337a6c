// One signer of the model: the parts of the real program that decide whether a slashable message is signed, put
// together as boot does it, with clocks of its own, in this process. It can be frozen, killed, stopped and started
// again; what it remembers ends with it. A signature is what `ask` calls signed: nothing is computed with keys.

import { setImmediate } from 'node:timers/promises';
import { SignerError } from '../../../enclave/api/errors.ts';
import { keyRoutes } from '../../../enclave/boot/http-application/key-routes.ts';
import { StoreBinding } from '../../../enclave/chamber/store-binding.ts';
import { KeyStore } from '../../../enclave/keys/store.ts';
import { keyTurns } from '../../../enclave/keys/turns.ts';
import { inFlightSigning } from '../../../enclave/signing/in-flight.ts';
import type { GroupCheckOutcome } from '../../../enclave/slashing/group-checks.ts';
import { floorAt, type JumpFloor, jumpFloor, jumpToPresent } from '../../../enclave/slashing/jump.ts';
import { behindLocalFloor } from '../../../enclave/slashing/local-floor.ts';
import { SlashingProtection } from '../../../enclave/slashing/protection.ts';
import type { SlashableMessage } from '../../../enclave/slashing/types.ts';
import { systemClock } from '../../../observe/clock.ts';
import { quietLog } from '../slashing.ts';
import { behindGate, gate, Killed, type Missing, withoutProtection } from './gate.ts';
import type { FleetKeys } from './keys.ts';
import { BOUND_MS, CONFIG, type FleetTables, NETWORK, type Running, raisedOnce } from './signer-parts.ts';
import type { FleetStore } from './stores.ts';
import { CHAIN, type Freeze, type SignerClock, signerClock, type WorldTime } from './time.ts';

export interface SignerOptions {
  readonly name: string;
  readonly store: FleetStore;
  readonly isEnclave: boolean;
  readonly tables: FleetTables | undefined;
  readonly missing: Missing | undefined;
  readonly keys: FleetKeys;
  readonly onReleased: (message: SlashableMessage, signer: FleetSigner) => void;
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
  /** The step of the world in which it started last. */
  startedAt = 0;

  constructor(options: SignerOptions, time: WorldTime) {
    this.options = options;
    this.#time = time;
    this.#clock = signerClock(time);
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
    const { store, missing, tables, isEnclave } = this.options;
    this.#clock = signerClock(this.#time);
    const clock = this.#clock;
    const own = gate();
    const floorOf = jumpFloor(CHAIN, () => clock.now());
    // A process that stands still decides nothing, also inside its store.
    const whileAwake: JumpFloor = (highest) => {
      if (this.isFrozen) throw new SignerError('slashing_unavailable');
      return floorOf(highest);
    };
    const opened = withoutProtection(await store.open(whileAwake), missing);
    let backend = behindGate(opened, own);
    if (isEnclave && missing !== 'local_floor') {
      const floor = floorOf(await opened.highestMarks());
      backend = behindLocalFloor(backend, { floor, latest: () => floorAt(clock.now(), CHAIN) });
    }
    const keys = new KeyStore({}, { vault: this.options.keys.vault, clock });
    const table = tables?.openKeys(keys);
    let binding: StoreBinding | undefined;
    const slashing = new SlashingProtection(
      backend,
      { hindrance: () => binding?.hindrance, onRollback: raisedOnce(backend, floorOf) },
      // For the pace of batches alone, which is the machine's.
      { clock: systemClock, log: quietLog },
    );
    if (tables !== undefined && missing !== 'binding') {
      const jump = async (revision: number) => void (await jumpToPresent(backend, floorOf, revision));
      binding = new StoreBinding(
        { boundMs: BOUND_MS, isFreshTable, replica: `${this.name} ${step}`, seat: store.seat() },
        { table: tables.binding, backend, jump, clock, log: quietLog },
      );
    }
    const inFlight = inFlightSigning();
    const loading = {
      keys,
      pool: this.options.keys.pool,
      table: table as never,
      imported: undefined,
      reload: undefined,
      loaded: Promise.resolve(),
    };
    const { management } = keyRoutes(
      CONFIG,
      { loading, network: NETWORK, inFlight, turns: keyTurns(), slashing, binding },
      {
        logger: { module: () => quietLog },
      } as never,
    );
    this.startedAt = step;
    const parts = management;
    this.#running = { gate: own, backend, slashing, store: keys, parts, inFlight, binding, loader: table?.loader };
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
    if (running.store.find(message.publicKey) === undefined) return 'unknown_key';
    running.inFlight.begin(message.publicKey);
    try {
      const outcome = await running.slashing.check(message);
      if (outcome.kind === 'refused') return outcome.reason;
      // As long as a signature takes.
      await setImmediate();
      await running.gate.pass();
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
    const here = messages.filter(({ publicKey }) => running.store.find(publicKey) !== undefined);
    const unknown = Array.from({ length: messages.length - here.length }, () => 'unknown_key');
    for (const { publicKey } of here) running.inFlight.begin(publicKey);
    try {
      const outcomes = await running.slashing.checkGroup(here, new AbortController().signal);
      await setImmediate();
      await running.gate.pass();
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
    running.binding?.stop();
    await running.loader?.stop();
    await running.slashing.close();
    // What a process was about to do ends with it.
    running.gate.kill();
  }
}
