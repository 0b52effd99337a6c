// What must hold for every request, not only for the published ones.

import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodeHex } from '../../common/formats/hex.ts';
import { parseSignRequest } from '../../signer/operations/parse.ts';
import type { SignRequest } from '../../signer/operations/sign-request.ts';
import { computeSigningRoot, forkRefusal } from '../../signer/sign/message-root.ts';
import { type Network, publicNetwork } from '../../signer/sign/networks.ts';
import { type Json, oracleObjectRoot, oracleSigningRoot } from '../sign/root-oracle.ts';
import { type Body, MESSAGE_MEMBERS, respelled, signRequestBody } from '../sign/sign-request-arbitraries.ts';
import { slashableMessage } from '../support/operation-rows.ts';

const HOODI = publicNetwork('hoodi');
/** Hoodi without a schedule, of which sign/message-root.test.ts asks: epochs and versions are random here. */
const NETWORK: Network = {
  ...HOODI,
  forks: HOODI.forks.map((fork, index) => ({ ...fork, epoch: index === 0 ? 0 : null })),
};
const RUNS = { numRuns: 300 };

/**
 * The table of specification/signing.md#bodies a second time: domain type, and the path of the slot or epoch that
 * selects the fork.
 */
const DOMAINS: Readonly<Record<string, readonly [string, 'slot' | 'epoch' | 'none', string]>> = {
  AGGREGATION_SLOT: ['0x05000000', 'slot', 'slot'],
  AGGREGATE_AND_PROOF: ['0x06000000', 'slot', 'aggregate.data.slot'],
  ATTESTATION: ['0x01000000', 'epoch', 'target.epoch'],
  BLOCK_V2: ['0x00000000', 'slot', 'slot'],
  RANDAO_REVEAL: ['0x02000000', 'epoch', 'epoch'],
  VOLUNTARY_EXIT: ['0x04000000', 'none', ''],
  SYNC_COMMITTEE_MESSAGE: ['0x07000000', 'slot', 'slot'],
  SYNC_COMMITTEE_SELECTION_PROOF: ['0x08000000', 'slot', 'slot'],
  SYNC_COMMITTEE_CONTRIBUTION_AND_PROOF: ['0x09000000', 'slot', 'contribution.slot'],
  VALIDATOR_REGISTRATION: ['0x00000001', 'none', ''],
};

function at(value: Json | undefined, path: string): Json {
  return path.split('.').reduce((inner, name) => (inner as Body)[name] as Json, value as Json);
}

function messageOf(body: Body): Json {
  const message = body[MESSAGE_MEMBERS[String(body['type'])] as string] as Body;
  return message['data'] ?? message['block'] ?? message['block_header'] ?? message;
}

function expectedRoot(body: Body, network: Network): string {
  const type = String(body['type']).replace('PROOF_V2', 'PROOF');
  const [domainType, kind, path] = DOMAINS[type] as (typeof DOMAINS)[string];
  const objectRoot = oracleObjectRoot(body);
  if (type === 'VOLUNTARY_EXIT') {
    return oracleSigningRoot(objectRoot, domainType, network.capellaForkVersion, network.genesisValidatorsRoot);
  }
  if (type === 'VALIDATOR_REGISTRATION') {
    return oracleSigningRoot(objectRoot, domainType, network.genesisForkVersion, Buffer.alloc(32));
  }
  const number = BigInt(String(at(messageOf(body), path)));
  const epoch = kind === 'slot' ? number / BigInt(network.slotsPerEpoch) : number;
  const fork = at(body, 'fork_info.fork') as Body;
  const version = epoch < BigInt(String(fork['epoch'])) ? fork['previous_version'] : fork['current_version'];
  const versionBytes = Buffer.from(String(version).slice(2), 'hex');
  return oracleSigningRoot(objectRoot, domainType, versionBytes, network.genesisValidatorsRoot);
}

function parse(body: Json): SignRequest | string {
  const parsed = parseSignRequest(Buffer.from(JSON.stringify(body)));
  return parsed.kind === 'request' ? parsed.request : `${parsed.reason}: ${parsed.hint}`;
}

function rootOf(body: Json, network = NETWORK): string {
  const request = parse(body);
  if (typeof request === 'string') return request;
  return forkRefusal(request, network)?.hint ?? encodeHex(computeSigningRoot(request, network));
}

interface Place {
  readonly path: readonly (string | number)[];
  readonly value: string;
}

function leaves(value: Json, path: readonly (string | number)[] = []): Place[] {
  if (typeof value === 'string') return [{ path, value }];
  if (typeof value !== 'object') return [];
  return Object.entries(value).flatMap(([name, item]) => leaves(item, [...path, name]));
}

/** A copy of a body with one leaf replaced. */
function replaced(body: Body, { path }: Place, value: string): Body {
  const copy = structuredClone(body);
  const parent = path.slice(0, -1).reduce<Json>((inner, name) => (inner as Body)[name] as Json, copy);
  (parent as Body)[path.at(-1) as string] = value;
  return copy;
}

/** Another value that is as well formed as the first. */
function altered({ value }: Place, choice: number): string {
  if (/^[0-9]+$/.test(value)) return String(BigInt(value) ^ (1n << BigInt(choice % 53)));
  const digit = 2 + (choice % (value.length - 2));
  const other = (Number.parseInt(value[digit] as string, 16) ^ (1 + (choice % 15))).toString(16);
  return value.slice(0, digit) + other + value.slice(digit + 1);
}

describe('the signing root of any request', () => {
  it('is the one that the specifications give', () => {
    fc.assert(
      fc.property(signRequestBody, (body) => {
        expect(rootOf(body)).toBe(expectedRoot(body, NETWORK));
      }),
      RUNS,
    );
  });

  it.each([
    ['gnosis', 16],
    ['minimal', 8],
  ] as const)('is that also where an epoch has the slots of the preset %s: %i', (_, slotsPerEpoch) => {
    const network = { ...NETWORK, slotsPerEpoch };
    fc.assert(
      fc.property(signRequestBody, (body) => {
        expect(rootOf(body, network)).toBe(expectedRoot(body, network));
      }),
      RUNS,
    );
  });

  it('does not depend on how the request is spelled', () => {
    const bodies = signRequestBody.chain((body) => fc.tuple(fc.constant(body), respelled(body)));
    fc.assert(
      fc.property(bodies, ([body, other]) => {
        expect(rootOf(other)).toBe(expectedRoot(body, NETWORK));
      }),
      RUNS,
    );
  });

  it('changes with every leaf of the message, or the request is refused', () => {
    fc.assert(
      fc.property(signRequestBody, fc.nat(), fc.nat(), (body, which, choice) => {
        const member = MESSAGE_MEMBERS[String(body['type'])] as string;
        const places = leaves(body[member] as Json, [member]).filter(({ path }) => path.at(-1) !== 'version');
        // The slot of a sync committee message only selects the fork: the block root alone is signed.
        const signed = places.filter(({ path }) => path.join('.') !== 'sync_committee_message.slot');
        const place = signed[which % signed.length] as Place;
        expect(rootOf(replaced(body, place, altered(place, choice)))).not.toBe(rootOf(body));
      }),
      { numRuns: 1000 },
    );
  });

  it('changes with the fork version that is in force, except where the network decides it', () => {
    fc.assert(
      fc.property(signRequestBody, fc.nat(), (body, choice) => {
        const type = String(body['type']);
        const network = type === 'VOLUNTARY_EXIT' || type === 'VALIDATOR_REGISTRATION';
        const changed = ['previous_version', 'current_version'].map((name) => {
          const place = { path: ['fork_info', 'fork', name], value: String(at(body, `fork_info.fork.${name}`)) };
          return rootOf(replaced(body, place, altered(place, choice))) !== rootOf(body);
        });
        expect(changed.filter(Boolean)).toHaveLength(network ? 0 : 1);
      }),
      RUNS,
    );
  });

  it('is the same again when it is computed after other roots', () => {
    fc.assert(
      fc.property(fc.array(signRequestBody, { minLength: 2, maxLength: 6 }), (bodies) => {
        const requests = bodies.map((body) => parse(body) as SignRequest);
        const first = requests.map((request) => computeSigningRoot(request, NETWORK));
        const kept = first.map(encodeHex);
        const again = requests.toReversed().map((request) => encodeHex(computeSigningRoot(request, NETWORK)));
        expect(again.toReversed()).toEqual(kept);
        expect(first.map(encodeHex)).toEqual(kept);
      }),
      { numRuns: 50 },
    );
  });
});

/** What EIP-3076 records of a request; nothing for most. */
function expectedRecord(body: Body): object | null {
  if (body['type'] === 'BLOCK_V2') return { kind: 'block', slot: Number(at(messageOf(body), 'slot')) };
  if (body['type'] !== 'ATTESTATION') return null;
  const [sourceEpoch, targetEpoch] = ['source.epoch', 'target.epoch'].map((path) => Number(at(messageOf(body), path)));
  return { kind: 'attestation', sourceEpoch, targetEpoch };
}

describe('what slashing protection is asked of any request', () => {
  it('are the numbers in the text, of blocks and attestations only', () => {
    const [publicKey, signingRoot] = [`0x${'ab'.repeat(48)}`, new Uint8Array(32)];
    fc.assert(
      fc.property(signRequestBody, (body) => {
        const record = expectedRecord(body);
        expect(slashableMessage(parse(body) as SignRequest, { publicKey, tenure: 2 }, signingRoot)).toEqual(
          record && { ...record, publicKey, tenure: 2, signingRoot },
        );
      }),
      RUNS,
    );
  });
});
