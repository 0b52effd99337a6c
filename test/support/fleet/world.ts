// A world of signers, stores and keys that lives by random steps under a seed: clients ask while keys move, stores lose
// commits, signers freeze, die and come back, and time passes. It notes every signature that is released, and what led
// there.

import { setTimeout as pause } from 'node:timers/promises';
import { SignerError } from '../../../signer/api/errors.ts';
import type { SlashableMessage } from '../../../signer/slashing/types.ts';
import { Killed, type Missing } from './gate.ts';
import type { FleetKey, FleetKeys } from './keys.ts';
import { randomMessage, textOf } from './messages.ts';
import { type Random, randomChoices } from './random.ts';
import type { FleetSigner } from './signer.ts';
import { post, type Site } from './sites.ts';
import { EPOCH_MS, type WorldTime, worldTime } from './time.ts';

const KEYS = 10;
/** In one burst, at most. */
const REQUESTS_OF_A_KEY = [2, 2, 3, 4, 6, 12];
/** What waits for a frozen signer is left to later steps after so long. */
const PATIENCE_MS = 20;
const TICK_MS = 2_000;
/** Released messages of a key that later ones may be rivals of. */
const RIVALS = 40;

/** Draws one, and begins it. */
export type FleetEvents = (world: FleetWorld, random: Random) => Promise<void>;

export class FleetWorld {
  readonly seed: number;
  readonly missing: Missing | undefined;
  readonly time: WorldTime = worldTime();
  readonly keys: readonly FleetKey[];
  sites: readonly Site[] = [];
  step = 0;
  asked = 0;
  moves = 0;
  /** When the folder of the lone signer was set aside. */
  asideSince: number | undefined;
  readonly #random: Random;
  readonly #beginEvent: FleetEvents;
  readonly outcomes = new Map<string, number>();
  readonly notes: string[] = [];
  readonly #tasks = new Set<Promise<void>>();
  readonly #frozen = new Map<FleetSigner, number>();

  constructor({ seed, missing }: Pick<FleetWorld, 'seed' | 'missing'>, keys: FleetKeys, beginEvent: FleetEvents) {
    this.seed = seed;
    this.missing = missing;
    this.#random = randomChoices(seed);
    this.keys = keys.make(KEYS);
    this.#beginEvent = beginEvent;
  }

  note(text: string): void {
    this.notes.push(`step ${this.step}: ${text}`);
  }

  release(message: SlashableMessage, signer: FleetSigner): void {
    const key = this.keys.find(({ publicKey }) => publicKey === message.publicKey);
    const note = `step ${this.step}: ${signer.name} signed ${textOf(message)}`;
    key?.released.push({ message, store: signer.options.store.name, note });
  }

  async begin(): Promise<void> {
    for (const site of this.sites) {
      // The signer whose store the fleet signs over at first.
      const chosen = site.signers[this.seed % site.signers.length];
      for (const signer of site.signers) await signer.start(0, site.binding !== undefined && signer === chosen);
    }
    for (const [index, key] of this.keys.entries()) {
      const site = this.sites[index % this.sites.length];
      const first = site?.signers[this.seed % site.signers.length];
      if (site === undefined || first === undefined) throw new Error('a site has a signer');
      const others = site.signers.filter((signer) => signer !== first);
      await post(first, key, undefined, site.binding !== undefined);
      if (site.binding === undefined) for (const other of others) await post(other, key, undefined, false);
      key.site = site.name;
    }
  }

  /** One step. */
  async live(): Promise<void> {
    this.step += 1;
    const random = this.#random;
    for (const [signer, until] of this.#frozen) {
      if (until > this.step) continue;
      this.#frozen.delete(signer);
      signer.thaw();
      this.note(`${signer.name} wakes up`);
    }
    await this.#pass(random);
    const before = this.burst();
    for (let events = random.below(4); events > 0; events--) this.#happen(random);
    if (random.chance(0.1)) this.#freezeOne(random);
    const after = this.burst();
    await Promise.all([before, after].map((burst) => this.#unlessFrozen(burst)));
    // Work that nobody frozen holds up ends before the next step, more often than not.
    if (random.chance(0.7)) await this.#unlessFrozen(Promise.all(this.#tasks));
  }

  /** Clients ask, at many signers at once. */
  async burst(): Promise<void> {
    const random = this.#random.fork();
    const most = random.pick(REQUESTS_OF_A_KEY);
    const asking = this.keys.flatMap((key) =>
      Array.from({ length: random.below(most) }, () => this.#askOne(key, random)),
    );
    // Drawn last, so that a seed asks what it asked before there were batches.
    const batches = random.chance(0.3) ? 1 + random.below(2) : 0;
    for (let batch = 0; batch < batches; batch++) asking.push(this.#askBatch(random));
    await Promise.all(asking);
  }

  /** Everybody is awake, and what was begun ends. */
  async settle(): Promise<void> {
    while (this.#tasks.size > 0) {
      // What still goes on may freeze one more.
      for (const { signers } of this.sites) for (const signer of signers) signer.thaw();
      this.#frozen.clear();
      await Promise.race([Promise.all(this.#tasks), pause(PATIENCE_MS)]);
    }
    for (let more = 0; more < 3; more++) await this.burst();
  }

  async end(): Promise<void> {
    for (const { signers } of this.sites) for (const signer of signers) await signer.kill();
    await Promise.allSettled(this.#tasks);
  }

  async #askOne(key: FleetKey, random: Random): Promise<void> {
    const home = this.sites.find(({ name }) => name === key.site);
    const site = home === undefined || random.chance(0.2) ? random.pick(this.sites) : home;
    const signer = random.pick(site.signers);
    const earlier = key.released.slice(-RIVALS).map(({ message }) => message);
    const isUnbounded = site.isEnclave;
    const asked = { publicKey: key.publicKey, latest: this.time.latest(), earlier, isUnbounded };
    this.asked += 1;
    const outcome = await signer.ask(randomMessage(asked, random));
    this.outcomes.set(outcome, (this.outcomes.get(outcome) ?? 0) + 1);
  }

  /**
   * One message for several keys, as validators of one duty ask for it: often a rival of what one of them signed. Not
   * counted in `asked`.
   */
  async #askBatch(random: Random): Promise<void> {
    const signer = random.pick(random.pick(this.sites).signers);
    const { publicKey, released } = random.pick(this.keys);
    const earlier = released.slice(-RIVALS).map(({ message }) => message);
    const isUnbounded = this.sites.some((site) => site.isEnclave && site.signers.includes(signer));
    const message = randomMessage({ publicKey, latest: this.time.latest(), earlier, isUnbounded }, random);
    const keys = this.keys.filter(() => random.chance(0.7));
    const outcomes = await signer.askBatch(keys.map((key) => ({ ...message, publicKey: key.publicKey })));
    for (const outcome of outcomes) this.outcomes.set(outcome, (this.outcomes.get(outcome) ?? 0) + 1);
    const signed = outcomes.filter((outcome) => outcome === 'signed').length;
    this.outcomes.set('signed in batches', (this.outcomes.get('signed in batches') ?? 0) + signed);
  }

  async #pass(random: Random): Promise<void> {
    const signers = this.sites.filter(({ binding }) => binding !== undefined).flatMap((site) => site.signers);
    const look = () => this.#unlessFrozen(Promise.all(signers.map((signer) => signer.look())));
    if (random.chance(0.02)) {
      const epochs = random.pick([10, 520, 4_200]);
      this.time.pass(epochs * EPOCH_MS);
      this.note(`${epochs} epochs pass`);
      await look();
      return;
    }
    const milliseconds = random.pick([0, 1_000, 2_000, 4_000, 8_000, 16_000, 40_000]);
    for (let passed = 0; passed < milliseconds; passed += TICK_MS) {
      this.time.pass(Math.min(TICK_MS, milliseconds - passed));
      await look();
      // What costs most is what signers look up at each tick; clients ask meanwhile.
      await this.#unlessFrozen(this.burst());
    }
  }

  /** Beside the steps: what fails because its signer or store is gone is tried again by a later step. */
  #happen(random: Random): void {
    const task: Promise<void> = this.#beginEvent(this, random)
      .catch((error: unknown) => {
        if (error instanceof SignerError || error instanceof Killed) this.note(`failed: ${error.message}`);
        else throw error;
      })
      .finally(() => this.#tasks.delete(task));
    this.#tasks.add(task);
  }

  #freezeOne(random: Random): void {
    const signer = random.pick(random.pick(this.sites).signers);
    if (random.chance(0.3)) void signer.look();
    this.freeze(signer, random);
  }

  freeze(signer: FleetSigner, random: Random): void {
    if (!signer.isRunning || signer.isFrozen) return;
    signer.freeze(random.pick(['stopped', 'suspended']));
    this.#frozen.set(signer, this.step + 1 + random.below(12));
    this.note(`${signer.name} freezes`);
  }

  /** Wait for it, but not for what a frozen signer keeps from ending. */
  async #unlessFrozen(work: Promise<unknown>): Promise<void> {
    const task: Promise<void> = work.then(() => undefined).finally(() => this.#tasks.delete(task));
    this.#tasks.add(task);
    do await Promise.race([task, pause(PATIENCE_MS)]);
    while (this.#tasks.has(task) && this.#frozen.size === 0);
  }
}
