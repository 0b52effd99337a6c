// What clients of the model ask for: duties of the present, and conflicting ones: others at the same place, votes
// around and inside signed ones, old ones, and ones at the edge of the clocks' tolerance.

import type { SlashableMessage, StoreFloor } from '../../../signer/slashing/types.ts';
import { rootOf } from '../slashing.ts';
import type { Random } from './random.ts';
import { CHAIN } from './time.ts';

const ROOTS = ['a', 'b', 'c'].map(rootOf);

interface Asked {
  readonly publicKey: string;
  /** Floor of a jump made now: nobody asks for more, nor for a source that cannot be justified yet. */
  readonly latest: StoreFloor;
  /** Messages that a new one may conflict with: released ones. */
  readonly earlier: readonly SlashableMessage[];
  /** Whether the client asks for anything, also ahead of the time. */
  readonly isUnbounded: boolean;
}

export function randomMessage(asked: Asked, random: Random): SlashableMessage {
  const { latest, earlier, isUnbounded } = asked;
  const message = draw(asked, random);
  if (isUnbounded && random.chance(0.2)) return ahead(message, latest, random);
  const isRival = earlier.length > 0 && random.chance(0.4);
  return bounded(isRival ? rivalOf(random.pick(earlier), random) : message, asked);
}

function draw({ publicKey, latest }: Asked, random: Random): SlashableMessage {
  const signingRoot = random.pick(ROOTS);
  const back = random.pick([0, 0, 0, 1, 1, 2, 5]);
  if (random.chance(0.3)) {
    const slot = latest.slot - back * (random.chance(0.5) ? 1 : CHAIN.slotsPerEpoch);
    return { kind: 'block', publicKey, slot, signingRoot };
  }
  const targetEpoch = latest.targetEpoch - back;
  const sourceEpoch = targetEpoch - random.pick([0, 1, 1, 1, 1, 1, 2, 4]);
  return { kind: 'attestation', publicKey, sourceEpoch, targetEpoch, signingRoot };
}

/** A message that is slashable beside the given one, if both were signed; at times the same again. */
function rivalOf(message: SlashableMessage, random: Random): SlashableMessage {
  const signingRoot = random.pick(ROOTS);
  if (message.kind === 'block') return { ...message, signingRoot };
  const { sourceEpoch, targetEpoch } = message;
  switch (random.below(4)) {
    case 0:
      return { ...message, signingRoot };
    case 1:
      return { ...message, sourceEpoch: sourceEpoch - 1 - random.below(2), signingRoot };
    case 2:
      return { ...message, sourceEpoch: sourceEpoch - 1, targetEpoch: targetEpoch + 1 + random.below(2), signingRoot };
    default:
      return { ...message, sourceEpoch: sourceEpoch + 1, targetEpoch: targetEpoch - 1, signingRoot };
  }
}

function ahead(message: SlashableMessage, latest: StoreFloor, random: Random): SlashableMessage {
  if (message.kind === 'block') return { ...message, slot: latest.slot + 1 + random.below(3 * CHAIN.slotsPerEpoch) };
  const targetEpoch = latest.targetEpoch + random.below(4);
  return { ...message, targetEpoch, sourceEpoch: targetEpoch - random.below(3) };
}

function bounded(message: SlashableMessage, { latest, isUnbounded }: Asked): SlashableMessage {
  if (isUnbounded) return message;
  if (message.kind === 'block') return { ...message, slot: Math.min(message.slot, latest.slot) };
  const targetEpoch = Math.min(message.targetEpoch, latest.targetEpoch);
  return { ...message, targetEpoch, sourceEpoch: Math.min(message.sourceEpoch, latest.sourceEpoch) };
}

export function textOf(message: SlashableMessage): string {
  const root = Buffer.from(message.signingRoot).toString('utf8').replaceAll('\0', '');
  if (message.kind === 'block') return `block ${message.slot} ${root}`;
  return `vote ${message.sourceEpoch}>${message.targetEpoch} ${root}`;
}
