// How `make test-clients` judges three whole epochs: by the signer's audit lines and by the chain, and never by the
// time that something took. A duty that a client did not ask for, and a signature that came too late for a block, are
// what a busy machine does: they are counted, and printed. The first epoch is not judged: clients are still finding
// their duties in it.

import { readFileSync } from 'node:fs';
import { type ChainBlock, SLOTS_PER_EPOCH, SYNC_COMMITTEE_SIZE, VALIDATORS } from './devnet.ts';

export const JUDGED_EPOCHS = [1, 2, 3] as const;

export interface Check {
  readonly name: string;
  readonly problem: string | undefined;
}

export interface Judgement {
  readonly checks: readonly Check[];
  /** What no fault of the signer explains, and how often. */
  readonly counted: readonly string[];
}

type AuditLine = Readonly<Record<string, unknown>>;

export interface Seen {
  readonly blocks: readonly ChainBlock[];
  readonly audit: readonly AuditLine[];
  readonly registrations: number;
  readonly exiting: string;
  /** Of the validator client and of the beacon node. */
  readonly logFiles: readonly string[];
}

/** Of each judged epoch; the others come when they come. */
const DUTIES_OF_AN_EPOCH = [
  'AGGREGATION_SLOT',
  'AGGREGATE_AND_PROOF',
  'ATTESTATION',
  'BLOCK_V2',
  'RANDAO_REVEAL',
  'SYNC_COMMITTEE_MESSAGE',
  'SYNC_COMMITTEE_SELECTION_PROOF',
  'SYNC_COMMITTEE_CONTRIBUTION_AND_PROOF',
] as const;
const DUTIES_ONCE = ['VALIDATOR_REGISTRATION', 'VOLUNTARY_EXIT'] as const;

/** Refusals that the other side explains: it hung up before its answer. */
const EXPLAINED: readonly unknown[] = ['client_closed'];

export function judge({ blocks, audit, registrations, exiting, logFiles }: Seen): Judgement {
  const asked = audit.filter(({ operation }) => operation !== undefined);
  const signed = asked.filter(({ outcome }) => outcome === 'ok');
  const [explained, unexplained] = partition(
    audit.filter(({ outcome }) => outcome !== 'ok'),
    ({ reason }) => EXPLAINED.includes(reason),
  );
  const places = JUDGED_EPOCHS.flatMap(slotsOf).map((slot) => placeOf(slot, blocks, signed));
  const chainExits = blocks.flatMap(({ exits }) => exits);
  const signedExits = signed.filter(({ operation }) => operation === 'VOLUNTARY_EXIT').length;
  const unsigned = [
    ...places.flatMap(({ slot, chain, signer }) =>
      RECORDED.filter((what) => chain[what] > signer[what]).map((what) => `slot ${slot}: ${chain[what]} ${what}`),
    ),
    ...(chainExits.length > signedExits ? [`${chainExits.length} exits`] : []),
  ];
  const total = (side: 'chain' | 'signer', what: Recorded) => places.reduce((sum, place) => sum + place[side][what], 0);
  const unrecorded = [
    ...RECORDED.filter((what) => total('chain', what) === 0),
    ...(registrations === 0 ? ['registrations'] : []),
  ];
  const neverSigned = [...DUTIES_OF_AN_EPOCH, ...DUTIES_ONCE].filter(
    (duty) => !signed.some(({ operation }) => operation === duty),
  );
  return {
    checks: [
      check(`each of ${asked.length} duties was answered, or has a refusal that is explained`, lines(unexplained)),
      check('the chain has nothing that the signer did not sign', unsigned.join(', ')),
      check('each kind of duty was asked for, and signed', neverSigned.join(', ')),
      check('the chain took each kind of message that it records', unrecorded.join(', ')),
      check('neither client nor node complained of a signature', logFiles.flatMap(complaints).join(' ')),
    ],
    counted: [
      counted('requests that the client hung up on', explained.length),
      counted('duties of an epoch not asked for', missingDuties(asked).length),
      counted('slots whose block was not asked for', JUDGED_SLOTS - total('signer', 'blocks')),
      counted('votes not asked for', JUDGED_EPOCHS.length * VALIDATORS - total('signer', 'votes')),
      counted('blocks signed, and not on the chain', total('signer', 'blocks') - total('chain', 'blocks')),
      counted('votes signed and in no block', total('signer', 'votes') - total('chain', 'votes')),
      counted('empty seats of sync committees', total('chain', 'blocks') * SYNC_COMMITTEE_SIZE - total('chain', SEATS)),
      counted('exits signed and in no block', chainExits.includes(exiting) ? 0 : signedExits),
      counted('registrations that the builder lacks', Math.max(0, VALIDATORS - registrations)),
    ].flatMap((line) => line ?? []),
  };
}

function check(name: string, problem: string): Check {
  return { name, problem: problem === '' ? undefined : problem };
}

function counted(what: string, count: number): string | undefined {
  return count > 0 ? `${what}: ${count}` : undefined;
}

function lines(audit: readonly AuditLine[]): string {
  return audit.map((line) => JSON.stringify(line)).join(' ');
}

function slotsOf(epoch: number): number[] {
  return Array.from({ length: SLOTS_PER_EPOCH }, (_, place) => epoch * SLOTS_PER_EPOCH + place);
}

/** A validator may have several seats: of a sync committee only a seat that is taken without any message is wrong. */
const SEATS = 'seats of a sync committee';
const RECORDED = ['blocks', 'votes', SEATS] as const;
type Recorded = (typeof RECORDED)[number];
const JUDGED_SLOTS = JUDGED_EPOCHS.length * SLOTS_PER_EPOCH;

/** One slot, as the chain has it and as the signer signed it, each message of a key once. */
function placeOf(slot: number, blocks: readonly ChainBlock[], signed: readonly AuditLine[]) {
  const keysOf = (duty: string, at: number) =>
    new Set(
      signed
        .filter((line) => line['operation'] === duty && Number(line['slot']) === at)
        .map((line) => line['public_key']),
    ).size;
  const own = blocks.find((block) => block.slot === slot);
  const votes = new Map<string, bigint>();
  for (const { index, bits } of blocks.flatMap((block) => block.votes.filter((vote) => vote.slot === slot))) {
    votes.set(index, (votes.get(index) ?? 0n) | BigInt(bits));
  }
  const voters = [...votes.values()].reduce((sum, all) => sum + countOnes(all) - 1, 0); // the list's own last bit
  const seats = own === undefined ? 0 : countOnes(BigInt(own.syncBits));
  const messages = keysOf('SYNC_COMMITTEE_MESSAGE', slot - 1); // which the next block has
  return {
    slot,
    chain: { blocks: own === undefined ? 0 : 1, votes: voters, [SEATS]: seats },
    signer: {
      blocks: keysOf('BLOCK_V2', slot),
      votes: keysOf('ATTESTATION', slot),
      [SEATS]: messages === 0 ? 0 : SYNC_COMMITTEE_SIZE,
    },
  };
}

function missingDuties(asked: readonly AuditLine[]): string[] {
  const epochOf = ({ slot, epoch, target_epoch: target }: AuditLine) =>
    slot === undefined || target !== undefined ? Number(target ?? epoch) : Math.floor(Number(slot) / SLOTS_PER_EPOCH);
  return JUDGED_EPOCHS.flatMap((epoch) =>
    DUTIES_OF_AN_EPOCH.filter(
      (duty) => !asked.some((line) => line['operation'] === duty && epochOf(line) === epoch),
    ).map((duty) => `${duty} of epoch ${epoch}`),
  );
}

/** Not each line with "error" and "sign": a beacon node that is late for `submitPoolSyncCommitteeSignatures` is one. */
function complaints(logFile: string): string[] {
  return readFileSync(logFile, 'utf8')
    .split('\n')
    .filter((line) => /error signing|invalid[ _]?signature/i.test(line));
}

function partition<T>(all: readonly T[], isOne: (one: T) => boolean): [T[], T[]] {
  return [all.filter(isOne), all.filter((one) => !isOne(one))];
}

function countOnes(bits: bigint): number {
  return bits.toString(2).replaceAll('0', '').length;
}
