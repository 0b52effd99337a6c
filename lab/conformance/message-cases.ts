// Cases of messages that are right in every spelling, at every fork boundary, and in what the answer looks like.

import { type Body, type Chain, expectedRoot, scheduledFork } from '../../test/expected/expected-root.ts';
import {
  forkInfoAt,
  type Members,
  type MessageType,
  requestAt,
  SINCE_GLOAS,
  SINCE_PHASE0,
} from '../../test/expected/messages.ts';
import type { Case, CaseSet, Skip } from './case.ts';

/** The keys of each group: what one signs does not get in the way of another. */
export const KEYS = { shapes: 0, boundaries: 1, votes: 2, blocks: 3 } as const;

export function presentEpoch({ forks }: Chain): number {
  return Math.max(...forks.map(({ epoch }) => epoch ?? 0)) + 40;
}

function typesAt(chain: Chain, epoch: number): readonly MessageType[] {
  return scheduledFork(chain, epoch).name === 'gloas' ? [...SINCE_PHASE0, ...SINCE_GLOAS] : SINCE_PHASE0;
}

const STATES_VERSION: ReadonlySet<string> = new Set(['AGGREGATE_AND_PROOF_V2', ...SINCE_GLOAS]);

export function shapeCases(chain: Chain): Case[] {
  const epoch = presentEpoch(chain);
  const slot = epoch * chain.slotsPerEpoch + 3;
  return typesAt(chain, epoch).flatMap((type) => {
    const plain = requestAt(chain, type, slot);
    const root = expectedRoot(plain, chain);
    const hex = `0x${Buffer.from(root).toString('hex')}`;
    const spellings: readonly (readonly [string, Body])[] = [
      ['as the standard has it', plain],
      ['with signingRoot', { ...plain, signingRoot: hex }],
      ['with signing_root', { ...plain, signing_root: hex }],
      ['with an unknown member', { ...plain, unknown_member: { a: [1] } }],
      ['with its type in lower case', { ...plain, type: type.toLowerCase() }],
      ['with numbers', mapped(plain, numberOf)],
      [
        'with hex in upper case',
        mapped(plain, (text) => (text.startsWith('0x') ? `0x${text.slice(2).toUpperCase()}` : text)),
      ],
      ...statedShapes(plain, type, scheduledFork(chain, epoch).name),
    ];
    return spellings.map(
      ([how, body]): Case => ({
        group: 'shapes',
        name: `${type} ${how}`,
        key: KEYS.shapes,
        body,
        expected: { kind: 'signed', root },
      }),
    );
  });
}

/** Clients send messages bare, and as {version, data} in any case. */
function statedShapes(plain: Body, type: MessageType, fork: string): (readonly [string, Body])[] {
  if (!STATES_VERSION.has(type)) return [];
  const [member] = Object.keys(plain).filter((name) => !['type', 'fork_info'].includes(name));
  if (member === undefined) return [];
  const { data } = plain[member] as Members;
  // That of BUILDER_REQUEST_AUTH is text of its own.
  const message = typeof data === 'object' ? data : plain[member];
  return [
    ['bare', { ...plain, [member]: message }],
    ['as {version, data}', { ...plain, [member]: { version: fork.toUpperCase(), data: message } }],
    ['as {version, data} in lower case', { ...plain, [member]: { version: fork, data: message } }],
  ];
}

const BOUNDARY_TYPES: readonly MessageType[] = [
  'ATTESTATION',
  'BLOCK_V2',
  'AGGREGATION_SLOT',
  'RANDAO_REVEAL',
  'AGGREGATE_AND_PROOF',
  'SYNC_COMMITTEE_MESSAGE',
];

export function boundaryCases(chain: Chain): Case[] {
  const beginnings = chain.forks.filter(({ epoch }) => epoch !== null && epoch > 1);
  return beginnings.flatMap(({ name, epoch }) => {
    const first = (epoch ?? 0) * chain.slotsPerEpoch;
    const known = forkInfoAt(chain, epoch ?? 0);
    const stale = forkInfoAt(chain, (epoch ?? 0) - 1);
    return BOUNDARY_TYPES.flatMap((type): Case[] => {
      // The client knows both sides: the slot alone selects the version.
      const around = [first - 1, first].map((slot): Case => {
        const body = { ...requestAt(chain, type, slot), fork_info: known };
        const side = slot < first ? 'last slot before' : 'first slot of';
        const expected = { kind: 'signed', root: expectedRoot(body, chain) } as const;
        return { group: 'fork boundaries', name: `${type}, ${side} ${name}`, key: KEYS.boundaries, body, expected };
      });
      const late = { ...requestAt(chain, type, first + 1), fork_info: stale };
      const contradiction: Case = {
        group: 'fork boundaries',
        name: `${type} in ${name} with the fork before`,
        key: KEYS.boundaries,
        body: late,
        expected: { kind: 'refused' },
      };
      return type === 'ATTESTATION' || type === 'BLOCK_V2' ? [...around, contradiction] : around;
    });
  });
}

export function exitCases(chain: Chain): Case[] {
  const epoch = presentEpoch(chain);
  const plain = requestAt(chain, 'VOLUNTARY_EXIT', epoch * chain.slotsPerEpoch);
  const known = chain.forks.filter((fork) => fork.epoch !== null);
  return known.map((fork): Case => {
    const body = { ...plain, fork_info: forkInfoAt(chain, fork.epoch ?? 0) };
    const expected = { kind: 'signed', root: expectedRoot(plain, chain) } as const;
    return { group: 'fork boundaries', name: `exit with the fork of ${fork.name}`, key: KEYS.shapes, body, expected };
  });
}

export function answerCases(chain: Chain): CaseSet {
  const epoch = presentEpoch(chain);
  const slot = epoch * chain.slotsPerEpoch + 5;
  const plain = requestAt(chain, 'SYNC_COMMITTEE_MESSAGE', slot);
  const expected = { kind: 'signed', root: expectedRoot(plain, chain) } as const;
  const refused = (statuses?: readonly number[]) => ({ kind: 'refused', ...(statuses && { statuses }) }) as const;
  const make = (name: string, body: Body | string, rest: Partial<Case> & Pick<Case, 'expected'>): Case => ({
    group: 'answers',
    name,
    key: KEYS.shapes,
    body,
    ...rest,
  });
  const otherRoot = { ...(plain['fork_info'] as Members), genesis_validators_root: `0x${'99'.repeat(32)}` };
  const { sync_committee_message: _, ...withoutMessage } = plain;
  const cases = [
    make('a signature in JSON', plain, { accept: 'application/json', expected }),
    make('a signature in text', plain, { accept: 'text/plain', expected }),
    make('a key that is not there is 404', plain, { key: 'unknown', expected: refused([404]) }),
    make('no JSON is 400', '{"type":', { expected: refused([400]) }),
    make('no message is 400', withoutMessage as Body, { expected: refused([400]) }),
    make('an unknown type is 400', { ...plain, type: 'FROBNICATE' }, { expected: refused([400]) }),
    make(
      'another root than the message has',
      { ...plain, signingRoot: `0x${'77'.repeat(32)}` },
      { expected: refused() },
    ),
    make('the root of another network', { ...plain, fork_info: otherRoot }, { expected: refused() }),
    make(
      'a root of zeros where the domain has a chain',
      { ...plain, fork_info: { ...otherRoot, genesis_validators_root: `0x${'00'.repeat(32)}` } },
      { expected: refused() },
    ),
    make('a slot that is no number', requestAt(chain, 'AGGREGATION_SLOT', slot, { slot: 'x' }), {
      expected: refused([400]),
    }),
    make('a root that is too short', requestAt(chain, 'SYNC_COMMITTEE_MESSAGE', slot, { beacon_block_root: '0x11' }), {
      expected: refused([400]),
    }),
  ];
  return { cases, skipped: [] satisfies Skip[] };
}

function numberOf(text: string): unknown {
  return /^[0-9]+$/.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : text;
}

function mapped(value: Body, map: (text: string) => unknown): Body {
  const walk = (one: unknown): unknown => {
    if (typeof one === 'string') return map(one);
    if (Array.isArray(one)) return one.map(walk);
    if (typeof one !== 'object' || one === null) return one;
    return Object.fromEntries(Object.entries(one).map(([name, item]) => [name, walk(item)]));
  };
  return { ...(walk(value) as Body), type: value.type };
}
