// A store behind a floor of this process, for enclaves. Whoever holds the tables may have restored older ones around
// the restart. So this process refuses everything that an earlier process may have signed, whatever the store says.
// Such a message is never beyond the floor, because no process behind a floor signs ahead of its clock; this file
// refuses that, too. It trusts the clock that it is given (in an enclave, the security module's). It only adds refusals
// to those of the store.

import { forwardedStore } from './forwarded-store.ts';
import { historyOfFloor } from './history/export.ts';
import { decideAttestation, decideBlock } from './history/rules.ts';
import { coversFloor, higherFloor } from './jump.ts';
import type {
  HighWaterMarks,
  PublicKeyHex,
  SlashableMessage,
  SlashingBackend,
  StoreFloor,
  ValidatorHistory,
  Verdict,
} from './types.ts';

export interface LocalFloor {
  /** Everything at or below was possibly signed by an earlier process. */
  readonly floor: StoreFloor;
  /** The floor of a jump made now: a message that lies beyond is ahead of the clock. */
  readonly latest: () => StoreFloor;
}

export function behindLocalFloor(backend: SlashingBackend, { floor, latest }: LocalFloor): SlashingBackend {
  return {
    ...forwardedStore(backend),

    async checkAndRecord(messages, floors) {
      const now = latest();
      const verdicts = messages.map((message) => judge(message, floor, now));
      const asked = messages.map((_, index) => index).filter((index) => verdicts[index] === undefined);
      const answers =
        asked.length === 0
          ? []
          : await backend.checkAndRecord(pick(messages, asked), pick<HighWaterMarks>(floors, asked));
      if (answers.length !== asked.length) throw new Error('the store gives one verdict for each message');
      for (const [place, index] of asked.entries()) verdicts[index] = answers[place];
      return verdicts.map((verdict) => verdict ?? { kind: 'unavailable', reason: 'slashing_unavailable' });
    },

    async identity() {
      const identity = await backend.identity();
      return { ...identity, floor: higherFloor(identity.floor, floor) };
    },

    exportHistories: (publicKeys) => raised(backend, floor, publicKeys),
  };
}

/** Undefined: the floor and the clock have nothing against it. */
function judge(message: SlashableMessage, floor: StoreFloor, latest: StoreFloor): Verdict | undefined {
  if (isAhead(message, latest)) return { kind: 'unavailable', reason: 'ahead_of_clock' };
  const decision =
    message.kind === 'block'
      ? decideBlock(message, { entry: null, lowWaterSlot: floor.slot })
      : decideAttestation(message, {
          entry: null,
          surroundsAnEntry: false,
          isSurroundedByAnEntry: false,
          lowWaterSourceEpoch: floor.sourceEpoch,
          lowWaterTargetEpoch: floor.targetEpoch,
        });
  return decision.kind === 'refused' ? decision : undefined;
}

/**
 * A source of the present epoch is ahead too: no chain has justified it. After a jump in that epoch the vote, if it
 * were lost, could be surrounded by one from the epoch before.
 */
function isAhead(message: SlashableMessage, latest: StoreFloor): boolean {
  if (message.kind === 'block') return message.slot > latest.slot;
  const { sourceEpoch, targetEpoch } = message;
  return targetEpoch > latest.targetEpoch || (sourceEpoch > latest.sourceEpoch && sourceEpoch <= targetEpoch);
}

/**
 * The histories of the store, each raised to the floor: whoever reads the file must refuse what this process does.
 * A key whose entries lie below gets the floor's entries instead; keys that are asked for by name always get them.
 */
async function* raised(
  backend: SlashingBackend,
  floor: StoreFloor,
  publicKeys: readonly PublicKeyHex[] | undefined,
): AsyncGenerator<ValidatorHistory> {
  const missing = new Set(publicKeys ?? []);
  for await (const history of backend.exportHistories(publicKeys)) {
    missing.delete(history.publicKey);
    yield raisedHistory(history, floor);
  }
  for (const publicKey of [...missing].sort()) yield { publicKey, ...historyOfFloor(floor) };
}

function raisedHistory(history: ValidatorHistory, floor: StoreFloor): ValidatorHistory {
  const own = historyOfFloor(floor);
  const blocks = history.blocks.filter(({ slot }) => slot > floor.slot);
  const { attestations } = history;
  const sources = attestations.map(({ sourceEpoch }) => sourceEpoch);
  const targets = attestations.map(({ targetEpoch }) => targetEpoch);
  const highest = {
    slot: 0,
    sourceEpoch: sources.reduce((most, source) => Math.max(most, source), 0),
    targetEpoch: targets.reduce((most, target) => Math.max(most, target), 0),
  };
  const isAbove = attestations.every(
    (vote) => vote.targetEpoch > floor.targetEpoch && vote.sourceEpoch >= floor.sourceEpoch,
  );
  const marks = coversFloor(highest, { ...floor, slot: 0 }) ? highest : higherFloor(highest, floor);
  return {
    publicKey: history.publicKey,
    blocks: blocks.length > 0 ? blocks : own.blocks,
    attestations:
      attestations.length > 0 && isAbove
        ? attestations
        : [{ sourceEpoch: marks.sourceEpoch, targetEpoch: marks.targetEpoch, signingRoot: null }],
  };
}

function pick<Element>(list: readonly Element[], places: readonly number[]): Element[] {
  return places.flatMap((place) => {
    const element = list[place];
    return element === undefined ? [] : [element];
  });
}
