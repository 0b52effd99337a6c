// A world of signers, stores and keys that lives by random steps under a seed: clients ask while keys move, stores lose commits,
// signers freeze, die and come back, and time passes. It notes every signature that is released, and what led there.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { SignerError } from '../../../enclave/api/errors.ts';
import type { DynamoDBClient } from '../../../enclave/aws/dynamodb.ts';
import { PRUNE_STEP_ENTRIES } from '../../../enclave/slashing/pruning.ts';
import type { SlashableMessage } from '../../../enclave/slashing/types.ts';
import type { DynamoDBServer } from '../dynamodb.ts';
import { type SlashablePair, slashablePairs } from '../slashing-checker.ts';
import { Killed, type Missing } from './gate.ts';
import { type FleetKey, type FleetKeys, fleetKeys } from './keys.ts';
import { keepCopy, restart, rollBack } from './losses.ts';
import { randomMessage } from './messages.ts';
import { mergeOldFile, move, nameOf, pauseKey } from './moves.ts';
import { type Random, randomChoices } from './random.ts';
import type { FleetSigner } from './signer.ts';
import { isAtHome, openSites, post, postAgain, type Site, startSigner } from './sites.ts';
import { EPOCH_MS, type WorldTime, worldTime } from './time.ts';

const KEYS = 8;
/** In one burst, at most. */
const REQUESTS_OF_A_KEY = [2, 2, 4, 4, 8, 16];
/** What waits for a frozen signer is left to later steps after so long. */
const PATIENCE_MS = 20;
const TICK_MS = 2_000;
/** Of released messages of a key, those that later ones may be rivals of. */
const RIVALS = 40;

export interface WorldOptions {
  readonly seed: number;
  readonly messages: number;
  readonly missing?: Missing | undefined;
}

export interface WorldResult {
  readonly asked: number;
  readonly outcomes: ReadonlyMap<string, number>;
  readonly moves: number;
  /** Empty when nobody could be slashed. */
  readonly violations: readonly string[];
}

export interface WorldServices {
  readonly server: DynamoDBServer;
  readonly client: DynamoDBClient;
}

/** What there is most of in a world; the seed decides which. */
const EMPHASES = [
  { moves: 40, losses: 2, place: undefined },
  { moves: 8, losses: 4, place: undefined },
  { moves: 4, losses: 6, place: 'enclave' },
  { moves: 8, losses: 5, place: 'fleet' },
] as const;

let worlds = 0;

export async function runWorld(options: WorldOptions, services: WorldServices): Promise<WorldResult> {
  const directory = mkdtempSync(join(tmpdir(), 'strongroom-fleet-'));
  const keys = fleetKeys();
  const world = new FleetWorld(options, keys);
  try {
    worlds += 1;
    const id = `fleet-${options.seed}-${worlds}`;
    const { time, missing } = world;
    const onReleased = (message: SlashableMessage, signer: FleetSigner) => world.release(message, signer);
    world.sites = await openSites({ ...services, directory, id, time, keys, missing, onReleased });
    await world.begin();
    while (world.asked < options.messages) await world.live();
    return await world.result();
  } finally {
    await world.end();
    await keys.close();
    rmSync(directory, { recursive: true, force: true });
  }
}

export class FleetWorld {
  readonly seed: number;
  readonly missing: Missing | undefined;
  readonly time: WorldTime = worldTime();
  readonly keys: readonly FleetKey[];
  sites: readonly Site[] = [];
  step = 0;
  asked = 0;
  readonly #random: Random;
  readonly #emphasis: (typeof EMPHASES)[number];
  readonly #outcomes = new Map<string, number>();
  readonly #notes: string[] = [];
  readonly #tasks = new Set<Promise<void>>();
  readonly #frozen = new Map<FleetSigner, number>();
  #moves = 0;

  constructor({ seed, missing }: WorldOptions, keys: FleetKeys) {
    this.seed = seed;
    this.missing = missing;
    this.#random = randomChoices(seed);
    this.#emphasis = EMPHASES[seed % EMPHASES.length] ?? EMPHASES[0];
    this.keys = keys.make(KEYS);
  }

  note(text: string): void {
    this.#notes.push(`step ${this.step}: ${text}`);
  }

  release(message: SlashableMessage, signer: FleetSigner): void {
    const key = this.keys.find(({ publicKey }) => publicKey === message.publicKey);
    const note = `step ${this.step}: ${signer.name} signed ${textOf(message)}`;
    key?.released.push({ message, store: signer.options.store.name, note });
  }

  async begin(): Promise<void> {
    for (const site of this.sites) {
      for (const [index, signer] of site.signers.entries())
        await signer.start(0, site.binding !== undefined && index === 0);
    }
    for (const [index, key] of this.keys.entries()) {
      const site = this.sites[index % this.sites.length];
      const [first, ...others] = site?.signers ?? [];
      if (site === undefined || first === undefined) throw new Error('a site has a signer');
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
    await Promise.all(asking);
  }

  async result(): Promise<WorldResult> {
    for (const { signers } of this.sites) for (const signer of signers) signer.thaw();
    this.#frozen.clear();
    await Promise.all(this.#tasks);
    for (let more = 0; more < 3; more++) await this.burst();
    const violations = this.keys.flatMap((key) =>
      slashablePairs(key.released.map(({ message }) => message)).map((pair) => this.#report(key, pair)),
    );
    return { asked: this.asked, outcomes: this.#outcomes, moves: this.#moves, violations };
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
    this.#outcomes.set(outcome, (this.#outcomes.get(outcome) ?? 0) + 1);
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
    }
  }

  #happen(random: Random): void {
    const { moves, losses, place } = this.#emphasis;
    const site = this.sites.find(({ name }) => name === place && random.chance(0.6)) ?? random.pick(this.sites);
    const chances: readonly (readonly [number, () => Promise<void>])[] = [
      [moves, () => this.#withKey(random, (key, own) => this.#moveOne(key, own))],
      [losses, () => restart(this, site, random.fork())],
      [losses, () => rollBack(this, site, random.fork())],
      [losses, () => this.#keepTableCopy(site, random)],
      [2, () => this.#prune(site, random)],
      [1, () => this.#withKey(random, (key, own) => mergeOldFile(this, key, own))],
      [1, () => this.#withKey(random, (key, own) => pauseKey(this, key, own))],
      [2, () => this.#postMissing(site, random)],
    ];
    let left = random.below(chances.reduce((sum, [weight]) => sum + weight, 0));
    for (const [weight, work] of chances) {
      left -= weight;
      if (left >= 0) continue;
      this.#begin(work);
      return;
    }
  }

  /** Beside the steps: what fails because its signer or store is gone is tried again by a later step. */
  #begin(work: () => Promise<void>): void {
    const task: Promise<void> = work()
      .catch((error: unknown) => {
        if (error instanceof SignerError || error instanceof Killed) this.note(`failed: ${error.message}`);
        else throw error;
      })
      .finally(() => this.#tasks.delete(task));
    this.#tasks.add(task);
  }

  async #withKey(random: Random, work: (key: FleetKey, random: Random) => Promise<void>): Promise<void> {
    // What was begun goes on first, more often than not.
    const waiting = this.keys.filter(({ next, isBusy }) => next !== undefined && !isBusy);
    const key = random.pick(waiting.length > 0 && random.chance(0.8) ? waiting : this.keys);
    if (key.isBusy) return;
    key.isBusy = true;
    try {
      await work(key, random.fork());
    } finally {
      key.isBusy = false;
    }
  }

  async #moveOne(key: FleetKey, random: Random): Promise<void> {
    await move(this, key, random);
    if (key.next === undefined) this.#moves += 1;
  }

  async #keepTableCopy(site: Site, random: Random): Promise<void> {
    const tables = site.stores.filter(({ kind }) => kind === 'dynamodb');
    if (tables.length > 0) await keepCopy(this, site, random.pick(tables));
  }

  async #prune(site: Site, random: Random): Promise<void> {
    const signer = random.pick(site.signers);
    if (!signer.isRunning || signer.isFrozen) return;
    for (let steps = 0; steps < 10; steps++) {
      const pruned = await signer.running.backend.pruneStep(PRUNE_STEP_ENTRIES);
      if (pruned === 0) return;
      this.note(`${signer.name} prunes ${pruned} entries`);
    }
  }

  /** Signers that lost keys of memory get them back; those that could not start are started. */
  #postMissing(site: Site, random: Random): Promise<void> {
    return site.exclusive(async () => {
      for (const signer of site.signers) {
        if (!signer.isRunning) await startSigner(site, signer, this.keys, this.step);
        else if (!signer.isFrozen && site.binding === undefined && random.chance(0.5)) {
          for (const key of this.keys) {
            if (isAtHome(key, site) && signer.running.store.find(key.publicKey) === undefined) {
              await postAgain(signer, key);
            }
          }
        }
      }
    });
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

  #report(key: FleetKey, { offence, one, other }: SlashablePair): string {
    const name = nameOf(this, key);
    const signatures = key.released
      .filter(({ message }) => message === one || message === other)
      .map(({ note }) => note);
    const about = this.#notes.filter((note) => !note.includes(': key ') || note.includes(`: ${name}`));
    return [`seed ${this.seed}, ${name}: ${offence}`, ...signatures, ...about.slice(-60)].join('\n  ');
  }
}

function textOf(message: SlashableMessage): string {
  const root = Buffer.from(message.signingRoot).toString('utf8').replaceAll('\0', '');
  if (message.kind === 'block') return `block ${message.slot} ${root}`;
  return `vote ${message.sourceEpoch}>${message.targetEpoch} ${root}`;
}
