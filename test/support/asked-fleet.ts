// Signers of one state table as processes, on a chain of short epochs in real time, and two clients that ask for votes
// of the present all the time, each for another head: what both clients have got is slashable. TEST keys.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, vi } from 'vitest';
import { type CustodyWorld, startCustody } from '../../rehearsal/custody.ts';
import { type RunningSigner, startSigner } from '../../rehearsal/signer.ts';
import { SLASHING_STORE } from '../../signer/chamber/binding-row.ts';
import { LONGEST_WAIT_MS } from './patience.ts';
import { call, rootOf, signCall, testKey } from './requests.ts';

export const WAIT = { timeout: LONGEST_WAIT_MS, interval: 200 };
const ROOT = rootOf(0x77);
const SLOT_MS = 250;
const EPOCH_MS = 8 * SLOT_MS;
/** So many epochs back a client asks for what it has not got. */
const MISSED_EPOCHS = 8;
const GENESIS_SECONDS = Math.floor(Date.now() / 1000) - 1_000;
export const CHAIN = {
  network: 'custom',
  custom_network: {
    genesis_validators_root: ROOT,
    genesis_time: GENESIS_SECONDS,
    preset: 'minimal',
    slot_duration_ms: SLOT_MS,
    fork_versions: { phase0: '0x10000099', capella: '0x40000099' },
  },
};
export const presentEpoch = () => Math.floor((Date.now() - GENESIS_SECONDS * 1000) / EPOCH_MS);

export function vote(epoch: number, head: string): Record<string, unknown> {
  return {
    type: 'ATTESTATION',
    fork_info: {
      fork: { previous_version: '0x40000099', current_version: '0x40000099', epoch: '0' },
      genesis_validators_root: ROOT,
    },
    attestation: {
      slot: String(epoch * 8),
      index: '0',
      beacon_block_root: head,
      source: { epoch: String(epoch - 1), root: rootOf(3) },
      target: { epoch: String(epoch), root: rootOf(3) },
    },
  };
}

/** Targets that each of two clients has got a vote for, of other heads: what both have is slashable. */
export interface Votes {
  readonly first: Set<number>;
  readonly second: Set<number>;
  pairs(): number[];
}

/** Two clients that ask, as long as the work lasts, whichever signers are there. */
async function whileAsked(
  fleet: { readonly first: () => RunningSigner | undefined; readonly second: () => RunningSigner | undefined },
  token: string | undefined,
  work: (votes: Votes) => Promise<void>,
): Promise<Votes> {
  const [first, second] = [new Set<number>(), new Set<number>()];
  const votes = { first, second, pairs: () => [...first].filter((target) => second.has(target)) };
  const ended = new AbortController();
  const ask = async (signer: () => RunningSigner | undefined, head: string, got: Set<number>) => {
    while (!ended.signal.aborted) {
      const url = signer()?.url;
      // A signer that is frozen answers when it wakes: later epochs are asked for beside it. A client also asks for
      // what it missed, so that what another signer has signed meanwhile is asked for, too.
      for (let epoch = presentEpoch() - MISSED_EPOCHS; epoch <= presentEpoch(); epoch++) {
        if (url === undefined || got.has(epoch)) continue;
        void signCall(url, testKey(0).publicKey, vote(epoch, head), token === undefined ? {} : { token })
          .then(({ status }) => status === 200 && got.add(epoch))
          .catch(() => undefined);
      }
      await pause(EPOCH_MS / 2);
    }
  };
  const asking = [ask(fleet.first, rootOf(1), first), ask(fleet.second, rootOf(2), second)];
  try {
    await work(votes);
  } finally {
    ended.abort();
    await Promise.all(asking);
  }
  return votes;
}

export const signs = (votes: ReadonlySet<number>, more = 1) => {
  const before = votes.size;
  return vi.waitFor(() => expect(votes.size).toBeGreaterThanOrEqual(before + more), WAIT);
};
const size = ({ first, second }: Votes) => first.size + second.size;
export const goesOn = (votes: Votes) => {
  const before = size(votes);
  return vi.waitFor(() => expect(size(votes)).toBeGreaterThanOrEqual(before + 3), WAIT);
};

/** As a supervisor would, when the stand-in of AWS answers too late on a busy machine. */
async function startAgain(start: () => Promise<RunningSigner>): Promise<RunningSigner> {
  try {
    return await start();
  } catch (error) {
    if (!(error instanceof Error && error.message.includes('unreachable: no answer in time'))) throw error;
    return startAgain(start);
  }
}

/** A few rounds of a way at once: most of the time all of them wait. */
const AT_ONCE = 4;

/** Goes all rounds, also after one that failed, and then fails with all that did. */
export async function expectInRounds(rounds: number, way: () => Promise<void>): Promise<void> {
  const failures: unknown[] = [];
  let begun = 0;
  const goOn = async (): Promise<void> => {
    while (begun < rounds) {
      begun += 1;
      await way().catch((error: unknown) => failures.push(error));
    }
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, rounds) }, goOn));
  if (failures.length > 0) throw new AggregateError(failures, `${failures.length} of ${rounds} rounds failed`);
}

export type AskedFleet = Awaited<ReturnType<AskedFleets['open']>>;

export class AskedFleets {
  readonly world: CustodyWorld;
  readonly #folder: string;

  private constructor(world: CustodyWorld) {
    this.world = world;
    this.#folder = mkdtempSync(join(tmpdir(), 'strongroom-fleets-'));
    mkdirSync(join(this.#folder, 'keys'));
    writeFileSync(join(this.#folder, 'keys/key.yaml'), `type: file-raw\nprivateKey: "${testKey(0).secret}"\n`);
  }

  static async start(): Promise<AskedFleets> {
    return new AskedFleets(await startCustody());
  }

  async close(): Promise<void> {
    await this.world.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async with(work: (fleet: AskedFleet) => Promise<void>): Promise<void> {
    const fleet = await this.open();
    try {
      await work(fleet);
    } finally {
      await fleet.close();
    }
  }

  /** A state table with a token, and whatever signers are started on it; all end with `close`. */
  async open() {
    const { world } = this;
    const folder = this.#folder;
    const table = await world.createTable();
    const ceremony = world.createCeremony();
    const started: RunningSigner[] = [];
    const at: { first?: RunningSigner; second?: RunningSigner } = {};
    return {
      async start(
        place: 'first' | 'second',
        antiSlashing: Record<string, unknown>,
        env: Readonly<Record<string, string>> = {},
      ) {
        const config = {
          ...world.configuration(table, ceremony),
          ...CHAIN,
          key_sources: { filesystem: { paths: [join(folder, 'keys')] } },
          anti_slashing: antiSlashing,
        };
        const signer = await startAgain(() => startSigner({ config, env: { ...world.environment(), ...env } }));
        started.push(signer);
        at[place] = signer;
        return signer;
      },
      /** A file of this fleet. */
      path: (name: string) => join(folder, `${table}-${name}`),
      sqlite: (name: string) => ({ backend: 'sqlite', path: join(folder, `${table}-${name}.sqlite`) }),
      async token(signer: RunningSigner) {
        const token = await world.rootToken(table);
        const ask = (path: string, body: object) =>
          vi.waitFor(async () => {
            const answer = await call(`${signer.url}/api/v1/auth/${path}`, { token, body });
            // A table that answers late on a busy machine: 503, and a policy of an earlier try is there already.
            expect(answer.status).toBeOneOf([200, 201, 409]);
            return answer;
          }, WAIT);
        await ask('policies', { name: 'all', rules: [{ effect: 'allow' }] });
        const made = await ask('tokens', { policies: ['all'] });
        return String(made.json['token']);
      },
      async row() {
        const row = await world.row(table, SLASHING_STORE);
        if (row === undefined) throw new Error('the fleet is not bound');
        return row;
      },
      putRow: (row: Awaited<ReturnType<CustodyWorld['row']>>) => world.putRow(table, row ?? {}),
      asked: (token: string, work: (votes: Votes) => Promise<void>) =>
        whileAsked({ first: () => at.first, second: () => at.second }, token, work),
      async close() {
        await Promise.all(started.map((signer) => signer.kill()));
      },
    };
  }
}
