// Cases of EIP-3076 and of the slashing rules of consensus, over the signing API alone: what was signed before decides.
// Asked of keys that sign nothing else here. A refusal is 412, because clients tell it from other refusals by that.

import type { Case } from './case.ts';
import { type Chain, expectedRoot } from './expected-root.ts';
import { KEYS, presentEpoch } from './message-cases.ts';
import { requestAt } from './messages.ts';

const ROOT = (byte: string) => `0x${byte.repeat(32)}`;
const RACERS = 8;

export function slashingCases(chain: Chain): Case[] {
  return [...voteCases(chain), ...blockCases(chain)];
}

function voteCases(chain: Chain): Case[] {
  const base = presentEpoch(chain);
  const vote = (source: number, target: number, head: string, index = '0') => {
    const slot = (base + target) * chain.slotsPerEpoch;
    return requestAt(chain, 'ATTESTATION', slot, {
      index,
      beacon_block_root: ROOT(head),
      source: { epoch: String(base + source), root: ROOT('51') },
      target: { epoch: String(base + target), root: ROOT('52') },
    });
  };
  const make = (name: string, body: ReturnType<typeof vote>, isSigned: boolean, race?: string): Case => ({
    group: 'EIP-3076',
    name,
    key: KEYS.votes,
    body,
    expected: isSigned ? { kind: 'signed', root: expectedRoot(body, chain) } : { kind: 'refused', statuses: [412] },
    ...(race === undefined ? {} : { race }),
  });
  return [
    make('a first vote', vote(0, 1, 'a1'), true),
    make('the same vote again', vote(0, 1, 'a1'), true),
    make('a double vote: another head', vote(0, 1, 'a2'), false),
    make('a double vote: another index', vote(0, 1, 'a1', '1'), false),
    make('a vote that joins distant epochs', vote(2, 12, 'a1'), true),
    make('a vote that it surrounds', vote(3, 11, 'a1'), false),
    make('a vote that surrounds it', vote(1, 13, 'a1'), false),
    make('a source below all sources', vote(-1, 14, 'a1'), false),
    { ...make('a source after its target', vote(16, 15, 'a1'), false), expected: { kind: 'refused' } },
    make('a vote after the refused ones', vote(12, 13, 'a1'), true),
    ...Array.from({ length: RACERS }, (_, at) =>
      make(`of votes at once (${at})`, vote(13, 20, `b${at}`), true, 'votes'),
    ),
  ];
}

function blockCases(chain: Chain): Case[] {
  const base = presentEpoch(chain) * chain.slotsPerEpoch;
  const block = (slot: number, body: string) => requestAt(chain, 'BLOCK_V2', base + slot, { body_root: ROOT(body) });
  const make = (name: string, body: ReturnType<typeof block>, isSigned: boolean, race?: string): Case => ({
    group: 'EIP-3076',
    name,
    key: KEYS.blocks,
    body,
    expected: isSigned ? { kind: 'signed', root: expectedRoot(body, chain) } : { kind: 'refused', statuses: [412] },
    ...(race === undefined ? {} : { race }),
  });
  return [
    make('a first block', block(10, 'a1'), true),
    make('the same block again', block(10, 'a1'), true),
    make('another block of the slot', block(10, 'a2'), false),
    make('a block below all slots', block(9, 'a1'), false),
    make('a block after the refused ones', block(11, 'a1'), true),
    ...Array.from({ length: RACERS }, (_, at) =>
      make(`of blocks at once (${at})`, block(20, `b${at}`), true, 'blocks'),
    ),
  ];
}
