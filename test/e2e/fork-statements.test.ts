// Slashing protection against a client that states forks as it likes, through the real program on sepolia with healing
// on: whatever is said of forks, names, versions, chains and roots, a key signs one content for a target and for a
// slot, also when all of them come at once. A statement is no way around the record.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { encodeHex } from '../../common/formats/hex.ts';
import type { RunningSigner } from '../../rehearsal/signer.ts';
import { publicNetwork } from '../../signer/sign/networks.ts';
import { type Body, expectedRoot } from '../expected/expected-root.ts';
import { deploy } from '../support/deployment.ts';
import { messageAt } from '../support/fork-messages.ts';
import { chainOf } from '../support/networks.ts';
import { batchCall, signCall, testKey } from '../support/requests.ts';

const SEPOLIA = publicNetwork('sepolia');
const CHAIN = chainOf(SEPOLIA);
const KEY = testKey(0).publicKey;
const GLOAS_EPOCH = 353_024;
const GENESIS = encodeHex(SEPOLIA.genesisValidatorsRoot);
const VERSIONS = {
  phase0: '0x90000069',
  fulu: '0x90000075',
  gloas: '0x90000076',
  heze: '0x90000077',
  another: '0xdeadbeef',
} as const;
const json = { headers: { accept: 'application/json' } };

type Version = keyof typeof VERSIONS;

function forkInfo(previous: Version, current: Version, epoch: number, root = GENESIS): object {
  const fork = { previous_version: VERSIONS[previous], current_version: VERSIONS[current], epoch: String(epoch) };
  return { fork, genesis_validators_root: root };
}

/** Every statement around one message; the client's root is what the schedule asks for, where it gives one. */
function statements(body: Body, at: number): Body[] {
  const signingRoot = encodeHex(expectedRoot(body, CHAIN));
  const infos = [
    forkInfo('fulu', 'gloas', GLOAS_EPOCH),
    forkInfo('phase0', 'phase0', 0),
    forkInfo('phase0', 'fulu', at + 1),
    forkInfo('gloas', 'heze', at),
    forkInfo('heze', 'another', at + 1),
    forkInfo('another', 'heze', 0),
    forkInfo('fulu', 'gloas', GLOAS_EPOCH, `0x${'00'.repeat(32)}`),
  ];
  return infos.flatMap((fork_info) => [
    { ...body, fork_info },
    { ...body, fork_info, signingRoot },
  ]);
}

const vote = (epoch: number, head: string): Body => {
  const body = messageAt(SEPOLIA, 'ATTESTATION', epoch * 32, {
    previous: 'fulu',
    current: 'gloas',
    epoch: GLOAS_EPOCH,
  });
  return { ...body, attestation: { ...(body['attestation'] as object), beacon_block_root: head } } as unknown as Body;
};

const block = (slot: number, state_root: string, version: string): Body => {
  const body = messageAt(SEPOLIA, 'BLOCK_V2', slot, { previous: 'fulu', current: 'gloas', epoch: GLOAS_EPOCH });
  const { block_header } = body['beacon_block'] as { block_header: object };
  return { ...body, beacon_block: { version, block_header: { ...block_header, state_root } } } as unknown as Body;
};

const HEADS = [`0x${'a1'.repeat(32)}`, `0x${'a2'.repeat(32)}`];

describe('what a client says of forks', () => {
  let signer: RunningSigner;
  beforeAll(async () => {
    signer = await deploy(1, { network: 'sepolia', signing: { builder: true } }).start();
  });
  afterAll(() => signer.stop());

  /** @returns the signatures that came, and the statuses of the others */
  const answersTo = async (bodies: readonly Body[], how: 'at once' | 'in turn' | 'as batches') => {
    const ask = async (body: Body): Promise<string | number> => {
      if (how === 'as batches') {
        const { json: answer } = await batchCall(signer.url, [KEY], body, json);
        const [one] = Array.isArray(answer) ? answer : [answer];
        return one.signature ?? one.error?.code ?? one.code;
      }
      const { status, json: answer } = await signCall(signer.url, KEY, body, json);
      return status === 200 ? String(answer['signature']) : status;
    };
    const answers = how === 'at once' ? await Promise.all(bodies.map(ask)) : [];
    if (how !== 'at once') for (const body of bodies) answers.push(await ask(body));
    return {
      signatures: new Set(answers.filter((answer) => typeof answer === 'string')),
      refusals: new Set(answers.filter((answer) => typeof answer === 'number')),
    };
  };

  it.each(['at once', 'in turn', 'as batches'] as const)('signs one vote for a target, asked %s', async (how) => {
    const epoch = GLOAS_EPOCH + 100 + how.length;
    const bodies = HEADS.flatMap((head) => statements(vote(epoch, head), epoch));
    const { signatures, refusals } = await answersTo(bodies, how);
    expect(signatures.size).toBe(1);
    expect(refusals).toEqual(new Set([400, 412]));
  });

  it.each(['at once', 'in turn'] as const)('signs one block for a slot, asked %s', async (how) => {
    const epoch = GLOAS_EPOCH + 200 + how.length;
    const bodies = HEADS.flatMap((head) =>
      ['GLOAS', 'HEZE', 'Frobnicate', 'FULU'].flatMap((name) => statements(block(epoch * 32, head, name), epoch)),
    );
    const { signatures, refusals } = await answersTo(bodies, how);
    expect(signatures.size).toBe(1);
    expect(refusals).toEqual(new Set([400, 412]));
  });

  it('does not let a vote surround another under a fork of its own', async () => {
    const epoch = GLOAS_EPOCH + 300;
    const inner = vote(epoch, HEADS[0] ?? '');
    expect((await answersTo([inner], 'in turn')).signatures.size).toBe(1);
    const outer = vote(epoch + 1, HEADS[0] ?? '');
    const source = { epoch: String(epoch - 5), root: HEADS[0] };
    const surrounding = { ...outer, attestation: { ...(outer['attestation'] as object), source } } as Body;
    const { signatures, refusals } = await answersTo(statements(surrounding, epoch + 1), 'in turn');
    expect([...signatures]).toEqual([]);
    expect(refusals).toEqual(new Set([400, 412]));
  });
});
