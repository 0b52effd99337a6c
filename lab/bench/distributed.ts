// `make bench-distributed`: one signer, and 3 of 4 participants behind a combiner, in turns on one machine: a lone
// vote, and the votes of a slot. All of them share its cores, which in earnest are five machines': what is compared is
// the processor time of each, and how long a lone vote takes. Every store is SQLite with fsync.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { stringify } from 'yaml';
import { killChildren } from '../../rehearsal/signer.ts';
import { SHARE_PASSWORD, shareKeystore, testShares } from '../../test/support/distributed.ts';
import { publicKeyOf, testSecret } from '../../test/support/keys.ts';
import { Participant, startCombiner } from '../../test/support/participants.ts';
import { TEST_TOKEN } from '../../test/support/requests.ts';
import { cpuSeconds, LoadGenerator, startMeasured, Votes } from './measured-signer.ts';

const { values } = parseArgs({ options: { keys: { type: 'string' }, rounds: { type: 'string' } } });
const KEYS = Number(values.keys ?? 1000);
const ROUNDS = Number(values.rounds ?? 6);
const LONE_VOTES = 300;
const WARM_UPS = 3;
const PARTICIPANTS = 4;

interface Figures {
  readonly p50: number;
  readonly p99: number;
  /** Of a vote, milliseconds: of the signer, or of a participant for each partial signature that it made. */
  readonly signerMs: number;
  readonly combinerMs: number;
}

const folder = mkdtempSync(join(tmpdir(), 'strongroom-bench-distributed-'));
try {
  await main();
} finally {
  await killChildren();
  rmSync(folder, { recursive: true });
}

async function main(): Promise<void> {
  const keys = Array.from({ length: KEYS }, (_, number) => ({
    publicKey: publicKeyOf(testSecret(number)),
    secret: `0x${Buffer.from(testSecret(number)).toString('hex')}`,
  }));
  const one = await startMeasured(keys, 'native');
  const participants = await startParticipants();
  const combiner = await startCombiner(writeProfiles(participants));
  const generator = await LoadGenerator.start();
  const votes = { one: new Votes(keys), distributed: new Votes(keys) };

  const measure = async (of: 'one' | 'distributed', load: 'lone' | 'slot'): Promise<Figures> => {
    const signers = of === 'one' ? [one] : participants.map(({ signer }) => signer);
    const at = of === 'one' ? one : combiner;
    const requests = load === 'lone' ? votes[of].distinct(LONE_VOTES) : votes[of].slotBursts();
    const before = {
      signers: sum(signers.map(cpuSeconds)),
      combiner: cpuSeconds(combiner),
      asked: asked(participants),
    };
    const { p50, p99, statuses } = await generator.run(
      { ...one, url: at.url },
      {
        requests,
        connections: load === 'lone' ? 1 : 64,
      },
    );
    if (statuses[200] !== requests.length) throw new Error(`not all was signed: ${JSON.stringify(statuses)}`);
    const partials = of === 'one' ? requests.length : asked(participants) - before.asked;
    return {
      ...{ p50, p99 },
      signerMs: ((sum(signers.map(cpuSeconds)) - before.signers) * 1000) / partials,
      combinerMs: ((cpuSeconds(combiner) - before.combiner) * 1000) / requests.length,
    };
  };

  for (let round = 0; round < WARM_UPS; round++)
    for (const which of ['one', 'distributed'] as const) await measure(which, 'slot');
  for (const load of ['lone', 'slot'] as const) {
    const seen = { one: [] as Figures[], distributed: [] as Figures[] };
    for (let round = 0; round < ROUNDS; round++)
      for (const which of ['one', 'distributed'] as const) seen[which].push(await measure(which, load));
    report(load === 'lone' ? 'a lone vote' : `the votes of a slot, ${KEYS} keys at 64 connections`, seen);
  }
  generator.stop();
}

function report(load: string, { one, distributed }: Readonly<Record<'one' | 'distributed', readonly Figures[]>>): void {
  const median = (of: readonly Figures[], what: keyof Figures): number =>
    of.map((figures) => figures[what]).sort((a, b) => a - b)[Math.floor(of.length / 2)] ?? Number.NaN;
  const beside = (name: string, what: keyof Figures): string => {
    const [alone, together] = [median(one, what), median(distributed, what)];
    return `  ${name}: ${alone.toFixed(2)} and ${together.toFixed(2)} ms (${(together / alone).toFixed(2)})`;
  };
  const lines = [
    `${load}: one signer, and 3 of 4 (medians of ${ROUNDS} rounds in turns)`,
    beside('p50', 'p50'),
    beside('p99', 'p99'),
    beside('processor time of a signer for each signature', 'signerMs'),
    `  processor time of the combiner for each vote: ${median(distributed, 'combinerMs').toFixed(2)} ms`,
  ];
  process.stdout.write(`${lines.join('\n')}\n`);
}

async function startParticipants(): Promise<readonly Participant[]> {
  const shares = Array.from({ length: KEYS }, (_, number) => testShares(number));
  const participants: Participant[] = [];
  for (let index = 0; index < PARTICIPANTS; index++) {
    const held = join(folder, `shares-${index + 1}`);
    mkdirSync(held);
    for (const [number, split] of shares.entries()) {
      const share = split[index];
      if (share === undefined) continue;
      writeFileSync(join(held, `${number}.json`), JSON.stringify(shareKeystore(share)));
      writeFileSync(join(held, `${number}.txt`), SHARE_PASSWORD);
    }
    const participant = new Participant(join(folder, `participant-${index + 1}`), held, {}, {});
    await participant.start();
    participants.push(participant);
  }
  return participants;
}

function writeProfiles(participants: readonly Participant[]): string {
  const file = join(folder, 'participants.yaml');
  const profiles = participants.map(({ signer }, index) => [
    `participant-${index + 1}`,
    { signer_url: signer.url, token: TEST_TOKEN, allow_plaintext_signer: true },
  ]);
  writeFileSync(file, stringify({ profiles: Object.fromEntries(profiles) }), { mode: 0o600 });
  return file;
}

/** Partial signatures that were made: audit lines, which all participants keep here; one of a batch says how many. */
function asked(participants: readonly Participant[]): number {
  const votes = participants.flatMap(({ log }) => log.filter((line) => line['operation'] === 'ATTESTATION'));
  return sum(votes.map((line) => Number(line['signed'] ?? 1)));
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
