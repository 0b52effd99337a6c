// What `make test-clients` asks of three whole epochs: that the signer refused nothing, that every duty was asked for,
// and that the chain has what was signed. The first epoch is not judged: clients are still finding their duties in it.

import { readFileSync } from 'node:fs';
import { type ChainBlock, SLOTS_PER_EPOCH, SYNC_COMMITTEE_SIZE, VALIDATORS } from './devnet.ts';

export const JUDGED_EPOCHS = [1, 2, 3] as const;

export interface Check {
  readonly name: string;
  readonly problem: string | undefined;
}

export interface Seen {
  readonly blocks: readonly ChainBlock[];
  readonly audit: readonly Readonly<Record<string, unknown>>[];
  readonly registrations: number;
  readonly exiting: string;
  readonly clientLog: string;
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

export function checksOf({ blocks, audit, registrations, exiting, clientLog }: Seen): readonly Check[] {
  const asked = audit.filter(({ operation }) => operation !== undefined);
  const refused = audit.filter(({ outcome }) => outcome !== 'ok');
  const slots = JUDGED_EPOCHS.flatMap(slotsOf);
  const judged = blocks.filter(({ slot }) => slots.includes(slot));
  return [
    check(`the signer refused none of ${asked.length} requests`, refused.map((line) => JSON.stringify(line)).join(' ')),
    check('every duty was asked for in every epoch', missingDuties(asked).join(', ')),
    check('every slot has a block', slots.filter((slot) => !judged.some((block) => block.slot === slot)).join(', ')),
    check('every vote is in a block', missingVotes(blocks).join(', ')),
    check('every block has the whole sync committee', incomplete(judged).join(', ')),
    check('the exit is in a block', blocks.some(({ exits }) => exits.includes(exiting)) ? '' : 'in none'),
    check('the builder has every registration', registrations >= VALIDATORS ? '' : `${registrations}`),
    check('the validator client complained of no signature', complaints(clientLog).join(' ')),
  ];
}

function check(name: string, problem: string): Check {
  return { name, problem: problem === '' ? undefined : problem };
}

function slotsOf(epoch: number): number[] {
  return Array.from({ length: SLOTS_PER_EPOCH }, (_, place) => epoch * SLOTS_PER_EPOCH + place);
}

function missingDuties(asked: Seen['audit']): string[] {
  const epochOf = ({ slot, epoch, target_epoch: target }: Seen['audit'][number]) =>
    slot === undefined || target !== undefined ? Number(target ?? epoch) : Math.floor(Number(slot) / SLOTS_PER_EPOCH);
  const ofEpochs = JUDGED_EPOCHS.flatMap((epoch) =>
    DUTIES_OF_AN_EPOCH.filter(
      (duty) => !asked.some((line) => line['operation'] === duty && epochOf(line) === epoch),
    ).map((duty) => `${duty} of epoch ${epoch}`),
  );
  return [...ofEpochs, ...DUTIES_ONCE.filter((duty) => !asked.some(({ operation }) => operation === duty))];
}

/** Every validator votes once in an epoch. */
function missingVotes(blocks: readonly ChainBlock[]): string[] {
  const votes = blocks.flatMap((block) => block.votes);
  return JUDGED_EPOCHS.flatMap((epoch) => {
    const slots = slotsOf(epoch);
    const seen = new Map<string, bigint>();
    for (const { slot, index, bits } of votes.filter((vote) => slots.includes(vote.slot))) {
      seen.set(`${slot}/${index}`, (seen.get(`${slot}/${index}`) ?? 0n) | bitsOf(bits));
    }
    const count = [...seen.values()].reduce((sum, all) => sum + countOnes(all) - 1, 0); // the list's own last bit
    return count === VALIDATORS ? [] : [`epoch ${epoch}: ${count} of ${VALIDATORS}`];
  });
}

function incomplete(blocks: readonly ChainBlock[]): string[] {
  return blocks
    .map(({ slot, syncBits }) => ({ slot, count: countOnes(bitsOf(syncBits)) }))
    .filter(({ count }) => count !== SYNC_COMMITTEE_SIZE)
    .map(({ slot, count }) => `slot ${slot}: ${count} of ${SYNC_COMMITTEE_SIZE}`);
}

function complaints(logFile: string): string[] {
  return readFileSync(logFile, 'utf8')
    .split('\n')
    .filter((line) => /error/i.test(line) && /sign/i.test(line));
}

function bitsOf(hex: string): bigint {
  return BigInt(hex);
}

function countOnes(bits: bigint): number {
  return bits.toString(2).replaceAll('0', '').length;
}
