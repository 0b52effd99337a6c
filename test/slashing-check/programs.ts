// Real signers, each a process, over the three real stores: two share a PostgreSQL, two a DynamoDB, one has SQLite.
// Clients ask at random while processes are killed (SIGKILL) and frozen (SIGSTOP), keys leave by DELETE and come by
// POST with their file, older files are imported once more, stores are pruned, and another network's signers, files and
// messages come in between. Notes each signature that was released, by its own bytes: nothing of the signer's roots.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { DynamoDBServer } from '../../rehearsal/dynamodb.ts';
import { type RunningSigner, runStrongroom } from '../../rehearsal/signer.ts';
import { tableDefinition } from '../../signer/aws/table-definition.ts';
import type { SlashableMessage } from '../../signer/slashing/types.ts';
import { type Deployment, deploy } from '../support/deployment.ts';
import type { Random } from '../support/fleet/random.ts';
import { randomChoices } from '../support/fleet/random.ts';
import { encryptKeystore, publicKeyOf, testSecret } from '../support/keys.ts';
import type { PostgresServer } from '../support/postgres.ts';
import { attestation, block, forkInfo, rootOf, TEST_TOKEN } from '../support/requests.ts';
import { type SlashablePair, slashablePairs } from '../support/slashing-checker.ts';
import { ask, type Reply } from './asking.ts';

const SIGN = '/api/v1/eth2/sign';
const KEYSTORES = '/eth/v1/keystores';
const KEYS = 8;
const PASSWORD = 'TEST password';
const PERSIST_SECRET = 'TEST persist secret 0001';
const FOREIGN_ROOT = rootOf(0x77);
const SCOPES = ['sign', 'public_keys', 'list_keys', 'import_keystores', 'delete_keys', 'slashing_protection'];
const VARIANTS = 3;
const FROZEN_MS = [100, 300, 1_000];
const CLIENTS = 3;
const BURSTS_OF_A_ROUND = 6;
/** Clients ask on while they take place, and wait when there are more: so each message keeps its share of them. */
const EVENTS_AT_ONCE = 4;
/** What a signer of another network says of the store. */
const OF_ANOTHER_NETWORK = /another network|genesis validators root/i;
/** What a process says that ends because its store did not answer in time, on a busy machine. */
const UNAVAILABLE = /unavailable/;
const STARTS = 5;
/** Of imports. */
const LOST_ANSWERS = 0.1;

interface CheckedKey {
  readonly publicKey: string;
  readonly keystore: string;
  readonly released: SlashableMessage[];
  readonly oldFiles: string[];
  place: Place | undefined;
  file: string | undefined;
  isBusy: boolean;
}

class Replica {
  readonly #deployment: Deployment;
  readonly #env: Readonly<Record<string, string>>;
  readonly #foreign: Readonly<Record<string, unknown>>;
  signer: RunningSigner | undefined;
  isFrozen = false;

  constructor(config: Record<string, unknown>, env: Readonly<Record<string, string>>) {
    this.#deployment = deploy(0, {
      http: { key_manager_api: { enabled: true } },
      key_sources: { memory: { persist_dir: 'imported', persist_secret: 'env:PERSIST' } },
      static_auth: {
        policies: [{ name: 'full', rules: [{ effect: 'allow', scopes: SCOPES }] }],
        tokens: [{ secret: TEST_TOKEN, policies: ['full'] }],
      },
    });
    const path = { path: join(this.#deployment.folder, 'slashing_protection.sqlite') };
    // The record is the subject: a jump after each kill would refuse all that is asked.
    this.#deployment.config['anti_slashing'] = { jump_after_unclean_end: false, ...path, ...config };
    this.#foreign = { ...this.#deployment.config, network: 'hoodi', key_sources: {} };
    this.#env = { ...env, PERSIST: PERSIST_SECRET };
    mkdirSync(join(this.#deployment.folder, 'imported'), { mode: 0o700 });
  }

  async start(): Promise<void> {
    for (let left = STARTS; this.signer === undefined; left--) {
      try {
        this.signer = await this.#deployment.start({ env: this.#env, keepsLog: false });
      } catch (error) {
        if (left === 0 || !UNAVAILABLE.test(String(error))) throw error;
      }
    }
  }

  async kill(): Promise<void> {
    const { signer } = this;
    this.signer = undefined;
    await signer?.kill();
  }

  async stop(): Promise<void> {
    const { signer } = this;
    this.signer = undefined;
    await signer?.stop();
  }

  freeze(): void {
    if (this.signer === undefined) return;
    process.kill(this.signer.pid, 'SIGSTOP');
    this.isFrozen = true;
  }

  thaw(): void {
    if (this.isFrozen && this.signer !== undefined) process.kill(this.signer.pid, 'SIGCONT');
    this.isFrozen = false;
  }

  slashing(...args: string[]): ReturnType<typeof runStrongroom> {
    const config = join(this.#deployment.folder, 'strongroom.yaml');
    return runStrongroom(['slashing', ...args, '-c', config], { env: this.#env });
  }

  /** A signer of another network over the same store: what it ended with; undefined when it came up. */
  async startForeign(): Promise<string | undefined> {
    const { folder } = deploy(0);
    try {
      const options = { config: this.#foreign, env: this.#env, folder };
      const stranger = await this.#deployment.start(options);
      await stranger.kill();
      return undefined;
    } catch (error) {
      return String(error);
    }
  }
}

interface Place {
  readonly name: string;
  readonly replicas: readonly Replica[];
}

export interface ProgramResult {
  readonly asked: number;
  readonly outcomes: ReadonlyMap<string, number>;
  readonly events: ReadonlyMap<string, number>;
  readonly pairs: readonly SlashablePair[];
  /** What another network got that it must not get. */
  readonly trespasses: readonly string[];
}

export interface ProgramOptions {
  readonly seed: number;
  readonly messages: number;
  /** After each round that left nothing slashable. */
  readonly onProgress: (asked: number, signed: number) => void;
}

interface Services {
  readonly postgres: PostgresServer;
  readonly dynamodb: DynamoDBServer;
}

/** Each over a file of its own, as if they shared it: what must not be done, for the test of this test. */
export async function runDividedPrograms(options: ProgramOptions): Promise<ProgramResult> {
  const run = new ProgramRun(options, [{ name: 'divided', replicas: [new Replica({}, {}), new Replica({}, {})] }]);
  try {
    return await run.toItsEnd();
  } finally {
    await run.close();
  }
}

/** The databases are new and empty. */
export async function runPrograms(options: ProgramOptions, { postgres, dynamodb }: Services): Promise<ProgramResult> {
  const table = `slashing_check_${options.seed}`;
  await dynamodb.createTable(tableDefinition(table));
  const aws = {
    AWS_ENDPOINT_URL_DYNAMODB: dynamodb.endpoint,
    AWS_REGION: 'eu-central-1',
    AWS_ACCESS_KEY_ID: 'TEST',
    AWS_SECRET_ACCESS_KEY: 'TEST',
  };
  const url = { SVC_ANTI_SLASHING__URL: postgres.url(await postgres.createDatabase()) };
  const replicas = (count: number, config: Record<string, unknown>, env: Record<string, string>) =>
    Array.from({ length: count }, () => new Replica(config, env));
  const run = new ProgramRun(options, [
    { name: 'sqlite', replicas: replicas(1, {}, {}) },
    { name: 'postgres', replicas: replicas(2, { backend: 'postgres' }, url) },
    { name: 'dynamodb', replicas: replicas(2, { backend: 'dynamodb', table }, aws) },
  ]);
  try {
    return await run.toItsEnd();
  } finally {
    await run.close();
  }
}

class ProgramRun {
  readonly #options: ProgramOptions;
  readonly #places: readonly Place[];
  readonly #random: Random;
  readonly #keys: readonly CheckedKey[];
  readonly #outcomes = new Map<string, number>();
  readonly #events = new Map<string, number>();
  readonly #trespasses: string[] = [];
  readonly #busy = new Set<Replica>();
  readonly #underWay = new Set<Promise<void>>();
  #asked = 0;
  #epoch = 100;

  constructor(options: ProgramOptions, places: readonly Place[]) {
    this.#options = options;
    this.#places = places;
    this.#random = randomChoices(options.seed);
    this.#keys = Array.from({ length: KEYS }, (_, number) => ({
      publicKey: publicKeyOf(testSecret(number)),
      keystore: JSON.stringify(encryptKeystore(testSecret(number), PASSWORD)),
      released: [],
      oldFiles: [],
      place: undefined,
      file: undefined,
      isBusy: false,
    }));
  }

  async toItsEnd(): Promise<ProgramResult> {
    for (const { replicas } of this.#places) for (const replica of replicas) await replica.start();
    for (const [index, key] of this.#keys.entries()) {
      const place = this.#places[index % this.#places.length];
      if (place !== undefined && (await this.#arrive(key, place)) !== 'refused') key.place = place;
    }
    while (this.#asked < this.#options.messages && this.#pairs().length === 0) {
      this.#options.onProgress(this.#asked, this.#outcomes.get('200') ?? 0);
      this.#epoch += 1;
      for (let events = this.#random.below(3); events > 0; events--) this.#begin(this.#event(this.#random.fork()));
      const clients = Array.from({ length: CLIENTS }, async () => {
        for (let burst = 0; burst < BURSTS_OF_A_ROUND; burst++) await this.#burst();
      });
      await Promise.all(clients);
      while (this.#underWay.size > EVENTS_AT_ONCE) await Promise.race(this.#underWay);
    }
    await Promise.all(this.#underWay);
    // What was released anywhere is asked for once more, against itself.
    for (let more = 0; more < 3; more++) await this.#burst();
    return {
      asked: this.#asked,
      outcomes: this.#outcomes,
      events: this.#events,
      pairs: this.#pairs(),
      trespasses: this.#trespasses,
    };
  }

  #pairs(): SlashablePair[] {
    return slashablePairs(this.#keys.flatMap(({ released }) => released));
  }

  #begin(event: Promise<void>): void {
    const begun: Promise<void> = event.finally(() => this.#underWay.delete(begun));
    this.#underWay.add(begun);
  }

  async close(): Promise<void> {
    await Promise.allSettled(this.#underWay);
    for (const { replicas } of this.#places) {
      for (const replica of replicas) {
        replica.thaw();
        await replica.kill();
      }
    }
  }

  async #burst(): Promise<void> {
    const random = this.#random.fork();
    const asking = this.#keys.flatMap((key) =>
      Array.from({ length: random.below(6) }, () => this.#askOne(key, random.fork())),
    );
    if (random.chance(0.4)) asking.push(this.#askBatch(random.fork()));
    if (random.chance(0.2)) asking.push(this.#askForeign(random.fork()));
    await Promise.all(asking);
  }

  async #askOne(key: CheckedKey, random: Random): Promise<void> {
    const place = key.place === undefined || random.chance(0.2) ? random.pick(this.#places) : key.place;
    const { signer } = random.pick(place.replicas);
    const [body, message] = this.#message(random);
    // It is down, and is not counted: nobody was asked.
    if (signer === undefined) return;
    this.#asked += 1;
    const answer = await ask(`${signer.url}${SIGN}/${key.publicKey}`, body);
    this.#count(this.#outcomes, answer === undefined ? 'no answer' : String(answer.json['reason'] ?? answer.status));
    if (answer?.status === 200) this.#release(key, message, String(answer.json['signature']));
  }

  async #askBatch(random: Random): Promise<void> {
    const { signer } = random.pick(random.pick(this.#places).replicas);
    const keys = this.#keys.filter(() => random.chance(0.7));
    const [body, message] = this.#message(random);
    const some = keys.map(({ publicKey }) => publicKey);
    if (signer === undefined || some.length === 0) return;
    this.#asked += keys.length;
    const answer = await ask(`${signer.url}${SIGN}`, { identifiers: some, signing_request: body });
    if (answer?.status !== 200) return;
    const results = JSON.parse(answer.text) as { signature?: string }[];
    for (const [index, key] of keys.entries()) {
      const signature = results[index]?.signature;
      this.#count(this.#outcomes, signature === undefined ? 'refused in a batch' : 'signed in a batch');
      if (signature !== undefined) this.#release(key, message, signature);
    }
  }

  async #askForeign(random: Random): Promise<void> {
    const key = random.pick(this.#keys);
    const { signer } = random.pick((key.place ?? random.pick(this.#places)).replicas);
    const [body] = this.#message(random);
    const foreign = { ...body, fork_info: { ...forkInfo(FOREIGN_ROOT) } };
    const answer = signer && (await ask(`${signer.url}${SIGN}/${key.publicKey}`, foreign));
    this.#count(this.#events, 'messages of another network');
    if (answer?.status === 200) this.#trespasses.push(`a message of another network was signed: ${answer.text}`);
  }

  #message(random: Random): [Record<string, unknown>, Omit<SlashableMessage, 'publicKey' | 'signingRoot'>] {
    const variant = rootOf(1 + random.below(VARIANTS));
    if (random.chance(0.3)) {
      const slot = 32 * this.#epoch + random.below(40) - 8;
      return [block({ slot, body: variant }), { kind: 'block', slot }] as never;
    }
    const target = this.#epoch + random.below(6) - 3;
    const source = Math.max(0, target - 1 - random.below(5));
    const vote = { kind: 'attestation', sourceEpoch: source, targetEpoch: target };
    return [attestation({ source, target, head: variant }), vote] as never;
  }

  #release(key: CheckedKey, message: object, signature: string): void {
    const identity = Buffer.from(signature.replace(/^0x/, ''), 'hex');
    key.released.push({ ...message, publicKey: key.publicKey, signingRoot: identity } as unknown as SlashableMessage);
  }

  async #event(random: Random): Promise<void> {
    const place = random.pick(this.#places);
    const replica = random.pick(place.replicas);
    const draw = random.below(100);
    if (draw < 55) return this.#moveOne(random);
    if (draw < 62) return this.#mergeOldFile(random);
    // One process at a time is held, killed or stopped by one event.
    if (this.#busy.has(replica)) return;
    this.#busy.add(replica);
    try {
      await pause(random.below(60));
      if (draw < 78) await this.#kill(replica);
      else if (draw < 90) await this.#freeze(replica, random);
      else if (draw < 96) await this.#prune(place, replica);
      else await this.#comeFromElsewhere(place, replica);
    } finally {
      this.#busy.delete(replica);
    }
  }

  async #kill(replica: Replica): Promise<void> {
    await replica.kill();
    this.#count(this.#events, 'kills');
    await replica.start();
  }

  async #freeze(replica: Replica, random: Random): Promise<void> {
    replica.freeze();
    this.#count(this.#events, 'freezes');
    await pause(random.pick(FROZEN_MS));
    replica.thaw();
  }

  async #prune({ name }: Place, replica: Replica): Promise<void> {
    // Marks alone need no pruning, and a file belongs to its signer.
    if (name === 'dynamodb') return;
    if (name === 'sqlite') await replica.stop();
    const { code, stderr } = await replica.slashing('prune');
    if (code !== 0 && !UNAVAILABLE.test(stderr)) throw new Error(`prune ended with ${code}: ${stderr}`);
    this.#count(this.#events, code === 0 ? 'prunes' : 'prunes without a store');
    if (name === 'sqlite') await replica.start();
  }

  async #comeFromElsewhere({ name }: Place, replica: Replica): Promise<void> {
    if (name === 'sqlite') await replica.stop();
    const end = await replica.startForeign();
    const isRefused = OF_ANOTHER_NETWORK.test(end ?? '');
    this.#count(this.#events, isRefused ? 'signers of another network' : 'signers of another network, no store');
    if (end === undefined) this.#trespasses.push('a signer of another network began over the store');
    else if (!isRefused && !UNAVAILABLE.test(end))
      throw new Error(`a signer of another network ended otherwise: ${end}`);
    if (name === 'sqlite') await replica.start();
  }

  async #moveOne(random: Random): Promise<void> {
    const waiting = this.#keys.filter(({ isBusy }) => !isBusy);
    if (waiting.length === 0) return;
    const key = random.pick(waiting);
    key.isBusy = true;
    try {
      await pause(random.below(40));
      if (key.place !== undefined) await this.#leave(key, key.place, random);
      const target = random.pick(this.#places);
      if (key.place === undefined && key.file !== undefined) await this.#bring(key, target);
    } finally {
      key.isBusy = false;
    }
  }

  /** Without an answer the key may be there, or come yet: it is taken away from there before it goes anywhere else. */
  async #bring(key: CheckedKey, target: Place): Promise<void> {
    const arrived = await this.#arrive(key, target);
    if (arrived === 'refused') return;
    key.place = target;
    if (arrived === 'unknown') return this.#count(this.#events, 'imports without an answer');
    if (key.file !== undefined) key.oldFiles.push(key.file);
    key.file = undefined;
    this.#count(this.#events, `moves to ${target.name}`);
  }

  /** The file of the first replica that answers; it is asked for before any other store gets the key. */
  async #leave(key: CheckedKey, place: Place, random: Random): Promise<void> {
    const { replicas } = place;
    const { signer } = random.pick(replicas);
    const body = { pubkeys: [key.publicKey] };
    const answer = signer && (await ask(`${signer.url}${KEYSTORES}`, body, 'DELETE'));
    if (answer?.status !== 200) return;
    const [result] = answer.json['data'] as { status: string }[];
    if (result?.status === 'not_found' && key.file !== undefined) return this.#bring(key, place);
    if (result?.status !== 'deleted' && result?.status !== 'not_active') return;
    key.file = String(answer.json['slashing_protection']);
    key.place = undefined;
    this.#count(this.#events, 'removals');
    // Some other replica keeps its copy: it has to refuse.
    for (const { signer: other } of replicas) {
      if (other === undefined || other === signer || random.chance(0.5)) continue;
      await ask(`${other.url}${KEYSTORES}`, body, 'DELETE');
    }
  }

  async #arrive(key: CheckedKey, { replicas }: Place): Promise<'imported' | 'refused' | 'unknown'> {
    const body = { keystores: [key.keystore], passwords: [PASSWORD], slashing_protection: key.file };
    let arrived: 'imported' | 'refused' | 'unknown' = 'refused';
    for (const { signer } of replicas) {
      if (signer === undefined) continue;
      const url = `${signer.url}${KEYSTORES}`;
      let status = firstStatus(await ask(url, body));
      if (status === 'duplicate') {
        // Its copy was never taken away here: it goes, and comes with the file.
        await ask(url, { pubkeys: [key.publicKey] }, 'DELETE');
        status = firstStatus(await ask(url, body));
      }
      // Lost on the way, as one that comes after the limit of its request.
      if (this.#random.chance(LOST_ANSWERS)) status = undefined;
      if (status === 'imported') arrived = status;
      else if (status === undefined && arrived === 'refused') arrived = 'unknown';
    }
    return arrived;
  }

  /** And one that says it is of another network. */
  async #mergeOldFile(random: Random): Promise<void> {
    const key = random.pick(this.#keys);
    const { signer } = random.pick((key.place ?? random.pick(this.#places)).replicas);
    const file = key.oldFiles.at(random.below(key.oldFiles.length || 1));
    if (signer === undefined || file === undefined) return;
    const url = `${signer.url}/api/v1/chamber/slashing-protection`;
    const answer = await ask(url, file);
    if (answer?.status === 200) this.#count(this.#events, 'older files');
    const foreign = JSON.parse(file);
    foreign.metadata.genesis_validators_root = FOREIGN_ROOT;
    const refused = await ask(url, foreign);
    this.#count(this.#events, 'files of another network');
    if (refused?.status === 200) this.#trespasses.push('a file of another network was merged');
  }

  #count(counts: Map<string, number>, name: string): void {
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
}

function firstStatus(answer: Reply | undefined): string | undefined {
  return answer?.status === 200 ? (answer.json['data'] as { status: string }[])[0]?.status : undefined;
}
